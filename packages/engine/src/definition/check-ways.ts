import type { Expression } from "@millrace/expressions";
import { implies, isContradiction, overlapOf } from "@millrace/expressions";
import type { Outline, StepOutline } from "./outline.ts";
import { fieldsOf, itemsOf } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import { problemList } from "./problem.ts";
import { knownTruth } from "./known-values.ts";
import { readCondition } from "./values.ts";

/** One of the ways out of a step of which the first true one is taken. */
interface Way {
  /** JSON pointer of its condition. */
  readonly at: string;
  readonly index: number;
  readonly to: unknown;
  readonly condition: Expression;
}

/** Earlier ways that one is compared with: a table of thousands of choices is compared only nearby. */
const maxCompared = 50;

/** The ways that a step has: its transitions, or its choices. */
interface Ways {
  readonly ways: unknown;
  /** JSON pointer of them. */
  readonly path: string;
  readonly other: unknown;
  /** JSON pointer of the `default`, which is taken where none of them is. */
  readonly otherPath: string;
  /** A step that its own condition skips goes on by its default. */
  readonly mayBeSkipped: boolean;
  /** Why none of them is ever taken. */
  readonly never?: string | undefined;
}

/**
 * Conditions and choices that are never taken, or that are true together with one before them.
 *
 * @param read Reads the condition at a pointer; undefined where it is none.
 * @returns JSON pointers of the targets that are never gone to; that of a default also where there is none.
 */
export function checkWays(
  { ways, path, other, otherPath, mayBeSkipped, never }: Ways,
  read: (at: string, when: unknown) => Expression | undefined,
  list: ProblemList,
): readonly string[] {
  const closed: string[] = [];
  const bySource = new Map<string, Way>();
  const earlier: Way[] = [];
  let always: Way | undefined;
  for (const [index, way] of itemsOf(ways).entries()) {
    const { when, to } = fieldsOf(way);
    const at = `${path}/${index}/when`;
    const condition = read(at, when);
    if (condition === undefined) continue;
    const own = { at, index, to, condition };
    const source = condition.source.trim();
    const isTrue = knownTruth(condition);
    const near = earlier.slice(-maxCompared);
    const reason =
      never ??
      whyNever(own, always, bySource.get(source), near) ??
      (isTrue === false || isContradiction(condition)
        ? "its condition is always false"
        : undefined);
    if (reason === undefined) warnOfOverlap(own, near, list);
    else {
      list.warn(at, "NEVER_TAKEN", `this is never taken: ${reason}`);
      closed.push(`${path}/${index}/to`);
    }
    if (!bySource.has(source)) bySource.set(source, own);
    if (isTrue === true) always ??= own;
    earlier.push(own);
  }
  const why = never ?? (always && `the condition at ${always.index} is always true`);
  if (why === undefined || mayBeSkipped) return closed;
  if (other !== undefined) list.warn(otherPath, "NEVER_TAKEN", `this is never taken: ${why}`);
  return [...closed, otherPath];
}

export function transitionsOf(step: StepOutline): Ways {
  const { fields, path } = step;
  const { conditions: ways, default: other } = fieldsOf(fields["transitions"]);
  return {
    ways,
    path: `${path}/transitions/conditions`,
    other,
    otherPath: `${path}/transitions/default`,
    mayBeSkipped: fields["condition"] !== undefined,
    never: isLedByEvents(step) ? 'each of the "events" leads on by its own "to"' : undefined,
  };
}

/** A wait for one of several events that all say where to go, and that is not skipped. */
export function isLedByEvents({ type, fields }: StepOutline): boolean {
  const events = itemsOf(fields["events"]);
  if (type !== "EVENT_WAIT" || events.length === 0 || fields["mode"] === "ALL") return false;
  return (
    fields["condition"] === undefined &&
    events.every((event) => fieldsOf(event)["to"] !== undefined)
  );
}

export function choicesOf({ fields, path }: StepOutline): Ways {
  return {
    ways: fields["choices"],
    path: `${path}/choices`,
    other: fields["default"],
    otherPath: `${path}/default`,
    mayBeSkipped: fields["condition"] !== undefined,
  };
}

/**
 * JSON pointers of the targets that are never gone to, whoever else looks at the ways: in a MAP those alone whose
 * conditions do not ask for the item.
 */
export function closedWaysOf({ steps }: Outline): ReadonlySet<string> {
  const read = (_at: string, when: unknown) =>
    typeof when === "string" ? readCondition(when).value : undefined;
  const list = problemList([]);
  return new Set(
    steps.flatMap((step) => [
      ...checkWays(transitionsOf(step), read, list),
      ...(step.type === "CHOICE" ? checkWays(choicesOf(step), read, list) : []),
    ]),
  );
}

function whyNever(
  { condition }: Way,
  always: Way | undefined,
  same: Way | undefined,
  near: readonly Way[],
): string | undefined {
  if (always !== undefined) return `the condition at ${always.index} is always true`;
  if (same !== undefined) return `the condition at ${same.index} is the same`;
  const wider = near.find((each) => implies(condition, each.condition));
  return (
    wider &&
    `wherever it is true, so is the condition at ${wider.index}, which comes first; put this one before it`
  );
}

function warnOfOverlap(way: Way, near: readonly Way[], list: ProblemList): void {
  for (const other of near) {
    const value = other.to === way.to ? undefined : overlapOf(other.condition, way.condition);
    if (value === undefined) continue;
    const message = `this and the condition at ${other.index} are both true for ${value}, and the first one is taken; draw the line between them`;
    list.warn(way.at, "OVERLAPPING", message);
    return;
  }
}
