import type { Guards } from "@millrace/expressions";
import { guardsOf, noGuards, withBoth, withEither } from "@millrace/expressions";
import type { Edge, Outline, StepOutline } from "./outline.ts";
import { fieldsOf, textOf } from "./outline.ts";
import { valueAt } from "./problem.ts";
import { namesOfItem, readCondition } from "./values.ts";
import type { Names } from "./values.ts";

// What the conditions on the ways to a step have asked of the types of the input and of an item. These are
// the same wherever they are read, so that what was asked once holds for all that follows.

/** Ways that are looked at, all together; where there are more, no guard is known. */
const maxWays = 200_000;

export interface StepGuards {
  /** What holds whenever the step is reached. */
  readonly reached: Guards;
  /** What holds too where it is entered, as its own condition holds. */
  readonly entered: Guards;
}

export function guardsOfSteps(outline: Outline): readonly StepGuards[] {
  const { steps } = outline;
  const names = [
    ...new Set(
      steps.flatMap(({ type, fields }) =>
        type === "MAP" ? namesOfItem(textOf(fields["itemName"])) : [],
      ),
    ),
  ];
  const ways = steps.map((step) => waysOf(step, names));
  const own = steps.map(({ fields }) => guardsOfCondition(fields["condition"], true, names));
  const isGuarded = [...ways.flat(), ...own].some(({ size }) => size > 0);
  const reached = isGuarded ? followed(outline, ways, own) : [];
  return own.map((guards, index) => {
    const before = reached[index] ?? noGuards;
    return { reached: before, entered: withBoth(before, guards) };
  });
}

/** Along the ways from step to step, and into what is inside of them. */
function followed(
  outline: Outline,
  ways: readonly (readonly Guards[])[],
  own: readonly Guards[],
): readonly (Guards | undefined)[] {
  const { steps, byId } = outline;
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const entered: (Guards | undefined)[] = steps.map(() => undefined);
  const queue: number[] = [];
  const enter = (index: number | undefined, guards: Guards): void => {
    if (index === undefined) return;
    const known = entered[index];
    const next = known === undefined ? guards : withEither(known, guards);
    if (known !== undefined && isSame(known, next)) return;
    entered[index] = next;
    queue.push(index);
  };
  const firsts = firstSteps(outline);

  enter(0, noGuards);
  let left = maxWays;
  for (let index = queue.shift(); index !== undefined; index = queue.shift()) {
    const around = entered[index] ?? noGuards;
    const past = withBoth(around, own[index] ?? noGuards);
    // In a MAP `item` is another one.
    const inside = steps[index]?.type === "MAP" ? only(past, (root) => root === "input") : past;
    for (const first of firsts[index] ?? []) enter(first, inside);
    for (const [position, { to }] of (steps[index]?.edges ?? []).entries()) {
      if ((left -= 1) < 0) return [];
      const target = byId.get(to);
      const guards = ways[index]?.[position] ?? noGuards;
      enter(target && indexOf.get(target), withBoth(around, guards));
    }
  }
  return entered;
}

/** What a condition has asked that holds on: variables, outputs of steps and the event change. */
function guardsOfCondition(condition: unknown, holds: boolean, names: Names): Guards {
  // Nothing else says anything of types.
  if (typeof condition !== "string" || !condition.includes("type(")) return noGuards;
  const { value } = readCondition(condition, names);
  return value === undefined
    ? noGuards
    : only(guardsOf(value, holds), (root) => !changing.has(root));
}

const changing: ReadonlySet<string> = new Set(["variables", "steps", "workflow", "event"]);

function only(guards: Guards, isKept: (root: string) => boolean): Guards {
  return new Map([...guards].filter(([, { root }]) => isKept(root)));
}

/** Of each step those with which its branches or items begin. */
function firstSteps({ steps, lists }: Outline): readonly (readonly number[])[] {
  const firsts: number[][] = steps.map(() => []);
  for (const { members } of lists) {
    const [first] = members;
    if (first !== undefined) firsts[steps[first]?.parent ?? -1]?.push(first);
  }
  return firsts;
}

/** By edge: its own condition holds, and none of those before it does. */
function waysOf({ fields, path, edges }: StepOutline, names: Names): readonly Guards[] {
  const failed = new Map<string, Guards>();
  return edges.map(({ kind, path: at }: Edge) => {
    if (kind !== "condition" && kind !== "default") return noGuards;
    const inStep = at.slice(path.length);
    const group = inStep.split("/", 2).join("/").replace("/choices", "/default");
    const before = failed.get(group) ?? noGuards;
    // One that its own condition skips goes on by its default without having asked any other.
    if (kind === "default") return fields["condition"] === undefined ? before : noGuards;
    const when = textOf(fieldsOf(valueAt(inStep.slice(0, -"/to".length), fields))["when"]);
    failed.set(group, withBoth(before, guardsOfCondition(when, false, names)));
    return withBoth(before, guardsOfCondition(when, true, names));
  });
}

/** Of two the second of which says no more than the first. */
function isSame(left: Guards, right: Guards): boolean {
  if (left.size !== right.size) return false;
  return [...left].every(([key, { types }]) => right.get(key)?.types.length === types.length);
}
