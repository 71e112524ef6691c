import type { StepRead } from "./check-values.ts";
import type { Graph } from "./graph.ts";
import { cyclicComponents, reachable } from "./graph.ts";
import type { NearName } from "./near-name.ts";
import { didYouMean, nearNames } from "./near-name.ts";
import type { Edge, Outline, StepOutline } from "./outline.ts";
import type { ProblemList } from "./problem.ts";

/**
 * Whatever concerns step ids and the ways between steps.
 *
 * @param reads What the expressions of the steps read of other steps.
 */
export function checkGraph(outline: Outline, reads: readonly StepRead[], list: ProblemList): void {
  checkIds(outline, list);
  const near = nearNames(outline.byId.keys());
  checkTargets(outline, near, list);
  checkCompensationPairs(outline, near, list);
  const ways = waysOf(outline, near);
  checkReachable(outline, ways, list);
  checkCycles(outline, ways, list);
  checkReads(outline, ways, reads, list);
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

function isKnownType(type: string): boolean {
  return compensable.has(type) || ["DELAY", "CHOICE", "SET", "END"].includes(type);
}

interface Ways {
  /** Steps by index. */
  readonly graph: Graph;
  /** Steps with a way to nowhere. */
  readonly dangling: ReadonlySet<number>;
}

/**
 * An unknown target that nearly names a step counts as a way to it: the slip of a key is one problem,
 * and not also that of every step behind it.
 */
function waysOf({ steps, byId }: Outline, near: NearName): Ways {
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const dangling = new Set<number>();
  const graph = steps.map((step, index) => {
    const targets = new Set<number>();
    for (const { to } of livingEdges(step)) {
      const target = byId.get(to) ?? byId.get(near(to) ?? "");
      const targetIndex = target?.list === step.list ? indexOf.get(target) : undefined;
      if (targetIndex === undefined) dangling.add(index);
      else targets.add(targetIndex);
    }
    return [...targets];
  });
  return { graph, dangling };
}

/** An END leads on only when its condition is false. */
function livingEdges({ type, fields, edges }: StepOutline): readonly Edge[] {
  const ends = type === "END" && fields["condition"] === undefined;
  return ends ? edges.filter(({ kind }) => kind === "error") : edges;
}

/** From the first step of its own list. */
function checkReachable({ steps, lists, byId }: Outline, { graph }: Ways, list: ProblemList): void {
  const starts = lists.flatMap(({ members: [start] }) => start ?? []);
  // All lists in one go: no way leads from one to another.
  const beyond = graph.length;
  const reached = reachable([...graph, starts], beyond);
  for (const [index, step] of steps.entries()) {
    // Without an id, or with one that is taken, nothing can lead to it; that is reported already.
    if (reached[index] || step.stepId === undefined || byId.get(step.stepId) !== step) continue;
    const first = steps[step.list.members[0] ?? -1]?.stepId;
    const message = `no way leads to ${quote(step.stepId)} from the first step${first === undefined ? "" : `, ${quote(first)}`}; add a transition to it or take it out`;
    list.add(step.path, "UNREACHABLE_STEP", message);
  }
}

/** Steps that do no waiting. A type that is not known may be anything, so it is not among them. */
const hasty: ReadonlySet<string> = new Set(["TASK", "CHOICE", "SET", "END", "EMIT_EVENT"]);

/**
 * A loop needs something that slows it down or leads out of it. A cycle of steps that do not wait,
 * each with exactly one way to go on, is refused; one that has conditions, none of which leaves it,
 * is suspicious.
 */
function checkCycles({ steps }: Outline, { graph, dangling }: Ways, list: ProblemList): void {
  for (const component of cyclicComponents(graph)) {
    const members = component.map((index) => steps[index]).filter((step) => step !== undefined);
    if (members.some(({ type }) => type === undefined || !hasty.has(type))) continue;
    const inside = new Set(component);
    const leaves = component.some(
      (index) =>
        dangling.has(index) ||
        mayEnd(steps[index]) ||
        graph[index]?.some((target) => !inside.has(target)) === true,
    );
    if (leaves) continue;
    const path = members[0]?.path ?? "";
    const loop = `the loop of ${nameSome(members.map(({ stepId }) => stepId ?? "?"))}`;
    if (component.every((index) => graph[index]?.length === 1)) {
      const message = `${loop} goes round for ever: put a DELAY or an EVENT_WAIT into it, or a condition that leads out`;
      list.add(path, "CYCLE_WITHOUT_WAIT", message);
    } else {
      const message = `${loop} goes round for ever: none of its conditions leads out of it`;
      list.warn(path, "ENDLESS_CYCLE", message);
    }
  }
}

/** Edges that the search for reads that come too early may follow: some 50 ms. */
const maxSearch = 2_000_000;

/**
 * A step that is read on entering another must be able to come before it. One search per step that is
 * read, until the effort is spent: it is advice, and not worth more.
 */
function checkReads(
  { steps, byId }: Outline,
  { graph }: Ways,
  reads: readonly StepRead[],
  list: ProblemList,
): void {
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const behind = new Map<number, readonly boolean[]>();
  const cost = graph.length + graph.reduce((sum, targets) => sum + targets.length, 0);
  let effort = maxSearch;
  for (const { reader, stepIds, where } of reads) {
    for (const stepId of stepIds) {
      const step = byId.get(stepId);
      const own = step && indexOf.get(step);
      const pair = own === undefined ? undefined : inOneList(steps, own, reader);
      if (pair === undefined) continue;
      const [index, entered] = pair;
      let reached = behind.get(index);
      if (reached === undefined) {
        effort -= cost;
        if (effort < 0) return;
        reached = reachableByOne(graph, index);
        behind.set(index, reached);
      }
      if (reached[entered] === true) continue;
      const message = `${quote(stepId)} cannot have run when ${quote(steps[reader]?.stepId ?? "this step")} is entered, so this is always undefined`;
      for (const path of where(stepId)) list.warn(path, "NEVER_THERE", message);
    }
  }
}

/**
 * Two steps, or those around them, that stand in one list. Undefined where it is one and the same: they
 * are in two branches, or one is around the other.
 */
function inOneList(
  steps: readonly StepOutline[],
  one: number,
  other: number,
): readonly [number, number] | undefined {
  const around = (index: number): readonly number[] => {
    const chain: number[] = [];
    for (let at: number | undefined = index; at !== undefined; at = steps[at]?.parent) {
      chain.push(at);
    }
    return chain;
  };
  const others = around(other);
  for (const left of around(one)) {
    const right = others.find((each) => steps[each]?.list === steps[left]?.list);
    if (right === undefined) continue;
    return left === right && (left !== one || right !== other) ? undefined : [left, right];
  }
  return undefined;
}

/** What can be reached from a node by one edge or more; the node itself only round a cycle. */
function reachableByOne(graph: Graph, start: number): boolean[] {
  const targets = graph[start] ?? [];
  const beyond = graph.length;
  return reachable([...graph, targets], beyond).slice(0, beyond);
}

/** A step can be the end of its branch: an END, or one whose transitions have no default. */
function mayEnd(step: StepOutline | undefined): boolean {
  if (step === undefined) return false;
  return step.type === "END" || !step.edges.some(({ kind }) => kind === "default");
}

function nameSome(stepIds: readonly string[]): string {
  const shown = stepIds.slice(0, 5).map(quote).join(", ");
  return stepIds.length > 5 ? `${shown} and ${stepIds.length - 5} more` : shown;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
