import { defined } from "../assert.ts";
import type { Graph } from "./graph.ts";
import { reachable } from "./graph.ts";
import type { Outline, StepOutline } from "./outline.ts";
import { fieldsOf, itemsOf } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import { sources } from "./value-checker.ts";
import type { BareRead, StepRead, ValuesFound } from "./value-checker.ts";
import { hasItems, mayBeLast } from "./unavoidable.ts";

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

interface Looking {
  readonly ways: Ways;
  readonly without: Without;
  readonly list: ProblemList;
}

/** @param bare Reads of the output of the step `own`, or of members of it. */
function warnOfMissing(
  bare: readonly BareRead[],
  own: number,
  read: StepRead,
  { ways, without, list }: Looking,
): void {
  const { reader } = read;
  const found = new Map<boolean, string | undefined>();
  const why = (ofBranch: boolean): string | undefined => {
    if (!found.has(ofBranch)) {
      const missing =
        reader === undefined
          ? whyMissingAtEnd(own, ofBranch, ways, without)
          : whyMissing(own, reader, ofBranch, ways, without);
      found.set(ofBranch, missing);
    }
    return found.get(ofBranch);
  };
  const said = new Set<string>();
  for (const { path, member } of bare) {
    if (said.has(path)) continue;
    if (member !== undefined && !mayLoseBranch(ways, own, member)) continue;
    const reason = why(member !== undefined);
    if (reason === undefined) continue;
    said.add(path);
    const message = `${whatIsMissing(ways.steps, own, member, reason, read)}: then this is undefined; give a default with ?? or lead the way so that it has`;
    list.warn(path, "OUTPUT_MAY_BE_MISSING", message);
  }
}

function whatIsMissing(
  steps: readonly StepOutline[],
  own: number,
  branch: string | undefined,
  reason: string,
  { reader, moment }: StepRead,
): string {
  const name = quote(steps[own]?.stepId ?? "the step");
  const by = reader === undefined ? "the end" : quote(steps[reader]?.stepId ?? "this step");
  if (branch !== undefined) {
    return `the output of ${name} has no ${quote(branch)} where that branch is lost`;
  }
  if (moment === "UNDO") return `${name} may not have completed when ${by} is undone`;
  return `${name} ${reason} ${by}`;
}

/** A PARALLEL whose output leaves out a branch that is lost: that has failed, or others were enough. */
function mayLoseBranch(ways: Ways, own: number, name: string): boolean {
  const step = ways.steps[own];
  if (step === undefined || !losesBranches(step)) return false;
  const branches = itemsOf(step.fields["branches"]).map((each) => fieldsOf(each)["name"]);
  const index = branches.indexOf(name);
  return index >= 0 && isOptional(ways, own, index);
}

function isOptional(ways: Ways, own: number, branch: number): boolean {
  return remembered(ways.known, `${own} branch ${branch}`, () =>
    othersAreEnough(ways, own, branch),
  );
}

function remembered(known: Map<string, boolean>, name: string, find: () => boolean): boolean {
  const answer = known.get(name) ?? find();
  known.set(name, answer);
  return answer;
}

/** Whether a PARALLEL that does not need all of its branches can do without this one. */
function othersAreEnough({ steps, byId, ...ways }: Ways, own: number, branch: number) {
  const { fields, path } = defined(steps[own], "step");
  const { join } = fields;
  if (join === undefined || join === "ALL") return true;
  const { count = 1 } = fieldsOf(join);
  const completes = (start: StepOutline | undefined): boolean => {
    const seen = new Set<StepOutline>();
    const stack = start === undefined ? [] : [start];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (seen.has(at)) continue;
      seen.add(at);
      if (mayEnd(at, ways)) return true;
      stack.push(...at.edges.flatMap(({ to }) => byId.get(to) ?? []));
    }
    return false;
  };
  const others = itemsOf(fields["branches"]).flatMap((_, index) => {
    const first = steps.find((each) => each.path === `${path}/branches/${index}/steps/0`);
    return index !== branch && completes(first) ? [index] : [];
  });
  return typeof count === "number" && others.length >= count;
}

