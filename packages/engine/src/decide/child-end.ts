import type { Json } from "@millrace/expressions";
import type { SubWorkflowStep } from "../definition/definition.ts";
import { nextAttemptDelayMs, resolveRetryPolicy, spread } from "../retry.ts";
import type { ChildEnd, ChildRef, Signal } from "../state/signal.ts";
import type { JsonObject, LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { workflowCalled } from "./called.ts";
import { awaitChild, cancelChild, startChild } from "./child.ts";
import { freezeWhenSettled, settleAwaited } from "./compensate.ts";
import { after, clockMs, isValueError } from "./evaluate.ts";
import { settleCompleted } from "./execution.ts";
import { timeoutError } from "./finish-step.ts";
import { liveExecution, putLive, removeLive } from "./live-executions.ts";
import { pauseExhausted } from "./pause.ts";
import { evaluatedPolicy } from "./retry-interval.ts";
import { dropTimer, setTimer } from "./set-timers.ts";
import { noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { goAstray, goOn, routeOf, stepOf } from "./walk.ts";
import { updateExecution } from "./write-rows.ts";

/** What becomes of a SUB_WORKFLOW step when its child has settled, or will never be. */

/** Levels of the details of an error that are handed up. */
const maxDetailLevels = 32;

/** The child has settled: its output is the step's, its failure the step's error. */
export function takeChildEnd(turn: Turn, signal: Extract<Signal, { kind: "childEnded" }>): void {
  const execution = executionWith(turn, signal);
  if (execution === undefined) return;
  if (signal.status === "COMPLETED") {
    complete(turn, execution, signal.output);
    return;
  }
  const current = stepOf(turn, execution.stepId) as SubWorkflowStep;
  const error = errorOf(current, execution, signal);
  fail(turn, execution, error, signal.status === "FAILED" ? current.retry : undefined);
}

/** The child was never started: another try would come to the same. */
export function refuseChild(turn: Turn, signal: Extract<Signal, { kind: "childRefused" }>): void {
  const execution = executionWith(turn, signal);
  if (execution === undefined) return;
  const { stepId, attempt } = execution;
  fail(turn, execution, { ...signal.error, stepId, attempt }, undefined);
}

/** The execution that waits for this very child. */
function executionWith(
  turn: Turn,
  { path, iteration, childId }: ChildRef,
): LiveExecution | undefined {
  const execution = liveExecution(turn, path, iteration);
  return execution?.child === childId ? execution : undefined;
}

function complete(turn: Turn, execution: LiveExecution, output: Json): void {
  removeLive(turn, execution);
  if (execution.phase === "AWAITED") {
    settleCompleted(turn, stepOf(turn, execution.stepId), execution, output);
    freezeWhenSettled(turn);
  } else {
    goOn(turn, execution, output);
  }
}

function fail(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  retry: SubWorkflowStep["retry"],
): void {
  if (execution.phase === "AWAITED") {
    settleAwaited(turn, execution, "CANCELLED");
    return;
  }
  const delayMs = retry && delayOfNextChild(turn, execution, error, retry);
  if (typeof delayMs === "object") {
    removeLive(turn, execution);
    goAstray(turn, execution, delayMs);
    return;
  }
  if (delayMs !== undefined) {
    retryLater(turn, execution, error, delayMs);
    return;
  }
  const isRouted = routeOf(stepOf(turn, execution.stepId), error) !== undefined;
  const isFinal = retry?.nonRetryableErrors?.includes(error.type) === true;
  if (retry?.onExhausted === "PAUSE" && !isRouted && !isFinal) {
    retryLater(turn, { ...execution, round: execution.attempt }, error, 0);
    pauseExhausted(turn, execution, error);
    return;
  }
  removeLive(turn, execution);
  goAstray(turn, execution, error);
}

/** Only where the step itself asks for it (docs/decisions, 0009). */
function delayOfNextChild(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  retry: NonNullable<SubWorkflowStep["retry"]>,
): number | WorkflowError | undefined {
  const { path, iteration, attempt, round = 0 } = execution;
  const policy = resolveRetryPolicy(retry);
  if (policy.nonRetryableErrors.includes(error.type)) return undefined;
  const made = attempt - round;
  if (made >= policy.maxAttempts) return undefined;
  const current = stepOf(turn, execution.stepId) as SubWorkflowStep;
  const evaluated = evaluatedPolicy(turn, execution, current, policy, error);
  if ("kind" in evaluated) return evaluated;
  const random = spread(`${turn.state.id}.${path}.${iteration}.${attempt}`);
  return nextAttemptDelayMs(evaluated, made, random);
}

function retryLater(
  turn: Turn,
  { child: _settled, ...execution }: LiveExecution,
  error: WorkflowError,
  delayMs: number,
): void {
  const { timers, ...rest } = dropTimer(turn, execution, "attempt");
  const attempt = execution.attempt + 1;
  const next: LiveExecution = { ...rest, attempt, timers: [...timers, "retry"] };
  const retryAt = after(turn, delayMs);
  updateExecution(turn, next, { status: "RETRYING", error, retryAt });
  putLive(turn, next);
  setTimer(turn, "retry", next, retryAt);
  noteStep(turn, "workflow.step.retrying", next, {
    attempt: execution.attempt,
    error: { ...error },
    retryAt: retryAt.toISOString(),
  });
}

/** The next child, with the input of the first. */
export function retryChild(turn: Turn, execution: LiveExecution): void {
  const current = stepOf(turn, execution.stepId) as SubWorkflowStep;
  const next = dropTimer(turn, execution, "retry");
  awaitChild(turn, next, startChild(turn, current, next), timeoutOf(turn, current, next));
}

/** Its value was good when the step was entered; should it fail now, the child has no such clock. */
function timeoutOf(
  turn: Turn,
  { timeout }: SubWorkflowStep,
  execution: LiveExecution,
): number | null {
  try {
    return clockMs(turn, timeout, execution);
  } catch (thrown) {
    if (isValueError(thrown)) return null;
    throw thrown;
  }
}

/** This child took longer than the step's `timeout`: it is told to stop, and is an attempt that failed. */
export function timeOutChild(turn: Turn, execution: LiveExecution): void {
  const current = stepOf(turn, execution.stepId) as SubWorkflowStep;
  const { attempt, stepId } = execution;
  const message = `the child of step "${stepId}" took longer than the step's timeout`;
  stopChild(turn, execution, message);
  fail(turn, execution, timeoutError(execution, attempt, message), current.retry);
}

/** All of its children together took longer than the step's `totalTimeout`. */
export function timeOutChildren(turn: Turn, execution: LiveExecution): void {
  const { stepId, attempt, timers } = execution;
  const made = timers.includes("retry") ? attempt - 1 : attempt;
  const message = `step "${stepId}" took longer than its totalTimeout, retries included`;
  stopChild(turn, execution, message);
  const error = timeoutError(execution, made, message);
  fail(turn, { ...execution, attempt: made }, error, undefined);
}

function stopChild(turn: Turn, execution: LiveExecution, reason: string): void {
  const { child } = execution;
  if (child !== undefined) cancelChild(turn, execution, child, { reason, isAwaited: false });
}

/**
 * As the child's own error, so that `onError` and `retry` can name it; where it comes from is beside it.
 * What came up to the child from further below is told once, however many levels it has come.
 */
function errorOf(
  current: SubWorkflowStep,
  execution: LiveExecution,
  { status, error, reason, isOwn }: ChildEnd,
): WorkflowError {
  const { stepId, attempt, child = "" } = execution;
  const workflowId = workflowCalled(current, execution);
  const place = { stepId, attempt };
  const facts = { childId: child, workflowId, status };
  const what = `workflow "${workflowId}" (${child})`;
  if (error === null) {
    const why = reason === null ? "" : `: ${reason}`;
    const message = `${what} was cancelled${why}`;
    return { kind: "TASK", type: "CHILD_CANCELLED", message, ...place, details: facts };
  }
  const { origin, levels } = isOwn ? { origin: error, levels: [] } : originOf(error);
  const last = levels.at(-1);
  const where =
    last === undefined
      ? ""
      : `, ${levels.length} ${levels.length === 1 ? "level" : "levels"} further down in workflow "${last.workflowId}" (${last.childId})`;
  const details = isDeeper(origin.details, maxDetailLevels) ? null : origin.details;
  return {
    // It is for an operator of the child to look at, and not for one of the parent.
    kind: error.kind === "POISONED" ? "TASK" : error.kind,
    type: error.type,
    message: `${what} failed${where}: ${origin.message}`,
    ...place,
    details: {
      ...facts,
      error: { ...origin, details },
      ...(levels.length > 0 && { levels }),
    },
  };
}

/** A workflow that failed, and the step above it that had started it. */
interface Level extends JsonObject {
  readonly stepId: string | null;
  readonly workflowId: string;
  readonly childId: string;
}

/** The error where it began, and the levels through which it has come up since, the lowest last. */
function originOf(error: WorkflowError): {
  readonly origin: WorkflowError;
  readonly levels: readonly Level[];
} {
  const { stepId, details } = error;
  const { childId, workflowId, error: origin, levels } = isObject(details) ? details : noDetails;
  if (typeof childId !== "string" || typeof workflowId !== "string" || !isError(origin)) {
    return { origin: error, levels: [] };
  }
  const further = Array.isArray(levels) ? (levels as readonly Json[]).filter(isLevel) : [];
  return { origin, levels: [{ stepId, workflowId, childId }, ...further] };
}

const noDetails: JsonObject = {};

function isError(value: Json | undefined): value is JsonObject & WorkflowError {
  return isObject(value) && ["kind", "type", "message"].every((key) => isText(value[key]));
}

function isLevel(value: Json): value is Level {
  return isObject(value) && isText(value["workflowId"]) && isText(value["childId"]);
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string";
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isDeeper(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}
