import { isLedByEvents } from "./check-ways.ts";
import type { Outline, StepList, StepOutline } from "./outline.ts";
import { fieldsOf, itemsOf } from "./outline.ts";
import type { ProblemList } from "./problem.ts";

/**
 * A PARALLEL whose branches cannot complete often enough, since their ways lead to an END or round for
 * ever, is never left, and what is behind it never comes. Without anything behind it, it may be meant
 * so: the first END ends the instance.
 */
export function checkJoins(outline: Outline, list: ProblemList): void {
  const { steps, lists, byId } = outline;
  if (!steps.some(({ type }) => type === "PARALLEL")) return;
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const inside = new Map<number, StepList[]>();
  for (const each of lists) {
    const parent = steps[each.members[0] ?? -1]?.parent;
    if (parent === undefined) continue;
    inside.set(parent, [...(inside.get(parent) ?? []), each]);
  }

  /** PARALLELs that are never left. What is inside of a step comes after it. */
  const stuck = new Set<number>();
  for (const [index, step] of [...steps.entries()].toReversed()) {
    if (step.type !== "PARALLEL") continue;
    const branches = itemsOf(step.fields["branches"]);
    const own = inside.get(index) ?? [];
    const needed = branchesNeeded(step, branches.length);
    const completing = own.filter((each) => mayComplete(each)).length;
    // A branch without steps, or a join that is too large, is reported as such.
    if (own.length < branches.length || needed === undefined) continue;
    if (needed > branches.length || completing >= needed) continue;
    if (step.edges.some(({ kind }) => kind === "default" || kind === "condition")) {
      report(step, needed, completing, list);
    } else stuck.add(index);
  }

  /** Whether a way leads from the first step of a list to one after which there is none. */
  function mayComplete({ members }: StepList): boolean {
    const seen = new Set<number>();
    const stack = members.slice(0, 1);
    for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
      const step = steps[index];
      if (step === undefined || seen.has(index)) continue;
      seen.add(index);
      const passes = step.fields["condition"] !== undefined;
      const isLeft = passes || (step.type !== "END" && !stuck.has(index));
      const ways = step.edges.filter(({ kind }) => isLeft || kind === "error");
      const isLed = isLedByEvents(step);
      if (isLeft && !isLed && !ways.some(({ kind }) => kind === "default")) return true;
      for (const { to } of ways) {
        const target = byId.get(to);
        const next = target?.list === step.list ? indexOf.get(target) : undefined;
        if (next === undefined) return true;
        stack.push(next);
      }
    }
    return false;
  }
}

/** Branches that must complete; undefined where one that fails is as good. */
function branchesNeeded({ fields }: StepOutline, branches: number): number | undefined {
  const { join = "ALL", onBranchError } = fields;
  if (join === "ANY") return 1;
  if (join === "ALL") return onBranchError === "CONTINUE" ? undefined : branches;
  const { count } = fieldsOf(join);
  return typeof count === "number" ? count : undefined;
}

function report(step: StepOutline, needed: number, completing: number, list: ProblemList): void {
  const { fields, path, stepId } = step;
  const some = completing === 0 ? "none" : `only ${completing}`;
  const message = `${needed} ${needed === 1 ? "branch" : "branches"} of ${JSON.stringify(stepId ?? "the step")} must complete and ${some} can: all ways of the others lead to an END, which ends the whole instance, or round for ever; let a branch end at a step without a transition`;
  const at = fields["join"] === undefined ? path : `${path}/join`;
  list.add(at, "JOIN_NEVER_REACHED", message);
}
