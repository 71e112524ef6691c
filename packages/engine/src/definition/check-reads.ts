import type { Graph } from "./graph.ts";
import { reachable } from "./graph.ts";
import type { Outline, StepOutline } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import { sources } from "./value-checker.ts";
import type { ReadsFound, StepRead } from "./value-checker.ts";

// What steps read of one another: whether what is read can be there, and whether it is there on every
// way that leads to its reader.

/** Edges that the searches may follow, all together: some 50 ms. */
const maxSearch = 2_000_000;

/** One search per step that is read, until the effort is spent. */
export function checkReads(
  outline: Outline,
  graph: Graph,
  { reads, asked }: ReadsFound,
  list: ProblemList,
): void {
  const { steps, byId } = outline;
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const cost = graph.length + graph.reduce((sum, targets) => sum + targets.length, 0);
  let effort = maxSearch;
  const once = (search: (from: number) => readonly boolean[]) => {
    const found = new Map<number, readonly boolean[]>();
    return (from: number): readonly boolean[] | undefined => {
      const known = found.get(from);
      if (known !== undefined) return known;
      effort -= cost;
      if (effort < 0) return undefined;
      const reached = search(from);
      found.set(from, reached);
      return reached;
    };
  };
  const behind = once((from) => reachableByOne(graph, from));
  const ways = { indexOf, byId, steps, isTelling: tellingSteps(steps, asked) };
  const withoutOutput = once((from) => reachedWithoutOutput(ways, from));

  for (const read of reads) {
    const reader = steps[read.reader];
    for (const stepId of read.stepIds) {
      const step = byId.get(stepId);
      const own = step && indexOf.get(step);
      if (reader === undefined || own === undefined) continue;
      const pair = inOneList(steps, own, read.reader);
      const mayRun = pair === undefined || mayComeBefore(steps, pair, read, behind);
      if (mayRun === undefined) return;
      const name = quote(reader.stepId ?? "this step");
      const hasOutput = own !== read.reader || read.moment !== "FAILURE";
      if (!mayRun || (!hasOutput && read.outputs.includes(stepId))) {
        report(list, read, stepId, name);
        continue;
      }
      const bare = read.bare.filter((each) => each.stepId === stepId);
      if (bare.length === 0) continue;
      const why = whyMissing(pair, read.reader, own, steps, ways.isTelling, withoutOutput);
      if (why === undefined) continue;
      const message = `${quote(stepId)} ${why} ${name}: then this is undefined; give a default with ?? or lead the way so that it has`;
      for (const { path } of bare) list.warn(path, "OUTPUT_MAY_BE_MISSING", message);
    }
  }
}

function report(list: ProblemList, read: StepRead, stepId: string, reader: string): void {
  const isOutput = read.outputs.includes(stepId);
  const done = isOutput ? "completed" : "begun";
  const what = `${quote(stepId)} cannot have ${done} when ${reader} reads it, so this is always undefined`;
  for (const path of read.where(stepId)) {
    if (isOutput) {
      list.add(path, "OUTPUT_NEVER_THERE", `${what}; read a step that comes before`);
    } else list.warn(path, "NEVER_THERE", what);
  }
}

type Pair = readonly [step: number, reader: number];

/** Undefined when there is no effort left to find out. */
function mayComeBefore(
  steps: readonly StepOutline[],
  [step, reader]: Pair,
  read: StepRead,
  behind: (from: number) => readonly boolean[] | undefined,
): boolean | undefined {
  // What is evaluated when the step has run may read its own output, and of what is inside it; when
  // an attempt has failed, its own error.
  if (step === reader && reader === read.reader && read.moment !== "ENTRY") return true;
  if (behind(step)?.[reader] !== false) return behind(step)?.[reader];
  // In an earlier pass through what is around both.
  for (let at = steps[step]?.parent; at !== undefined; at = steps[at]?.parent) {
    if (behind(at)?.[at] !== false) return behind(at)?.[at];
  }
  return false;
}

