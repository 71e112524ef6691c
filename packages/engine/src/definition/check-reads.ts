import type { Graph } from "./graph.ts";
import { reachable } from "./graph.ts";
import { inOneList } from "./in-one-list.ts";
import type { Pair } from "./in-one-list.ts";
import { reachedWithoutOutput, warnOfMissing } from "./missing-outputs.ts";
import type { Lack } from "./missing-outputs.ts";
import type { Outline, StepOutline } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import { tellingSteps } from "./telling-steps.ts";
import { quote } from "./value-checker.ts";
import type { StepRead, ValuesFound } from "./value-checker.ts";

// What steps read of one another: whether what is read can be there, and whether it is there on every
// way that leads to its reader.

/** Edges that the searches may follow, all together: some 50 ms. */
const maxSearch = 2_000_000;

/** One search per step that is read, until the effort is spent. */
export function checkReads(
  outline: Outline,
  graph: Graph,
  { reads, asked, closed }: ValuesFound,
  list: ProblemList,
): void {
  const { steps, byId } = outline;
  const indexOf = new Map(steps.map((step, index) => [step, index]));
  const cost = graph.length + graph.reduce((sum, targets) => sum + targets.length, 0);
  let effort = maxSearch;
  const once = <K>(search: (from: number, key: K) => readonly boolean[]) => {
    const found = new Map<string, readonly boolean[]>();
    return (from: number, key: K): readonly boolean[] | undefined => {
      const name = `${from} ${JSON.stringify(key)}`;
      const known = found.get(name);
      if (known !== undefined) return known;
      effort -= cost;
      if (effort < 0) return undefined;
      const reached = search(from, key);
      found.set(name, reached);
      return reached;
    };
  };
  const behind = once((from) => reachableByOne(graph, from));
  const ways = {
    indexOf,
    byId,
    steps,
    closed,
    isTelling: tellingSteps(outline, asked),
    known: new Map<string, boolean>(),
  };
  const without = once<Lack>((from, lack) => reachedWithoutOutput(ways, from, lack));

  for (const read of reads) {
    const reader = steps[read.reader ?? -1];
    for (const stepId of read.stepIds) {
      const step = byId.get(stepId);
      const own = step && indexOf.get(step);
      if (own === undefined) continue;
      if (reader !== undefined && read.reader !== undefined && read.moment !== "UNDO") {
        const pair = inOneList(steps, own, read.reader);
        const mayRun = pair === undefined || mayComeBefore(steps, pair, read.reader, read, behind);
        if (mayRun === undefined) return;
        const hasOutput = own !== read.reader || read.moment !== "FAILURE";
        if (!mayRun || (!hasOutput && read.outputs.includes(stepId))) {
          report(list, read, stepId, quote(reader.stepId ?? "this step"));
          continue;
        }
      }
      const bare = read.bare.filter((each) => each.stepId === stepId);
      warnOfMissing(bare, own, read, { ways, without, list });
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

/** Undefined when there is no effort left to find out. */
function mayComeBefore(
  steps: readonly StepOutline[],
  [step, reader]: Pair,
  evaluating: number,
  read: StepRead,
  behind: (from: number, key: unknown) => readonly boolean[] | undefined,
): boolean | undefined {
  // What is evaluated when the step has run may read its own output, and of what is inside it; when
  // an attempt has failed, its own error.
  if (step === reader && reader === evaluating && read.moment !== "ENTRY") return true;
  const later = behind(step, 0)?.[reader];
  if (later !== false) return later;
  // In an earlier pass through what is around both.
  for (let at = steps[step]?.parent; at !== undefined; at = steps[at]?.parent) {
    const again = behind(at, 0)?.[at];
    if (again !== false) return again;
  }
  return false;
}

/** What can be reached from a node by one edge or more; the node itself only round a cycle. */
function reachableByOne(graph: Graph, start: number): boolean[] {
  const targets = graph[start] ?? [];
  const beyond = graph.length;
  return reachable([...graph, targets], beyond).slice(0, beyond);
}
