import type { Outline, StepOutline } from "./outline.ts";
import { knownTruth, knownValue, readCondition, readItems } from "./values.ts";

/**
 * Whether each run that comes to a good end runs the step, whatever its input: no way leads past it, and it
 * is in nothing that may be left out, as the items of a MAP may where it is not known that there are some.
 * Ways after a failure count as ways.
 *
 * @param step Of the outline.
 */
export function isUnavoidable(outline: Outline, step: StepOutline): boolean {
  if (mayBeSkipped(step.fields["condition"]) || hasWayPast(outline, step)) return false;
  const parent = step.parent === undefined ? undefined : outline.steps[step.parent];
  if (parent === undefined) return true;
  return waitsForAll(parent) && isUnavoidable(outline, parent);
}

function mayBeSkipped(condition: unknown): boolean {
  if (typeof condition !== "string") return condition !== undefined;
  const { value } = readCondition(condition);
  return value === undefined || knownTruth(value) !== true;
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
function hasWayPast({ steps, byId }: Outline, step: StepOutline): boolean {
  const first = steps[step.list.members[0] ?? -1];
  const seen = new Set<StepOutline | undefined>([step, undefined]);
  const next = [first];
  while (next.length > 0) {
    const at = next.pop();
    if (at === undefined || seen.has(at)) continue;
    seen.add(at);
    if (at.type === "END" || at.edges.every(({ kind }) => kind !== "default")) return true;
    next.push(...at.edges.map(({ to }) => byId.get(to)));
  }
  return false;
}
