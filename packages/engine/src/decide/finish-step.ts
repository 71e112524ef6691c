import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { TaskCall } from "../definition/definition.ts";
import { nextAttemptDelayMs, spread } from "../retry.ts";
import type { RetryPolicy } from "../retry.ts";
import type { Signal } from "../state/signal.ts";
import { taskError } from "../state/signal.ts";
import type { LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { completeCompensation, failCompensation, freezeWhenSettled, settleAwaited } from "./compensate.ts";
import { failInstance } from "./end.ts";
import type { Turn } from "./turn.ts";
import { dropTimer, putLive, removeLive, setTimer, updateExecution } from "./turn.ts";
import { after, clockMs, completeStep, failStep, noteStep, requestJob, settleCompleted, step, walk } from "./walk.ts";

/** What becomes of an execution when an attempt at it has ended, one way or another. */

export function succeed(turn: Turn, execution: LiveExecution, output: Json): void {
  if (execution.compensates !== undefined) {
    completeCompensation(turn, execution, output);
  } else if (execution.phase === "AWAITED") {
    settleCompleted(turn, step(turn, execution.stepId), execution, output);
    removeLive(turn, execution);
    freezeWhenSettled(turn);
  } else {
    removeLive(turn, execution);
    walk(turn, completeStep(turn, execution, output));
  }
}

export function failAttempt(
  turn: Turn,
  execution: LiveExecution,
  { failure, retry, attempt }: Extract<Signal, { kind: "stepFailed" }>,
): void {
  const error = taskError(failure, execution.stepId, attempt);
  retryOrFail(turn, execution, error, failure.retryable ? retry : undefined);
}

/** An attempt that ran too long is a failed attempt of type TIMEOUT (CONTRACT 1.3). */
export function timeOutAttempt(
  turn: Turn,
  execution: LiveExecution,
  { clock, retry, attempt }: Extract<Signal, { kind: "attemptTimedOut" }>,
): void {
  if (execution.phase === "AWAITED") {
    settleAwaited(turn, execution, "UNKNOWN");
    return;
  }
  abortAttempt(turn, execution, "the attempt timed out");
  const message =
    clock === "timeout"
      ? `the attempt ran longer than its timeout`
      : `the running task was silent for longer than its heartbeatTimeout`;
  retryOrFail(turn, execution, timeoutError(execution, attempt, message), retry);
}

export function timeoutError(
  { stepId }: LiveExecution,
  attempt: number | null,
  message: string,
): WorkflowError {
  return { kind: "TIMEOUT", type: "TIMEOUT", message, stepId, attempt, details: null };
}

/** Its workers died of it, again and again: for an operator to see (CONTRACT 2, POISONED). */
export function poison(turn: Turn, execution: LiveExecution, deliveries: number): void {
  const error: WorkflowError = {
    kind: "POISONED",
    type: "POISONED",
    message: `step "${execution.stepId}" was given to ${deliveries} workers, and each died while running it`,
    stepId: execution.stepId,
    attempt: execution.attempt,
    details: { deliveries },
  };
  if (execution.compensates !== undefined) {
    failCompensation(turn, execution, error);
  } else if (execution.phase === "AWAITED") {
    settleAwaited(turn, execution, "UNKNOWN");
  } else {
    updateExecution(turn, execution, { status: "FAILED", error, completedAt: turn.now });
    noteStep(turn, "workflow.step.failed", execution, { error: { ...error } });
    removeLive(turn, execution);
    failInstance(turn, error);
  }
}

/** RETRYING where the policy has another attempt, else FAILED for good. */
export function retryOrFail(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  retry: RetryPolicy | undefined,
): void {
  if (execution.phase === "AWAITED") {
    settleAwaited(turn, execution, "CANCELLED");
    return;
  }
  const delayMs = retry && delayOfNextAttempt(turn, execution, error, retry);
  if (delayMs === undefined) failForGood(turn, execution, error);
  else retryLater(turn, execution, error, delayMs);
}

/** The step has no attempt left: compensation goes on with the next one, a workflow by `onError`. */
export function failForGood(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  if (execution.compensates !== undefined) {
    failCompensation(turn, execution, error);
    return;
  }
  removeLive(turn, execution);
  walk(turn, failStep(turn, execution, error));
}

function delayOfNextAttempt(
  turn: Turn,
  { path, iteration, attempt }: LiveExecution,
  error: WorkflowError,
  retry: RetryPolicy,
): number | undefined {
  if (retry.nonRetryableErrors.includes(error.type)) return undefined;
  const random = spread(`${turn.state.id}.${path}.${iteration}.${attempt}`);
  return nextAttemptDelayMs(retry, attempt, random);
}

function retryLater(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  delayMs: number,
): void {
  const next = dropTimer(turn, { ...execution, attempt: execution.attempt + 1 }, "schedule");
  const retryAt = after(turn, delayMs);
  updateExecution(turn, next, { status: "RETRYING", error, retryAt });
  putLive(turn, withScheduleClock(turn, next, delayMs));
  requestJob(turn, callOf(turn, next), next, delayMs);
  noteStep(turn, "workflow.step.retrying", next, {
    attempt: execution.attempt,
    error: { ...error },
    retryAt: retryAt.toISOString(),
  });
}

/** The schedule-to-start clock begins again when the next attempt becomes due. */
function withScheduleClock(turn: Turn, execution: LiveExecution, delayMs: number): LiveExecution {
  const scheduleMs = clockMs(turn, callOf(turn, execution).scheduleTimeout);
  if (scheduleMs === null) return execution;
  setTimer(turn, "schedule", execution, after(turn, delayMs + scheduleMs));
  return { ...execution, timers: [...execution.timers, "schedule"] };
}

function callOf(turn: Turn, { stepId, compensates }: LiveExecution): TaskCall {
  const { steps, compensationSteps } = turn.definition;
  const call = compensates === undefined ? steps.get(stepId) : compensationSteps.get(stepId);
  return defined(call, stepId) as TaskCall;
}

export function abortAttempt(
  turn: Turn,
  { path, iteration }: LiveExecution,
  reason: string,
): void {
  turn.aborts.set(`${path}#${iteration}`, { kind: "abort", path, iteration, reason });
}
