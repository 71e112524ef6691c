import { checkJoins } from "./check-joins.ts";
import type { ValuesFound } from "./value-checker.ts";
import { checkReads } from "./check-reads.ts";
import type { Graph } from "./graph.ts";
import { cyclicComponents, reachable } from "./graph.ts";
import type { NearName } from "./near-name.ts";
import { didYouMean, nearNames } from "./near-name.ts";
import type { Edge, Outline, StepOutline } from "./outline.ts";
import { fieldsOf, itemsOf, textOf } from "./outline.ts";
import { mayEndBeside, mayEndInside } from "./ends-beside.ts";
import type { ProblemList } from "./problem.ts";

/**
 * Whatever concerns step ids and the ways between steps.
 *
 * @param values What the expressions of the steps read of other steps, and which ways they close.
 */
export function checkGraph(outline: Outline, values: ValuesFound, list: ProblemList): void {
  checkIds(outline, list);
  const near = nearNames(outline.byId.keys());
  checkTargets(outline, near, list);
  checkCompensationPairs(outline, near, list);
  warnOfUncompensated(outline, list);
  checkJoins(outline, list);
  const ways = waysOf(outline, near, values.closed);
  checkReachable(outline, ways, list);
  checkCycles(outline, ways, values.closed, list);
  checkReads(outline, ways.meant, values, list);
}

function checkIds({ steps, compensationSteps }: Outline, list: ProblemList): void {
  const taken = new Map<string, string>();
  for (const { stepId, path } of [...steps, ...compensationSteps]) {
    if (stepId === undefined) continue;
    const first = taken.get(stepId);
    if (first === undefined) taken.set(stepId, path);
    else {
      const message = `the id ${quote(stepId)} is already that of ${first}; ids are unique over steps and compensationSteps`;
      list.add(`${path}/stepId`, "DUPLICATE_ID", message);
    }
  }
}

function checkTargets(outline: Outline, near: NearName, list: ProblemList): void {
  const compensations = new Set(outline.compensationSteps.map(({ stepId }) => stepId));
  for (const { edges, list: own } of outline.steps) {
    for (const { to, path } of edges) {
      const target = outline.byId.get(to);
      if (target?.list === own) continue;
      if (target !== undefined) {
        const message = `${quote(to)} is not in this list of steps, and no way leads into a branch or MAP or out of it; a branch ends where it has no transition`;
        list.add(path, "OTHER_LIST", message);
        continue;
      }
      const message = compensations.has(to)
        ? `${quote(to)} is a compensation step; those run by themselves, and a transition leads to a step`
        : `there is no step ${quote(to)}${didYouMean(near(to))}`;
      list.add(path, "UNKNOWN_STEP", message);
    }
  }
}

/** Steps of other types do nothing outside the instance that could be undone. */
const compensable: ReadonlySet<string> = new Set([
  "TASK",
  "EVENT_WAIT",
  "PARALLEL",
  "MAP",
  "SUB_WORKFLOW",
  "EMIT_EVENT",
]);

function checkCompensationPairs(outline: Outline, near: NearName, list: ProblemList): void {
  const undone = new Map<string, string>();
  const own = new Set(outline.compensationSteps.map(({ stepId }) => stepId));
  for (const { compensationFor: target, path: stepPath } of outline.compensationSteps) {
    if (target === undefined) continue;
    const path = `${stepPath}/compensationFor`;
    const step = outline.byId.get(target);
    if (step === undefined) {
      const message = own.has(target)
        ? `${quote(target)} is itself a compensation step and is not undone`
        : `there is no step ${quote(target)}${didYouMean(near(target))}`;
      list.add(path, "UNKNOWN_STEP", message);
    } else if (step.type !== undefined && isKnownType(step.type) && !compensable.has(step.type)) {
      const message = `${quote(target)} is of type ${step.type}, which has no effect outside the instance to undo`;
      list.add(path, "NOT_COMPENSABLE", message);
    }
    const first = undone.get(target);
    if (first === undefined) undone.set(target, stepPath);
    else {
      const message = `${quote(target)} already has the compensation step at ${first}; do both in one task`;
      list.add(path, "DUPLICATE_COMPENSATION", message);
    }
  }
}

/**
 * A task that nothing undoes, where what others do is undone: one that has done its work stays done when a
 * later step fails or the workflow is cancelled.
 */