function losesBranches({ type, fields: { join = "ALL", onBranchError, branches } }: StepOutline) {
  if (type !== "PARALLEL" || itemsOf(branches).length < 2) return false;
  const { count } = fieldsOf(join);
  if (count === itemsOf(branches).length) return false;
  return join === "ALL" ? onBranchError === "CONTINUE" : true;
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

/** What is looked for on the ways past a step of a list. */
interface Lack {
  /** The step whose output is read: the one on the way, or one inside of it. */
  readonly of: number;
  /** The one on the way may complete without it. */
  readonly passes: boolean;
}
type Without = (from: number, lack: Lack) => readonly boolean[] | undefined;

/**
 * Why an output may be missing, to be followed by its reader's name.
 *
 * @param passes It may be there without the part of it that is read.
 */
function whyMissing(
  own: number,
  reader: number,
  passes: boolean,
  { steps, isTelling, ...ways }: Ways,
  without: Without,
): string | undefined {
  if (isTelling(reader, own)) return undefined;
  const pair = inOneList(steps, own, reader);
  if (pair === undefined) return "runs in another branch, and may be done or not before";
  const [step, entered] = pair;
  if (step === entered) return undefined;
  // A way that its own condition may close is looked at only where nothing around tells.
  for (let at = steps[reader]?.parent; at !== undefined; at = steps[at]?.parent) {
    if (isTelling(at, own)) return undefined;
  }
  const isPassed = passes || mayPass(own, step, { steps, isTelling, ...ways }, without);
  return without(step, { of: own, passes: isPassed })?.[entered] === true
    ? "has no output on one of the ways to"
    : undefined;
}

/** The same where the workflow completes: after a step without a way on, or at an END that gives no output. */
function whyMissingAtEnd(
  own: number,
  passes: boolean,
  ways: Ways,
  without: Without,
): string | undefined {
  const { steps, isTelling } = ways;
  let top = own;
  for (let at = steps[own]?.parent; at !== undefined; at = steps[at]?.parent) top = at;
  const isPassed = passes || mayPass(own, top, ways, without);
  const ends = without(top, { of: own, passes: isPassed })?.some((isReached, index) => {
    const step = steps[index];
    if (!isReached || step === undefined || isTelling(index, own)) return false;
    const { type, fields } = step;
    if (type === "END" && fields["condition"] === undefined) {
      return fields["outcome"] === "COMPLETED" && fields["output"] === undefined;
    }
    const isLeft = index !== top || isPassed || fields["condition"] !== undefined;
    return isLeft && mayEnd(step, ways);
  });
  return ends === true ? "has no output on one of the ways to" : undefined;
}

/** Whether a step can complete while one inside of it has no output. */
function mayPass(own: number, around: number, ways: Ways, without: Without): boolean {
  const name = `${own} in ${around}`;
  return remembered(ways.known, name, () => mayPassOnce(own, around, ways, without));
}

function mayPassOnce(own: number, around: number, ways: Ways, without: Without): boolean {
  const { steps, isTelling } = ways;
  for (let at = own; at !== around;) {
    const parent = steps[at]?.parent;
    const outer = steps[parent ?? -1];
    if (parent === undefined || outer === undefined) return false;
    if (losesBranches(outer) && isOptional(ways, parent, branchOf(steps[at], outer))) return true;
    const { items, tolerate = 0 } = outer.fields;
    if (outer.type === "MAP" && (tolerate !== 0 || !hasItems(items))) return true;
    const left = without(at, { of: own, passes: at !== own && mayPass(own, at, ways, without) });
    const isLeft = left?.some((isReached, index) => {
      const step = steps[index];
      if (!isReached || step === undefined || isTelling(index, own)) return false;
      return (index !== at || step.fields["condition"] !== undefined) && mayEnd(step, ways);
    });
    if (isLeft === true) return true;
    at = parent;
  }
  return false;
}

/** The position of the branch that a step stands in. */
function branchOf(step: StepOutline | undefined, { path }: StepOutline): number {
  return Number(step?.path.slice(path.length).split("/")[2]);
}

function mayEnd(step: StepOutline, { closed }: Pick<Ways, "closed">): boolean {
  if (step.type === "END" && step.fields["condition"] === undefined) return false;
  return mayBeLast(step, closed);
}

/** Whether the conditions of a step may know on which way it was reached, and so what has run. */
type IsTelling = (index: number, of: number) => boolean;

/**
 * They may where they ask for something that something else depends on too: other conditions, a step
 * that may have failed, a variable that is set on some way. A condition that alone asks for a thing
 * is where ways part.
 */
function tellingSteps(
  { steps, byId }: Outline,
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
    const target = steps[of]?.path ?? "";
    // Of what is around it, or inside: the one completes with the other.
    const concerns = (key: string): boolean => {
      const path = byId.get(key)?.path;
      if (path === undefined) return false;
      return path === target || path.startsWith(`${target}/`) || target.startsWith(`${path}/`);
    };
    return [...(asked.get(index) ?? [])].some(
      (key) => concerns(key) || (dependents.get(key) ?? 0) > 1,
    );
  };
}

interface Ways {
  readonly indexOf: ReadonlyMap<StepOutline, number>;
  readonly byId: ReadonlyMap<string, StepOutline>;
  readonly steps: readonly StepOutline[];
  /** JSON pointers of the targets of ways that are never taken. */
  readonly closed: ReadonlySet<string>;
  readonly isTelling: IsTelling;
  /** What was found out once. */
  readonly known: Map<string, boolean>;
}

/** The steps that are reached from the first one of a step's list while an output is not there. */
function reachedWithoutOutput(
  { indexOf, byId, steps, closed, isTelling }: Ways,
  step: number,
  { of, passes }: Lack,
): readonly boolean[] {
  const reached = steps.map(() => false);
  const stack = [steps[step]?.list.members[0] ?? step];
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    const current = steps[index];
    if (reached[index] === true || current === undefined) continue;
    reached[index] = true;
    for (const { kind, to, path } of current.edges) {
      if (closed.has(path)) continue;
      const succeeds = kind === "default" || kind === "condition";
      const isSkipped = kind === "default" && current.fields["condition"] !== undefined;
      if (index === step && succeeds && !isSkipped && !passes) continue;
      if (succeeds && isTelling(index, of)) continue;
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
