import type { Json } from "@millrace/expressions";
import type { Cancellation, LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { beginCompensation, graceMs } from "./compensate.ts";
import { abortAttempt } from "./dispatch.ts";
import { after, expressionError } from "./evaluate.ts";
import { closeTriggers } from "./listen.ts";
import { attemptsMade, evaluateTemplate, observeStatus, wholeExecutionOf } from "./scope.ts";
import {
  changeStatus,
  clearInstanceTimer,
  dropTimer,
  note,
  noteStep,
  putLive,
  removeLive,
  setTimer,
  settle,
  updateExecution,
} from "./turn.ts";
import type { Turn } from "./turn.ts";

/** How an instance ends: it completes, fails or is cancelled. */

/** Completes an instance of which nothing is live any more. Looked at after every signal. */
export function completeIfDone(turn: Turn): void {
  const { status, live } = turn.state;
  const over = isTerminal(status) || status === "CREATED";
  if (!over && Object.keys(live).length === 0) completeInstance(turn);
}

/** Completes it with the definition's output, or fails where that has no value. */
export function completeInstance(turn: Turn): void {
  let output: Json;
  try {
    output = outputOf(turn);
  } catch (thrown) {
    failInstance(turn, expressionError(thrown, null, "the definition's output"));
    return;
  }
  completeWith(turn, output);
}

function outputOf(turn: Turn): Json {
  const { output } = turn.definition;
  if (output !== undefined) return evaluateTemplate(turn, output) ?? null;
  const { lastOutput } = turn.state;
  return lastOutput === null ? null : (wholeExecutionOf(turn, lastOutput).output ?? null);
}

export function completeWith(turn: Turn, output: Json): void {
  stopLive(turn, "the instance completed", false);
  closeTriggers(turn, { unheard: true });
  if (turn.state.status === "WAITING_FOR_EVENT") changeStatus(turn, "RUNNING");
  changeStatus(turn, "COMPLETED");
  turn.state.output = output;
  note(turn, { type: "workflow.completed" });
  settle(turn);
}

/** A poisoned step is for an operator to look at: what was done stays as it is until then. */
export function failInstance(turn: Turn, error: WorkflowError): void {
  const compensating = turn.definition.compensateOnFailure && error.kind !== "POISONED";
  stopLive(turn, `the instance failed: ${error.message}`, compensating);
  closeTriggers(turn, { unheard: true });
  changeStatus(turn, "FAILED");
  turn.state.error = error;
  note(turn, { type: "workflow.failed", data: { error: { ...error } } });
  compensateOrSettle(turn, compensating);
}

export function cancelInstance(turn: Turn, cancellation: Cancellation): void {
  const { shouldCompensate, requestedBy } = cancellation;
  turn.state.cancellation = cancellation;
  stopLive(turn, "the instance was cancelled", shouldCompensate);
  closeTriggers(turn, { unheard: false });
  changeStatus(turn, "CANCELLED");
  note(turn, { type: "workflow.cancelled", actor: requestedBy, data: { ...cancellation } });
  compensateOrSettle(turn, shouldCompensate);
}

function compensateOrSettle(turn: Turn, compensating: boolean): void {
  if (compensating && turn.definition.compensationSteps.size > 0) beginCompensation(turn);
  else settle(turn);
}

/** Stops all that is live, and lets the instance's own clocks go. */
function stopLive(turn: Turn, reason: string, compensating: boolean): void {
  for (const execution of Object.values(turn.state.live)) {
    stopExecution(turn, execution, reason, compensating);
  }
  for (const timer of turn.state.timers) clearInstanceTimer(turn, timer);
}

/**
 * A running step is told. While compensating, one that has a compensation step stays on, AWAITED, for
 * its grace; everything else is CANCELLED at once (CONTRACT 2, "A step in flight at a cancel").
 */
function stopExecution(
  turn: Turn,
  execution: LiveExecution,
  reason: string,
  compensating: boolean,
): void {
  const { phase, stepId, attempt } = execution;
  if (phase === "READY") {
    removeLive(turn, execution);
    return;
  }
  const undoable = compensating && turn.definition.compensationFor.has(stepId);
  // A row is looked at only where it matters: for the grace, and for attempts that never began.
  const status = phase === "ACTIVE" && (undoable || attempt > 1) && observeStatus(turn, execution);
  if (undoable && status === "RUNNING") {
    awaitGrace(turn, execution, reason);
    return;
  }
  updateExecution(turn, execution, {
    status: "CANCELLED",
    attempt: attemptsMade(status || "RUNNING", attempt),
    completedAt: turn.now,
  });
  noteStep(turn, "workflow.step.cancelled", execution);
  removeLive(turn, execution);
  if (phase === "ACTIVE") abortAttempt(turn, execution, reason);
}

function awaitGrace(turn: Turn, execution: LiveExecution, reason: string): void {
  let awaited: LiveExecution = { ...execution, phase: "AWAITED" };
  for (const timer of execution.timers) awaited = dropTimer(turn, awaited, timer);
  putLive(turn, { ...awaited, timers: ["grace"] });
  setTimer(turn, "grace", execution, after(turn, graceMs(turn, execution)));
  updateExecution(turn, execution, { status: "RUNNING", awaited: true });
  noteStep(turn, "workflow.step.awaited", execution);
  abortAttempt(turn, execution, reason);
}
