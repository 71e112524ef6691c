import { defined } from "../assert.ts";
import { inOneList } from "./in-one-list.ts";
import type { StepOutline } from "./outline.ts";
import { fieldsOf, itemsOf } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import type { IsTelling } from "./telling-steps.ts";
import { hasItems, mayBeLast } from "./unavoidable.ts";
import { quote } from "./value-checker.ts";
import type { BareRead, StepRead } from "./value-checker.ts";

// Outputs that are there on some of the ways to their readers, and on others not.

export interface Ways {
  readonly indexOf: ReadonlyMap<StepOutline, number>;
  readonly byId: ReadonlyMap<string, StepOutline>;
  readonly steps: readonly StepOutline[];
  /** JSON pointers of the targets of ways that are never taken. */
  readonly closed: ReadonlySet<string>;
  readonly isTelling: IsTelling;
  /** What was found out once. */
  readonly known: Map<string, boolean>;
}

/** What is looked for on the ways past a step of a list. */
export interface Lack {
  /** The step whose output is read: the one on the way, or one inside of it. */
  readonly of: number;
  /** The one on the way may complete without it. */
  readonly passes: boolean;
}
type Without = (from: number, lack: Lack) => readonly boolean[] | undefined;

export interface Looking {
  readonly ways: Ways;
  readonly without: Without;
  readonly list: ProblemList;
}

/** @param bare Reads of the output of the step `own`, or of members of it. */
export function warnOfMissing(
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

/** The steps that are reached from the first one of a step's list while an output is not there. */
export function reachedWithoutOutput(
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
