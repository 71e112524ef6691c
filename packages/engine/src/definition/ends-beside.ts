import type { StepList, StepOutline } from "./outline.ts";
import { fieldsOf } from "./outline.ts";

// What ends a step that goes on by itself for ever: a clock of what is around it, or a branch beside it.

/** What is around a step can end it: by a branch beside it, or by a clock. */
export function mayEndBeside(
  step: StepOutline | undefined,
  steps: readonly StepOutline[],
): boolean {
  const around = steps[step?.parent ?? -1];
  if (around === undefined) return false;
  const { join = "ALL" } = around.fields;
  if (isTimed(around) || join !== "ALL" || mayEndInside(around, steps)) return true;
  return mayEndBeside(around, steps);
}

/** An END inside of it ends the instance. */
export function mayEndInside({ type, path }: StepOutline, steps: readonly StepOutline[]): boolean {
  if (type !== "PARALLEL" && type !== "MAP") return false;
  return steps.some((each) => each.type === "END" && each.path.startsWith(`${path}/`));
}

/** The same of a wait, where a branch beside it that may itself go on for ever ends nothing. */
export function endsBesideInTime({ parent }: StepOutline, steps: readonly StepOutline[]): boolean {
  const around = steps[parent ?? -1];
  if (around === undefined || parent === undefined) return false;
  const { join = "ALL" } = around.fields;
  const { count = 1 } = fieldsOf(join);
  // The wait's own branch is none of them.
  const { inTime, mayEnd } = branchesOf(steps).get(parent) ?? noBranches;
  const areEnough = join !== "ALL" && typeof count === "number" && inTime >= count;
  return isTimed(around) || areEnough || mayEnd || endsBesideInTime(around, steps);
}

/** Of the branches of a step those that neither a wait nor a loop can hold up for ever. */
interface Branches {
  readonly inTime: number;
  /** One of them has an END. */
  readonly mayEnd: boolean;
}

const noBranches: Branches = { inTime: 0, mayEnd: false };

const known = new WeakMap<readonly StepOutline[], ReadonlyMap<number, Branches>>();

/** By the step around; in one go, as there may be thousands of waits. */
function branchesOf(steps: readonly StepOutline[]): ReadonlyMap<number, Branches> {
  const found = known.get(steps) ?? summedUp(steps);
  known.set(steps, found);
  return found;
}

function summedUp(steps: readonly StepOutline[]): ReadonlyMap<number, Branches> {
  const indexOf = new Map(steps.map(({ stepId }, index) => [stepId, index]));
  const waiting = listsWith(steps, (step, index) => {
    if (step.type === "EVENT_WAIT" && !isBoundedWait(step)) return true;
    return step.edges.some(({ to }) => (indexOf.get(to) ?? steps.length) <= index);
  });
  const ending = listsWith(steps, ({ type }) => type === "END");
  const branches = new Map<number, Branches>();
  for (const list of new Set(steps.map((step) => step.list))) {
    const { parent } = steps[list.members[0] ?? -1] ?? {};
    if (parent === undefined || waiting.has(list)) continue;
    const { inTime, mayEnd } = branches.get(parent) ?? noBranches;
    branches.set(parent, { inTime: inTime + 1, mayEnd: mayEnd || ending.has(list) });
  }
  return branches;
}

/** Lists that have such a step, or something inside that does. */
function listsWith(
  steps: readonly StepOutline[],
  isOne: (step: StepOutline, index: number) => boolean,
): ReadonlySet<StepList> {
  const lists = new Set<StepList>();
  // What is inside of a step comes after it.
  const holds = new Set<number>();
  for (const [index, step] of [...steps.entries()].toReversed()) {
    if (!isOne(step, index) && !holds.has(index)) continue;
    lists.add(step.list);
    if (step.parent !== undefined) holds.add(step.parent);
  }
  return lists;
}

/** A wait has a clock of its own. */
export function isBoundedWait({ fields }: Pick<StepOutline, "fields">): boolean {
  return fields["eventTimeout"] !== undefined || isTimed({ fields });
}

function isTimed({ fields: { timeout, totalTimeout } }: Pick<StepOutline, "fields">): boolean {
  return timeout !== undefined || totalTimeout !== undefined;
}