/** Why an output may be missing, to be followed by its reader's name. */
function whyMissing(
  pair: Pair | undefined,
  reader: number,
  own: number,
  steps: readonly StepOutline[],
  isTelling: IsTelling,
  withoutOutput: (from: number) => readonly boolean[] | undefined,
): string | undefined {
  if (isTelling(reader, own)) return undefined;
  if (pair === undefined) return "runs in another branch, and may be done or not before";
  const [step, entered] = pair;
  // Of what is inside of another step it is not looked whether it always runs.
  if (step !== own || step === entered) return undefined;
  // A way that its own condition may close is looked at only where nothing around tells.
  for (let at = steps[reader]?.parent; at !== undefined; at = steps[at]?.parent) {
    if (isTelling(at, own)) return undefined;
  }
  return withoutOutput(step)?.[entered] === true
    ? "has no output on one of the ways to"
    : undefined;
}

/** Whether the conditions of a step may know on which way it was reached, and so what has run. */
type IsTelling = (index: number, of: number) => boolean;

/**
 * They may where they ask for something that something else depends on too: other conditions, a step
 * that may have failed, a variable that is set on some way. A condition that alone asks for a thing
 * is where ways part.
 */
function tellingSteps(
  steps: readonly StepOutline[],
  asked: ReadonlyMap<number, ReadonlySet<string>>,
): IsTelling {
  const dependents = new Map<string, number>();
  const count = (key: string): void => void dependents.set(key, (dependents.get(key) ?? 0) + 1);
  for (const [index, step] of steps.entries()) {
    const own = new Set(asked.get(index));
    const parts = step.edges.some(({ kind }) => kind === "error" || kind === "timeout");
    if (step.stepId !== undefined && (parts || step.fields["condition"] !== undefined)) {
      own.add(step.stepId);
    }
    if (step.type === "SET" || step.fields["eventPayloadMapping"] !== undefined) {
      own.add(sources.variables);
    }
    own.forEach(count);
  }
  return (index, of) => {
    const target = steps[of]?.stepId;
    return [...(asked.get(index) ?? [])].some(
      (key) => key === target || (dependents.get(key) ?? 0) > 1,
    );
  };
}

interface Ways {
  readonly indexOf: ReadonlyMap<StepOutline, number>;
  readonly byId: ReadonlyMap<string, StepOutline>;
  readonly steps: readonly StepOutline[];
  readonly isTelling: IsTelling;
}

/** The steps that are reached from the first one of its list while `step` has no output. */
function reachedWithoutOutput(
  { indexOf, byId, steps, isTelling }: Ways,
  step: number,
): readonly boolean[] {
  const reached = steps.map(() => false);
  const stack = [steps[step]?.list.members[0] ?? step];
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    const current = steps[index];
    if (reached[index] === true || current === undefined) continue;
    reached[index] = true;
    for (const { kind, to } of current.edges) {
      const succeeds = kind === "default" || kind === "condition";
      const isSkipped = kind === "default" && current.fields["condition"] !== undefined;
      if (index === step && succeeds && !isSkipped) continue;
      if (succeeds && isTelling(index, step)) continue;
      const target = byId.get(to);
      const next = target?.list === current.list ? indexOf.get(target) : undefined;
      if (next !== undefined) stack.push(next);
    }
  }
  // The first pass alone is no way from itself to itself.
  return reached;
}

/**
 * Two steps, or those around them, that stand in one list; one and the same where one is around the
 * other. Undefined where they are in two branches of one step.
 */
function inOneList(steps: readonly StepOutline[], one: number, other: number): Pair | undefined {
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
    return left === right && left !== one && right !== other ? undefined : [left, right];
  }
  return undefined;
}

/** What can be reached from a node by one edge or more; the node itself only round a cycle. */
function reachableByOne(graph: Graph, start: number): boolean[] {
  const targets = graph[start] ?? [];
  const beyond = graph.length;
  return reachable([...graph, targets], beyond).slice(0, beyond);
}

function quote(text: string): string {
  return JSON.stringify(text);
}
