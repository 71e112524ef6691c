import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { CompensationStep } from "../definition/definition.ts";
import type { ExecutionRead } from "../state/reads.ts";
import type { Compensation, LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { callOf, dispatchTask } from "./dispatch.ts";
import { clockMs, expressionError, isValueError } from "./evaluate.ts";
import { insertInstant } from "./execution.ts";
import { removeLive } from "./live-executions.ts";
import { everyExecution, observeStatus, wholeExecutionOf } from "./read-rows.ts";
import { evaluateCondition, evaluateTemplate } from "./scope.ts";
import { everyStep } from "./step-views.ts";
import { note, noteStep, settle } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { updateExecution } from "./write-rows.ts";

/**
 * Undoing what was done, in reverse order of completion (CONTRACT 1 and 2, PROMISES P9).
 *
 *   begin ──► await what is in flight ──► freeze the plan ──► one step at a time ──► settle
 *
 * Every compensation step is a durable step execution of its own, so that a crash loses nothing.
 */

/** Upper bound of the wait for a step in flight (DESIGN, Cancel, failure and the step in flight). */
export const cancelGraceMs = 30_000;

/** Outputs beyond this are left out of the default input's `workflowState` (CONTRACT 1). */
const stateOutputBytes = 65_536;

/** Milliseconds that a step in flight is awaited: its own timeout, at most 30 s. */
export function graceMs(turn: Turn, execution: LiveExecution): number {
  try {
    const ownMs = clockMs(turn, callOf(turn, execution).timeout, execution);
    return Math.min(ownMs ?? cancelGraceMs, cancelGraceMs);
  } catch (thrown) {
    if (isValueError(thrown)) return cancelGraceMs;
    throw thrown;
  }
}

/** An instance that has failed and is cancelled then goes on where its compensation has failed. */
export function beginCompensation(turn: Turn): void {
  const { compensation: earlier } = turn.state;
  turn.state.compensation = {
    status: "IN_PROGRESS",
    frozen: false,
    plan: [],
    targets: [],
    next: 0,
    completed: earlier?.completed ?? [],
    undone: earlier?.undone ?? [],
    failed: [],
    uncertain: turn.state.uncertain,
    startedAt: earlier?.startedAt ?? turn.now.toISOString(),
    completedAt: null,
  };
  note(turn, { type: "workflow.compensation.started" });
  freezeWhenSettled(turn);
}

/** A step in flight at the cancel came to nothing, or its outcome stays unknown. */
export function settleAwaited(
  turn: Turn,
  execution: LiveExecution,
  outcome: "CANCELLED" | "UNKNOWN",
): void {
  updateExecution(turn, execution, { status: "CANCELLED", completedAt: turn.now });
  removeLive(turn, execution);
  if (outcome === "UNKNOWN") noteUncertain(turn, execution);
  noteStep(turn, "workflow.step.cancelled", execution, { outcome });
  freezeWhenSettled(turn);
}

/** A step that could be undone came to an end of which nobody knows what it has done until then. */
export function noteUnknown(turn: Turn, execution: LiveExecution): void {
  if (turn.definition.compensationFor.has(execution.stepId)) noteUncertain(turn, execution);
}

/** A compensation names it: the one under way, or one that may follow. */
function noteUncertain(turn: Turn, { path }: LiveExecution): void {
  if (turn.state.uncertain.includes(path)) return;
  turn.state.uncertain = [...turn.state.uncertain, path];
  const { compensation, uncertain } = turn.state;
  if (compensation !== null) change(turn, { uncertain });
}

/**
 * What runs while the instance fails without being undone at once: nobody awaits it, so that a
 * compensation that follows can only say that its outcome is unknown.
 */
export function noteInFlight(turn: Turn): void {
  for (const execution of Object.values(turn.state.live)) {
    const { phase, stepId } = execution;
    if (!turn.definition.compensationFor.has(stepId)) continue;
    const isRunning = phase === "ACTIVE" && observeStatus(turn, execution) === "RUNNING";
    if (isRunning || phase === "AWAITED") noteUncertain(turn, execution);
  }
}

/** Freezes the plan once nothing is in flight any more, and starts its first step. */
export function freezeWhenSettled(turn: Turn): void {
  if (turn.state.compensation === null) return;
  const inFlight = Object.values(turn.state.live).some(({ phase }) => phase === "AWAITED");
  if (inFlight) return;
  change(turn, { frozen: true, ...freezePlan(turn) });
  startNext(turn);
}

/**
 * The completed executions that have a compensation step whose condition holds, latest completion
 * first. A condition that cannot be evaluated is a failed compensation; the rest still run.
 */
function freezePlan(turn: Turn): Pick<Compensation, "plan" | "targets" | "failed"> {
  const plan: string[] = [];
  const targets: string[] = [];
  const failed: Compensation["failed"][number][] = [];
  const undone = new Set(progress(turn).undone);
  for (const done of completedExecutions(turn)) {
    const compensation = turn.definition.compensationFor.get(done.stepId);
    const isUndone = undone.has(executionKey(done.path, done.iteration));
    if (compensation === undefined || isUndone) continue;
    const { stepId } = compensation;
    try {
      if (!conditionHolds(turn, compensation, done)) continue;
    } catch (thrown) {
      failed.push(failure(turn, stepId, expressionError(thrown, stepId, "condition")));
      continue;
    }
    plan.push(stepId);
    targets.push(executionKey(done.path, done.iteration));
  }
  return { plan, targets, failed };
}

function conditionHolds(
  turn: Turn,
  { condition }: CompensationStep,
  pinned: ExecutionRead,
): boolean {
  return condition === undefined || evaluateCondition(turn, condition, { pinned });
}

/** Latest completion first. @throws MissingReads */
function completedExecutions(turn: Turn): readonly ExecutionRead[] {
  if (turn.state.completions === 0) return [];
  return everyExecution(turn)
    .filter(({ completion }) => completion !== null)
    .toSorted((a, b) => (b.completion ?? 0) - (a.completion ?? 0));
}

/** Starts the next compensation step that can be started; settles when none is left. */
function startNext(turn: Turn): void {
  for (;;) {
    const { plan, targets, next } = progress(turn);
    const stepId = plan[next];
    if (stepId === undefined) return finish(turn);
    const execution: LiveExecution = {
      stepId,
      path: stepId,
      iteration: nextIterationOf(turn, stepId),
      phase: "ACTIVE",
      attempt: 1,
      timers: [],
      compensates: defined(targets[next], "compensation target"),
    };
    if (start(turn, execution)) return;
  }
}

/** A compensation step runs once for each execution that it undoes, and again where it is retried. */
function nextIterationOf({ state }: Turn, stepId: string): number {
  const iteration = (state.iterations[stepId] ?? 0) + 1;
  state.iterations = { ...state.iterations, [stepId]: iteration };
  return iteration;
}

/** False where the step's values failed: it is recorded, and the next one has its turn. */
function start(turn: Turn, execution: LiveExecution): boolean {
  const { stepId } = execution;
  const compensation = defined(turn.definition.compensationSteps.get(stepId), stepId);
  try {
    const pinned = wholeExecutionOf(turn, defined(execution.compensates, stepId));
    const input = inputOf(turn, compensation, pinned);
    dispatchTask(turn, compensation, execution, input, { pinned });
    return true;
  } catch (thrown) {
    const error = expressionError(thrown, stepId, "entering it");
    const untried = { ...execution, attempt: 0 };
    insertInstant(turn, "TASK", untried);
    settleFailed(turn, untried, error);
    return false;
  }
}

function inputOf(turn: Turn, { input }: CompensationStep, pinned: ExecutionRead): Json {
  if (input !== undefined) return evaluateTemplate(turn, input, { pinned }) ?? null;
  const { input: workflowInput, variables, cancellation } = turn.state;
  const steps = Object.fromEntries(
    Object.entries(everyStep(turn, { pinned, largeOutputs: false })).map(
      ([id, { output, ...view }]) => [id, fitsState(output) ? { ...view, output } : view],
    ),
  );
  return {
    originalOutput: pinned.output ?? null,
    workflowInput,
    workflowState: { input: workflowInput, variables, steps },
    cancellation: cancellation && { ...cancellation },
  };
}

function fitsState(output: Json | undefined): output is Json {
  return output !== undefined && JSON.stringify(output).length <= stateOutputBytes;
}

/** A compensation step succeeded. It has no completion number: it is not undone in its turn. */
export function completeCompensation(turn: Turn, execution: LiveExecution, output: Json): void {
  updateExecution(turn, execution, {
    status: "COMPLETED",
    output,
    error: null,
    completedAt: turn.now,
  });
  noteStep(turn, "workflow.compensation.step.completed", execution);
  removeLive(turn, execution);
  const { completed, undone, next } = progress(turn);
  change(turn, {
    completed: [...completed, execution.stepId],
    undone: [...undone, defined(execution.compensates, "compensation target")],
    next: next + 1,
  });
  startNext(turn);
}

/** A compensation step failed for good: it is recorded, and the rest still run. */
export function failCompensation(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  removeLive(turn, execution);
  settleFailed(turn, execution, error);
  startNext(turn);
}

/** It killed its workers: the compensation stands there until an operator has looked (dead-letter.ts). */
export function poisonCompensation(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
): void {
  removeLive(turn, execution);
  failExecution(turn, execution, error);
  change(turn, { poisoned: error });
}

/** It has failed, then, and the rest still run. */
export function leavePoisoned(turn: Turn, error: WorkflowError): void {
  moveOn(turn);
  const { plan, next } = progress(turn);
  noteFailed(turn, defined(plan[next], "compensation step"), error);
  startNext(turn);
}

/** It has failed, then, and so have the rest, of which nobody knows any more what they are. */
export function endUndefined(turn: Turn, error: WorkflowError): void {
  moveOn(turn);
  const { plan, next } = progress(turn);
  const [poisoned, ...rest] = plan.slice(next);
  noteFailed(turn, defined(poisoned, "compensation step"), error);
  for (const stepId of rest) noteFailed(turn, stepId, undefinedError(stepId));
  finish(turn);
}

function undefinedError(stepId: string): WorkflowError {
  const message = `the definition was not stored any more when step "${stepId}" was to undo another one`;
  return {
    kind: "DEFINITION",
    type: "DEFINITION_MISSING",
    message,
    stepId,
    attempt: null,
    details: null,
  };
}

export function tryPoisonedAgain(turn: Turn): void {
  moveOn(turn);
  startNext(turn);
}

function moveOn(turn: Turn): void {
  const { poisoned: _, ...compensation } = progress(turn);
  turn.state.compensation = compensation;
}

function settleFailed(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  failExecution(turn, execution, error);
  noteFailed(turn, execution.stepId, error);
}

function failExecution(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  updateExecution(turn, execution, { status: "FAILED", error, completedAt: turn.now });
  noteStep(turn, "workflow.compensation.step.failed", execution, { error: { ...error } });
}

function noteFailed(turn: Turn, stepId: string, error: WorkflowError): void {
  const { failed, next } = progress(turn);
  change(turn, { failed: [...failed, failure(turn, stepId, error)], next: next + 1 });
}

function failure(
  { now }: Turn,
  stepId: string,
  error: WorkflowError,
): Compensation["failed"][number] {
  return { stepId, error, timestamp: now.toISOString() };
}

function finish(turn: Turn): void {
  const status = progress(turn).failed.length > 0 ? "COMPLETED_WITH_ERRORS" : "COMPLETED";
  change(turn, { status, completedAt: turn.now.toISOString() });
  note(turn, { type: "workflow.compensation.completed", data: { status } });
  settle(turn);
}

function progress(turn: Turn): Compensation {
  return defined(turn.state.compensation, "compensation");
}

function change(turn: Turn, fields: Partial<Compensation>): void {
  turn.state.compensation = { ...progress(turn), ...fields };
}
