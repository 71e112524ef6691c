import type { Outline, StepOutline } from "./outline.ts";
import { knownTruth, knownValue } from "./known-values.ts";
import { readCondition, readItems } from "./values.ts";

/**
 * Whether each run that comes to a good end runs the step, whatever its input: no way leads past it, and it
 * is in nothing that may be left out, as the items of a MAP may where it is not known that there are some.
 * Ways after a failure count as ways.
 *
 * @param step Of the outline.
 * @param closed JSON pointers of the targets of ways that are never taken.
 */
export function isUnavoidable(
  outline: Outline,
  step: StepOutline,
  closed: ReadonlySet<string>,
): boolean {
  if (mayBeSkipped(step.fields["condition"]) || hasWayPast(outline, step, closed)) return false;
  const parent = step.parent === undefined ? undefined : outline.steps[step.parent];
  if (parent === undefined) return true;
  return waitsForAll(parent) && isUnavoidable(outline, parent, closed);
}

function mayBeSkipped(condition: unknown): boolean {
  return condition !== undefined && truthOf(condition) !== true;
}

/** Undefined where it depends on something. */
function truthOf(condition: unknown): boolean | undefined {
  const { value } = typeof condition === "string" ? readCondition(condition) : {};
  return value && knownTruth(value);
}

function waitsForAll({ type, fields: { join, items, tolerate } }: StepOutline): boolean {
  if (type === "MAP") return hasItems(items) && (tolerate === undefined || tolerate === 0);
  return type === "PARALLEL" && (join === undefined || join === "ALL");
}

/** Whether a MAP has an item whatever its input: a list that is written out, or comes to the same each time. */
export function hasItems(items: unknown): boolean {
  if (Array.isArray(items)) return items.length > 0;
  const { value } = typeof items === "string" ? readItems(items) : {};
  const known = value && knownValue(value)?.value;
  return Array.isArray(known) && known.length > 0;
}

/** From the first step of its list to one that may be the last. */
function hasWayPast(
  { steps, byId }: Outline,
  step: StepOutline,
  closed: ReadonlySet<string>,
): boolean {
  const first = steps[step.list.members[0] ?? -1];
  const seen = new Set<StepOutline | undefined>([step, undefined]);
  const next = [first];
  while (next.length > 0) {
    const at = next.pop();
    if (at === undefined || seen.has(at)) continue;
    seen.add(at);
    if ((at.type === "END" && truthOf(at.fields["condition"]) !== false) || mayBeLast(at, closed)) {
      return true;
    }
    const taken = at.edges.filter(({ path }) => !closed.has(path));
    next.push(...taken.map(({ to }) => byId.get(to)));
  }
  return false;
}

/** Whether what it is in, or the workflow, may end behind the step, which is no END. */
export function mayBeLast(
  { type, path, edges }: StepOutline,
  closed: ReadonlySet<string>,
): boolean {
  if (edges.some(({ kind }) => kind === "default")) return false;
  return !closed.has(`${path}${type === "CHOICE" ? "" : "/transitions"}/default`);
}