function warnOfUncompensated(outline: Outline, list: ProblemList): void {
  const { steps, byId, compensationSteps } = outline;
  const undone = new Set(compensationSteps.map((step) => step.compensationFor));
  if (![...undone].some((stepId) => stepId !== undefined && byId.has(stepId))) return;
  const taskOf = ({ fields }: StepOutline): string | undefined => textOf(fields["taskId"]);
  const undoneTasks = new Map<string, string>();
  for (const step of steps) {
    const taskId = step.type === "TASK" && undone.has(step.stepId) ? taskOf(step) : undefined;
    if (taskId !== undefined) undoneTasks.set(taskId, step.stepId ?? "");
  }
  for (const step of steps) {
    if (step.type !== "TASK" || undone.has(step.stepId) || onlyReads(step)) continue;
    const name = quote(step.stepId ?? "the step");
    const other = undoneTasks.get(taskOf(step) ?? "");
    if (other !== undefined) {
      const message = `${name} runs the same task as ${quote(other)}, which a compensation step undoes, and nothing undoes this one; add a compensation step for it`;
      list.warn(step.path, "UNCOMPENSATED", message);
    } else if (isFollowed(step, outline)) {
      const message = `what ${name} has done stays done when a later step fails or the workflow is cancelled, and other steps are undone then; add a compensation step for it, unless it has no effect to undo`;
      list.warn(step.path, "UNCOMPENSATED", message);
    }
  }
}

/** Something can still fail when the step has completed: one that comes after it, or runs beside it. */
function isFollowed({ edges, parent }: StepOutline, outline: Outline): boolean {
  const { steps, byId } = outline;
  const leads = edges.some(({ kind, to }) => {
    const { type = "END" } = byId.get(to) ?? {};
    return (kind === "default" || kind === "condition") && type !== "END";
  });
  const around = steps[parent ?? -1];
  if (leads || around === undefined) return leads;
  const isAlone = around.type === "PARALLEL" && itemsOf(around.fields["branches"]).length < 2;
  return !isAlone || isFollowed(around, outline);
}

/** What tasks are called that find something out and change nothing. */
const asks: ReadonlySet<string> = new Set(
  (
    "assess analyze analyse audit calculate calc check classify compare compute count detect detection " +
    "estimate evaluate examine fetch find get inspect list load lookup preview query quote read score scoring " +
    "screen screening search validate validation verify verification"
  ).split(" "),
);

const withoutEffect: ReadonlySet<string> = new Set(["noop", "echo", "fail", "sleep"]);

/** Built-in tasks that have no effect outside, or not with this input, and those that are called so. */
function onlyReads({ fields }: StepOutline): boolean {
  const taskId = textOf(fields["taskId"]) ?? "";
  // Which one an expression gives, and what that does, nobody knows.
  if (taskId.includes("${")) return true;
  const words = taskId.split(/[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])/);
  if (words.some((word) => asks.has(word.toLowerCase()))) return true;
  if (taskId !== "http.request") return withoutEffect.has(taskId);
  const method = fieldsOf(fields["input"])["method"] ?? "GET";
  return typeof method !== "string" || /^(?:get|head|options)$|\$\{/i.test(method);
}

function isKnownType(type: string): boolean {
  return compensable.has(type) || ["DELAY", "CHOICE", "SET", "END"].includes(type);
}

interface Ways {
  /** Steps by index, with the ways that may be taken. */
  readonly graph: Graph;
  /**
   * With the ways that are never taken, which is reported by itself, and with those to an unknown target that
   * nearly names a step: one slip is one problem, and not also that of every step behind it.
   */
  readonly meant: Graph;
  /** Steps with a way to nowhere. */
  readonly dangling: ReadonlySet<number>;
}

function waysOf({ steps, byId }: Outline, near: NearName, closed: ReadonlySet<string>): Ways {
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const dangling = new Set<number>();
  const graph: number[][] = [];
  const meant: number[][] = [];
  for (const [index, step] of steps.entries()) {
    const indexIn = (to: string | undefined): number | undefined => {
      const target = byId.get(to ?? "");
      return target?.list === step.list ? indexOf.get(target) : undefined;
    };
    const edges = livingEdges(step);
    const open = edges.filter(({ path }) => !closed.has(path));
    const known = open.flatMap(({ to }) => indexIn(to) ?? []);
    if (known.length < open.length) dangling.add(index);
    graph.push([...new Set(known)]);
    const named = edges.flatMap(({ to }) => indexIn(byId.has(to) ? to : near(to)) ?? []);
    meant.push([...new Set(named)]);
  }
  return { graph, meant, dangling };
}

/** An END leads on only when its condition is false. */
function livingEdges({ type, fields, edges }: StepOutline): readonly Edge[] {
  const ends = type === "END" && fields["condition"] === undefined;
  return ends ? edges.filter(({ kind }) => kind === "error") : edges;
}

