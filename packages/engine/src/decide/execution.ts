import type { Json } from "@millrace/expressions";
import type { Definition, Step } from "../definition/definition.ts";
import { isInItem, prefixOf } from "../definition/paths.ts";
import type { LiveExecution, Place, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { wholeExecutionOf } from "./read-rows.ts";
import { noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { insertExecution, nextEntry, updateExecution } from "./write-rows.ts";

/** How one execution of a step begins and settles. None of this moves the instance on. */

/** Steps whose output can become the instance's (CONTRACT 1, Default `output`). */
export const outputTypes: ReadonlySet<Step["type"]> = new Set([
  "TASK",
  "EVENT_WAIT",
  "PARALLEL",
  "MAP",
  "SUB_WORKFLOW",
]);

/** The next execution of a step, counted as begun. */
export function newExecution(turn: Turn, current: Step, within: Place | undefined): LiveExecution {
  const iteration = nextIteration(turn, current, within);
  const execution = placed(current, within, iteration);
  if (isCounted(turn, current, within)) {
    turn.state.iterations = { ...turn.state.iterations, [execution.path]: iteration };
  }
  return execution;
}

export function placed(
  { stepId }: Step,
  within: Place | undefined,
  iteration: number,
): LiveExecution {
  if (within === undefined) {
    return { stepId, path: stepId, iteration, phase: "ACTIVE", attempt: 1, timers: [] };
  }
  const path = prefixOf(within) + stepId;
  return { stepId, path, iteration, phase: "ACTIVE", attempt: 1, timers: [], within };
}

/**
 * Only steps on a cycle are counted, and those that are entered once more by a retry. Any other is entered
 * once by its branch or item, and has the iteration of the PARALLEL or MAP that it is inside of.
 */
export function nextIteration(turn: Turn, current: Step, within: Place | undefined): number {
  if (!isCounted(turn, current, within)) return within?.iteration ?? 1;
  const { stepId } = current;
  const { iterations } = turn.state;
  const path = within === undefined ? stepId : prefixOf(within) + stepId;
  return Object.hasOwn(iterations, path) ? (iterations[path] ?? 0) + 1 : 1;
}

function isCounted({ state }: Turn, { stepId, repeats }: Step, within: Place | undefined): boolean {
  return repeats || (within === undefined && Object.hasOwn(state.iterations, stepId));
}

/** The place of whatever follows a completed execution in its branch. */
export function placeAfter({ type }: Step, execution: LiveExecution): Place | undefined {
  const { within, path, iteration } = execution;
  if (within === undefined || !outputTypes.has(type)) return within;
  return { ...within, last: executionKey(path, iteration) };
}

/** The row of an execution that no worker runs; the status that it begins with is set next. */
export function insertInstant(
  turn: Turn,
  type: string,
  { stepId, path, iteration, attempt, compensates }: LiveExecution,
  input?: Json,
): void {
  insertExecution(turn, {
    stepId,
    path,
    iteration,
    type,
    status: "PENDING",
    attempt,
    taskId: null,
    queue: null,
    priority: 0,
    input,
    output: undefined,
    error: null,
    completion: null,
    items: undefined,
    timeoutMs: null,
    heartbeatTimeoutMs: null,
    startedAt: turn.now,
    completedAt: null,
    compensates: compensates ?? null,
    entry: nextEntry(turn, path),
  });
}

/** COMPLETED, with the next completion number. */
export function settleCompleted(
  turn: Turn,
  current: Step,
  execution: LiveExecution,
  output: Json | undefined,
): void {
  const { state, now } = turn;
  state.completions += 1;
  countStep(turn, current, execution);
  if (outputTypes.has(current.type)) {
    state.lastOutput = executionKey(execution.path, execution.iteration);
  }
  updateExecution(turn, execution, {
    status: "COMPLETED",
    output,
    error: null,
    completion: state.completions,
    completedAt: now,
  });
  noteStep(turn, "workflow.step.completed", execution);
}

/** For progress. What is inside an item counts with the item. */
function countStep(
  { definition, state }: Turn,
  current: Step,
  { path, iteration }: LiveExecution,
): void {
  if (isInItem(path)) return;
  // Of a step that does not come again a second execution is that of a retry.
  if (iteration > 1 || comesAgain(definition, current)) {
    if (state.countedSteps.includes(path)) return;
    state.countedSteps = [...state.countedSteps, path];
  }
  state.completedSteps += 1;
}

/** Whether it can have several executions under one path. */
export function comesAgain({ steps }: Definition, { repeats, lineage }: Step): boolean {
  return repeats || lineage.some(({ stepId }) => steps.get(stepId)?.repeats === true);
}

export function settleFailed(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  updateExecution(turn, execution, { status: "FAILED", error, completedAt: turn.now });
  noteStep(turn, "workflow.step.failed", execution, { error: { ...error } });
}

/**
 * FAILED in being left, after it had completed. It keeps what it has from there: its output, and the
 * completion number by which it is undone in its turn.
 *
 * @throws MissingReads
 */
export function settleUnleft(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  settleAnew(turn, execution, error);
}

/** COMPLETED once more, as it was before it failed in being left. @throws MissingReads */
export function takeUpAgain(turn: Turn, execution: LiveExecution): void {
  settleAnew(turn, execution, null);
}

function settleAnew(turn: Turn, execution: LiveExecution, error: WorkflowError | null): void {
  const { path, iteration } = execution;
  const { attempt, output, completion } = wholeExecutionOf(turn, executionKey(path, iteration));
  const settled = { ...execution, attempt };
  const status = error === null ? "COMPLETED" : "FAILED";
  updateExecution(turn, settled, { status, output, error, completion, completedAt: turn.now });
  if (error === null) noteStep(turn, "workflow.step.completed", settled);
  else noteStep(turn, "workflow.step.failed", settled, { error: { ...error } });
}

export function settleSkipped(turn: Turn, execution: LiveExecution): void {
  updateExecution(turn, execution, { status: "SKIPPED", completedAt: turn.now });
  noteStep(turn, "workflow.step.skipped", execution);
}
