import type { Json } from "@millrace/expressions";
import { nextAttemptDelayMs, spread } from "../retry.ts";
import type { RetryPolicy } from "../retry.ts";
import type { Signal } from "../state/signal.ts";
import { taskError } from "../state/signal.ts";
import type { LiveExecution, WorkflowError } from "../state/snapshot.ts";
import {
  completeCompensation,
  failCompensation,
  poisonCompensation,
  freezeWhenSettled,
  noteUnknown,
  settleAwaited,
} from "./compensate.ts";
import { abortAttempt, callOf, requestJob } from "./dispatch.ts";
import { openDeadLetter } from "./dead-letter.ts";
import { failPoisoned } from "./end.ts";
import { after, clockMs, isValueError } from "./evaluate.ts";
import { settleCompleted, settleFailed } from "./execution.ts";
import { evaluatedPolicy } from "./retry-interval.ts";
import { putLive, removeLive } from "./live-executions.ts";
import { hold, isPaused, pauseExhausted } from "./pause.ts";
import { dropTimer, setTimer } from "./set-timers.ts";
import { noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { goAstray, goOn, routeOf, stepOf } from "./walk.ts";
import { updateExecution } from "./write-rows.ts";

/** What becomes of an execution when an attempt at it has ended, one way or another. */

export function succeed(turn: Turn, execution: LiveExecution, output: Json): void {
  if (execution.compensates !== undefined) {
    completeCompensation(turn, execution, output);
    return;
  }
  removeLive(turn, execution);
  if (execution.phase === "AWAITED") {
    settleCompleted(turn, stepOf(turn, execution.stepId), execution, output);
    freezeWhenSettled(turn);
  } else {
    goOn(turn, execution, output);
  }
}

export function failAttempt(
  turn: Turn,
  execution: LiveExecution,
  { failure, retry, attempt }: Extract<Signal, { kind: "stepFailed" }>,
): void {
  const error = taskError(failure, execution.stepId, attempt);
  if (execution.phase === "AWAITED") settleAwaited(turn, execution, "CANCELLED");
  else retryOrFail(turn, execution, error, failure.retryable ? retry : undefined);
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
      ? "the attempt ran longer than its timeout"
      : "the running task was silent for longer than its heartbeatTimeout";
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
  const { stepId, attempt } = execution;
  const error: WorkflowError = {
    kind: "POISONED",
    type: "POISONED",
    message: `step "${stepId}" was given to ${deliveries} workers, and each died while running it; its dead letter says of what, and where their logs tell of it`,
    stepId,
    attempt,
    details: { deliveries },
  };
  if (execution.compensates !== undefined) {
    poisonCompensation(turn, execution, error);
    openDeadLetter(turn, execution, error);
  } else if (execution.phase === "AWAITED") {
    settleAwaited(turn, execution, "UNKNOWN");
  } else {
    removeLive(turn, execution);
    settleFailed(turn, execution, error);
    noteUnknown(turn, execution);
    if (isPaused(turn)) hold(turn, execution, error);
    else failPoisoned(turn, execution, error);
  }
}

/** RETRYING where the policy has another attempt, else FAILED for good. */
function retryOrFail(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  retry: RetryPolicy | undefined,
): void {
  const delayMs = retry && delayOfNextAttempt(turn, execution, error, retry);
  if (typeof delayMs === "object") failForGood(turn, execution, delayMs);
  else if (delayMs !== undefined) retryLater(turn, execution, error, delayMs);
  else if (retry !== undefined && isParked(turn, execution, error, retry))
    park(turn, execution, error);
  else {
    // What has timed out may still be at it.
    if (error.kind === "TIMEOUT") noteUnknown(turn, execution);
    failForGood(turn, execution, error);
  }
}

/** Retries are spent, and no step of the workflow takes the error: it is for an operator (CONTRACT 1.3). */
function isParked(
  turn: Turn,
  { stepId, compensates }: LiveExecution,
  error: WorkflowError,
  { onExhausted, nonRetryableErrors }: RetryPolicy,
): boolean {
  if (onExhausted !== "PAUSE" || compensates !== undefined) return false;
  return (
    !nonRetryableErrors.includes(error.type) && routeOf(stepOf(turn, stepId), error) === undefined
  );
}

/** The same execution has another round of attempts, once somebody resumes or retries the instance. */
function park(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  retryLater(turn, { ...execution, round: execution.attempt }, error, 0);
  pauseExhausted(turn, execution, error);
}

/** The step has no attempt left: compensation goes on with the next one, a workflow by `onError`. */
export function failForGood(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  if (execution.compensates !== undefined) {
    failCompensation(turn, execution, error);
    return;
  }
  removeLive(turn, execution);
  goAstray(turn, execution, error);
}

function delayOfNextAttempt(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  retry: RetryPolicy,
): number | WorkflowError | undefined {
  const { path, iteration, attempt, round = 0 } = execution;
  if (retry.nonRetryableErrors.includes(error.type)) return undefined;
  const made = attempt - round;
  if (made >= retry.maxAttempts) return undefined;
  const policy = evaluatedPolicy(turn, execution, callOf(turn, execution), retry, error);
  if ("kind" in policy) return policy;
  const random = spread(`${turn.state.id}.${path}.${iteration}.${attempt}`);
  return nextAttemptDelayMs(policy, made, random);
}

/** The schedule-to-start clock begins again when the next attempt becomes due. */
function retryLater(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  delayMs: number,
): void {
  const next = dropTimer(turn, { ...execution, attempt: execution.attempt + 1 }, "schedule");
  const retryAt = after(turn, delayMs);
  updateExecution(turn, next, { status: "RETRYING", error, retryAt });
  const scheduleMs = scheduleClockMs(turn, next);
  if (scheduleMs === null) {
    putLive(turn, next);
  } else {
    setTimer(turn, "schedule", next, after(turn, delayMs + scheduleMs));
    putLive(turn, { ...next, timers: [...next.timers, "schedule"] });
  }
  requestJob(turn, callOf(turn, next), next, delayMs);
  noteStep(turn, "workflow.step.retrying", next, {
    attempt: execution.attempt,
    error: { ...error },
    retryAt: retryAt.toISOString(),
  });
}

/** Its value was good when the step was entered; should it fail now, the attempt has no such clock. */
function scheduleClockMs(turn: Turn, execution: LiveExecution): number | null {
  try {
    return clockMs(turn, callOf(turn, execution).scheduleTimeout, execution);
  } catch (thrown) {
    if (isValueError(thrown)) return null;
    throw thrown;
  }
}