/** From the first step of its own list. */
function checkReachable({ steps, lists, byId }: Outline, { meant }: Ways, list: ProblemList): void {
  const starts = lists.flatMap(({ members: [start] }) => start ?? []);
  // All lists in one go: no way leads from one to another.
  const beyond = meant.length;
  const reached = reachable([...meant, starts], beyond);
  for (const [index, step] of steps.entries()) {
    // Without an id, or with one that is taken, nothing can lead to it; that is reported already.
    if (reached[index] || step.stepId === undefined || byId.get(step.stepId) !== step) continue;
    const first = steps[step.list.members[0] ?? -1]?.stepId;
    const message = `no way leads to ${quote(step.stepId)} from the first step${first === undefined ? "" : `, ${quote(first)}`}; add a transition to it or take it out`;
    list.add(step.path, "UNREACHABLE_STEP", message);
  }
}

/** Steps that do no waiting of their own. A type that is not known may be anything. */
const hasty: ReadonlySet<string> = new Set([
  "TASK",
  "CHOICE",
  "SET",
  "END",
  "EMIT_EVENT",
  "PARALLEL",
  "MAP",
]);

/** Steps that wait, or may, or have one inside that does. */
function waitingSteps(steps: readonly StepOutline[]): ReadonlySet<number> {
  const waiting = new Set<number>();
  for (const [index, { type, parent }] of [...steps.entries()].toReversed()) {
    if (type === undefined || !hasty.has(type)) waiting.add(index);
    // What is inside of a step comes after it.
    if (parent !== undefined && waiting.has(index)) waiting.add(parent);
  }
  return waiting;
}

/**
 * A loop needs something that slows it down or leads out of it. One of steps that do not wait is refused
 * where no way leads out of it, and is suspicious where what is around it may end it; so is one that waits
 * and that nothing ends from outside, as a clock or a branch beside it.
 *
 * @param closed Targets that are never gone to.
 */
function checkCycles(
  outline: Outline,
  { graph, dangling }: Ways,
  closed: ReadonlySet<string>,
  list: ProblemList,
): void {
  const { steps, fields } = outline;
  const waiting = waitingSteps(steps);
  const endsFromOutside =
    fields["timeout"] !== undefined || itemsOf(fields["cancellationTriggers"]).length > 0;
  for (const component of cyclicComponents(graph)) {
    const members = component.map((index) => steps[index]).filter((step) => step !== undefined);
    if (members.some((step) => mayEndInside(step, steps) || mayEnd(step, closed))) continue;
    const waits = component.some((index) => waiting.has(index));
    if (waits && (endsFromOutside || mayEndBeside(members[0], steps))) continue;
    const inside = new Set(component);
    const leaves = component.some(
      (index) =>
        dangling.has(index) || graph[index]?.some((target) => !inside.has(target)) === true,
    );
    if (leaves) continue;
    const path = members[0]?.path ?? "";
    const loop = `the loop of ${nameSome(members.map(({ stepId }) => stepId ?? "?"))}`;
    if (waits) {
      const message = `${loop} goes round until maxIterations fails it: nothing leads out of it, no clock or branch around it ends it, and the workflow has neither a timeout nor a cancellationTrigger`;
      list.warn(path, "ENDLESS_CYCLE", message);
    } else if (component.every((index) => graph[index]?.length === 1)) {
      const message = `${loop} goes round for ever: put a DELAY or an EVENT_WAIT into it, or a condition that leads out`;
      list.add(path, "CYCLE_WITHOUT_WAIT", message);
    } else {
      const message = `${loop} goes round for ever: none of its conditions leads out of it, and nothing in it waits; lead one out, or put a DELAY or an EVENT_WAIT into it`;
      if (mayEndBeside(members[0], steps)) list.warn(path, "ENDLESS_CYCLE", message);
      else list.add(path, "CYCLE_WITHOUT_WAIT", message);
    }
  }
}

/** A step can be the end of its branch: an END, or one whose transitions have no default. */
function mayEnd({ type, path, edges }: StepOutline, closed: ReadonlySet<string>): boolean {
  if (type === "END") return true;
  if (edges.some(({ kind }) => kind === "default")) return false;
  return !closed.has(`${path}${type === "CHOICE" ? "" : "/transitions"}/default`);
}

function nameSome(stepIds: readonly string[]): string {
  const shown = stepIds.slice(0, 5).map(quote).join(", ");
  return stepIds.length > 5 ? `${shown} and ${stepIds.length - 5} more` : shown;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
