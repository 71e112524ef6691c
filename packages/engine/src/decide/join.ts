import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { MapStep, ParallelStep } from "../definition/definition.ts";
import { isInItem, prefixOf } from "../definition/paths.ts";
import { BadValueError } from "../errors.ts";
import type {
  LiveExecution,
  OpenBranches,
  OpenItems,
  Place,
  WorkflowError,
} from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { limitOf } from "./evaluate.ts";
import { comesAgain, insertInstant, outputTypes } from "./execution.ts";
import { liveExecution, putLive, removeLive } from "./live-executions.ts";
import { itemRows, outputsOf } from "./read-rows.ts";
import { evaluateTemplate } from "./scope.ts";
import { setTimer } from "./set-timers.ts";
import { stopExecution } from "./stop.ts";
import { move, noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { updateExecution } from "./write-rows.ts";

/**
 * PARALLEL and MAP: several branches or items at once, each with one execution live at a time.
 *
 *   OPEN ──► branches move on by themselves ──► each settles once ──► the last that counts joins
 *
 * The execution of the step itself stays live, OPEN, until it is joined. Whatever a branch still does
 * finds its place gone from then on, so that a join fires once.
 */

/** Items that one MAP can have (CONTRACT 1.1). */
const maxItems = 10_000;

/**
 * Steps of one instance that may be live before its MAPs begin items one by one: of MAPs inside MAPs each
 * could else have its hundreds at work, and those of three levels together a hundred million.
 */
const mostLive = 2_000;

/** Characters of a joined output as JSON: beyond this it would not be read again in good time. */
const maxOutput = 10_000_000;

/** A PARALLEL or MAP that is over: it is no longer live, and its row is to be settled. */
export type Joined =
  | { readonly execution: LiveExecution; readonly output: Json }
  | { readonly execution: LiveExecution; readonly error: WorkflowError };

export function openBranches(turn: Turn, current: ParallelStep, execution: LiveExecution): void {
  const { path, iteration } = execution;
  const limit = limitOf(turn, current, execution);
  insertInstant(turn, current.type, execution);
  open(turn, { ...execution, phase: "OPEN", branches: { completed: {}, failed: 0 } }, limit);
  for (const { name, start } of current.branches) {
    const within: Place = { path, iteration, at: name, last: null };
    move(turn, { kind: "enter", stepId: start, within });
  }
}

/**
 * @returns The output of a MAP that has nothing to do, and is done at once.
 * @throws ExpressionError, BadValueError
 */
export function openItems(
  turn: Turn,
  current: MapStep,
  execution: LiveExecution,
): readonly Json[] | undefined {
  const items = evaluateTemplate(turn, current.items, execution);
  if (!isList(items)) throw new BadValueError(`items must be an array, not ${kindOf(items)}`);
  const count = items.length;
  if (count > maxItems) {
    throw new BadValueError(`a MAP takes at most ${maxItems} items, and there are ${count}`);
  }
  const limit = limitOf(turn, current, execution);
  insertInstant(turn, current.type, execution, items);
  if (count === 0) return [];
  if (!isInItem(execution.path)) turn.state.begunItems += count;
  const after = turn.state.completions;
  const progress = { count, next: 0, completed: 0, failed: 0, failedItems: "", after };
  const opened = open(turn, { ...execution, phase: "OPEN", items: progress }, limit);
  startItems(turn, opened, progress);
  return undefined;
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function kindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return String(value);
  return typeof value === "object" ? "an object" : JSON.stringify(value).slice(0, 80);
}

/** @param limit When it is out of time, whatever its branches are doing then. */
function open(turn: Turn, given: LiveExecution, limit: Date | null): LiveExecution {
  const execution: LiveExecution = limit === null ? given : { ...given, timers: ["total"] };
  if (limit !== null) setTimer(turn, "total", execution, limit);
  updateExecution(turn, execution, { status: "RUNNING" });
  putLive(turn, execution);
  noteStep(
    turn,
    "workflow.step.opened",
    execution,
    execution.items && { items: execution.items.count },
  );
  return execution;
}

/** Whether a branch still counts: what it is a branch of has not been joined, stopped or failed. */
export function isOpen(turn: Turn, { path, iteration }: Place): boolean {
  return liveExecution(turn, path, iteration)?.phase === "OPEN";
}

/** A branch or item has come to its end. Undefined where others have to settle first. */
export function endBranch(turn: Turn, within: Place): Joined | undefined {
  const { execution, current } = around(turn, within);
  if (current.type === "MAP") {
    const items = itemsOf(execution);
    countItem(turn, execution);
    return settleItem(turn, current, execution, within, {
      ...items,
      completed: items.completed + 1,
    });
  }
  const { completed, failed } = branchesOf(execution);
  const branches = { completed: { ...completed, [within.at]: within.last }, failed };
  return settleBranch(turn, current, execution, branches, undefined);
}

/** A branch or item has failed for good: no step of it took the error. */
export function failBranch(turn: Turn, within: Place, error: WorkflowError): Joined | undefined {
  const { execution, current } = around(turn, within);
  if (current.type === "MAP") {
    const { failed, failedItems, ...items } = itemsOf(execution);
    const settled: OpenItems = {
      ...items,
      failed: failed + 1,
      failedItems: withItem(failedItems, Number(within.at)),
    };
    countItem(turn, execution);
    if (failed >= current.tolerate) return failJoin(turn, { ...execution, items: settled }, error);
    return settleItem(turn, current, execution, within, settled);
  }
  const { completed, failed } = branchesOf(execution);
  return settleBranch(turn, current, execution, { completed, failed: failed + 1 }, error);
}

/** For progress. What is inside an item counts with the item. */
function countItem({ state }: Turn, { path }: LiveExecution): void {
  if (!isInItem(path)) state.completedSteps += 1;
}

function around(turn: Turn, { path, iteration }: Place) {
  const execution = defined(liveExecution(turn, path, iteration), `execution ${path}`);
  const current = defined(turn.definition.steps.get(execution.stepId), execution.stepId);
  return { execution, current: current as ParallelStep | MapStep };
}

function branchesOf({ branches, path }: LiveExecution): OpenBranches {
  return defined(branches, `branches of ${path}`);
}

function itemsOf({ items, path }: LiveExecution): OpenItems {
  return defined(items, `items of ${path}`);
}

/** @param error Of the branch that settled just now, if it failed. */
function settleBranch(
  turn: Turn,
  current: ParallelStep,
  execution: LiveExecution,
  branches: OpenBranches,
  error: WorkflowError | undefined,
): Joined | undefined {
  const { join, failsWithBranch } = current;
  const completed = Object.keys(branches.completed).length;
  const running = current.branches.length - completed - branches.failed;
  if (join === "ALL") {
    if (error !== undefined && failsWithBranch) return failJoin(turn, execution, error);
    if (running === 0) return joinBranches(turn, current, execution, branches);
  } else {
    if (completed >= join) return joinBranches(turn, current, execution, branches);
    if (error !== undefined && completed + running < join) return failJoin(turn, execution, error);
  }
  putLive(turn, { ...execution, branches });
  return undefined;
}

function joinBranches(
  turn: Turn,
  current: ParallelStep,
  execution: LiveExecution,
  { completed }: OpenBranches,
): Joined {
  const outputs = outputsOf(
    turn,
    Object.values(completed).flatMap((last) => last ?? []),
  );
  const output = Object.fromEntries(
    current.branches.flatMap(({ name }): [string, Json][] => {
      if (!Object.hasOwn(completed, name)) return [];
      const last = completed[name] ?? null;
      return [[name, last === null ? null : (outputs.get(last) ?? null)]];
    }),
  );
  close(turn, execution, "enough branches have completed");
  return joined(execution, output);
}

/** Each output is bounded, and what they are together too. */
function joined(execution: LiveExecution, output: Json): Joined {
  const size = JSON.stringify(output).length;
  if (size <= maxOutput) return { execution, output };
  const { stepId } = execution;
  const message = `the output of step "${stepId}" would be ${size} characters of JSON, and at most ${maxOutput} are kept; let its branches or items give less`;
  const error: WorkflowError = {
    kind: "LIMIT",
    type: "OUTPUT_TOO_LARGE",
    message,
    stepId,
    attempt: null,
    details: null,
  };
  return { execution, error };
}

function failJoin(turn: Turn, execution: LiveExecution, error: WorkflowError): Joined {
  close(turn, execution, `another branch failed: ${error.message}`);
  return { execution, error };
}

/** What is still live of its branches is stopped; then it is not live any more itself. */
export function close(turn: Turn, execution: LiveExecution, reason: string): void {
  // Its parents are still live here, so that every one of them is found.
  for (const each of liveInside(turn, execution)) stopExecution(turn, each, reason, true);
  removeLive(turn, execution);
}

/** What is live in its branches or items, and in theirs. */
export function liveInside(
  turn: Turn,
  { path, iteration }: LiveExecution,
): readonly LiveExecution[] {
  const key = executionKey(path, iteration);
  return Object.values(turn.state.live).filter((each) => isInside(turn, each, key));
}

function isInside(turn: Turn, { within, phase }: LiveExecution, key: string): boolean {
  // One that has its grace has left its branch already.
  if (phase === "AWAITED") return false;
  for (let place = within; place !== undefined;) {
    if (executionKey(place.path, place.iteration) === key) return true;
    place = liveExecution(turn, place.path, place.iteration)?.within;
  }
  return false;
}

// Items

function settleItem(
  turn: Turn,
  current: MapStep,
  execution: LiveExecution,
  within: Place,
  items: OpenItems,
): Joined | undefined {
  forgetItem(turn, current, within);
  if (items.completed + items.failed < items.count) {
    startItems(turn, execution, items);
    return undefined;
  }
  const settled = { ...execution, items };
  const output = outputsOfItems(turn, settled, items);
  close(turn, settled, "every item has settled");
  return joined(settled, output);
}

/** Items begin in their order, as many as may be at work. */
function startItems(turn: Turn, execution: LiveExecution, items: OpenItems): void {
  const { path, iteration } = execution;
  const current = turn.definition.steps.get(execution.stepId) as MapStep;
  const settled = items.completed + items.failed;
  const room = mostLive - turn.busy - turn.agenda.length;
  // One at least, so that each MAP goes on.
  const most = Math.max(items.next + room, settled + 1);
  const next = Math.min(items.count, settled + current.maxConcurrency, most);
  for (let at = items.next; at < next; at++) {
    move(turn, {
      kind: "enter",
      stepId: current.start,
      within: { path, iteration, at, last: null },
    });
  }
  putLive(turn, { ...execution, items: { ...items, next: Math.max(items.next, next) } });
}

/** The passes of its loops are counted no longer, unless the MAP can come again and count on. */
function forgetItem({ definition, state }: Turn, current: MapStep, within: Place): void {
  if (comesAgain(definition, current)) return;
  const prefix = prefixOf(within);
  const kept = Object.entries(state.iterations).filter(([path]) => !path.startsWith(prefix));
  if (kept.length < Object.keys(state.iterations).length)
    state.iterations = Object.fromEntries(kept);
}

/** In the order of the items; null for one that failed, and for one whose steps have no output. */
function outputsOfItems(turn: Turn, execution: LiveExecution, items: OpenItems): readonly Json[] {
  const stepIds = [...turn.definition.steps.values()]
    .filter(
      (step) => outputTypes.has(step.type) && step.lineage.at(-1)?.stepId === execution.stepId,
    )
    .map(({ stepId }) => stepId);
  const rows = itemRows(turn, execution, items.after, stepIds);
  return Array.from({ length: items.count }, (_, at) =>
    hasItem(items.failedItems, at) ? null : (rows.get(at)?.output ?? null),
  );
}

function withItem(set: string, at: number): string {
  const digit = at >> 2;
  const padded = set.padEnd(digit + 1, "0");
  const value = digitAt(padded, digit) | (1 << (at & 3));
  return padded.slice(0, digit) + value.toString(16) + padded.slice(digit + 1);
}

function hasItem(set: string, at: number): boolean {
  return (digitAt(set, at >> 2) & (1 << (at & 3))) !== 0;
}

function digitAt(set: string, digit: number): number {
  return Number.parseInt(set[digit] ?? "0", 16);
}
