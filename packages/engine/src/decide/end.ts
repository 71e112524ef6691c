import type { Json } from "@millrace/expressions";
import type { Cancellation, LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { isSettled } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { beginCompensation, noteInFlight } from "./compensate.ts";
import { keepDeadLetter, openDeadLetter, resolveDeadLetter } from "./dead-letter.ts";
import { expressionError } from "./evaluate.ts";
import { executionKey } from "../state/snapshot.ts";
import { closeTriggers } from "./listen.ts";
import { wholeExecutionOf } from "./read-rows.ts";
import { evaluateTemplate } from "./scope.ts";
import { clearInstanceTimer } from "./set-timers.ts";
import { stopExecution } from "./stop.ts";
import { changeStatus, note, settle } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** How an instance ends: it completes, fails or is cancelled. */

/** Completes an instance of which nothing is live any more. Looked at after every signal. */
export function completeIfDone(turn: Turn): void {
  const { status } = turn.state;
  const over = isTerminal(status) || status === "CREATED" || status === "PAUSED";
  if (!over && turn.busy === 0) completeInstance(turn);
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
  const { compensateOnFailure } = turn.definition;
  const compensating = compensateOnFailure && error.kind !== "POISONED";
  if (compensateOnFailure && !compensating) noteInFlight(turn);
  turn.state.failedAt = placeOfFailure(turn, error.stepId);
  stopLive(turn, `the instance failed: ${error.message}`, compensating);
  closeTriggers(turn, { unheard: true });
  changeStatus(turn, "FAILED");
  turn.state.error = error;
  note(turn, { type: "workflow.failed", data: { error: { ...error } } });
  compensateOrSettle(turn, compensating);
}

/** An operator is to say what becomes of it. */
export function failPoisoned(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  failInstance(turn, error);
  keepDeadLetter(turn, error);
  openDeadLetter(turn, execution, error);
}

export function cancelInstance(turn: Turn, cancellation: Cancellation): void {
  turn.state.cancellation = cancellation;
  // What is being undone already goes on being undone.
  if (isTerminal(turn.state.status) && !isSettled(turn.state)) return giveUp(turn, cancellation);
  const { shouldCompensate, requestedBy } = cancellation;
  resolveDeadLetter(turn, "DISCARDED", requestedBy, cancellation.reason);
  stopLive(turn, "the instance was cancelled", shouldCompensate);
  closeTriggers(turn, { unheard: false });
  // One that is abandoned had settled.
  turn.settled = false;
  turn.state.completedAt = null;
  giveUp(turn, cancellation);
  compensateOrSettle(turn, shouldCompensate);
}

function giveUp(turn: Turn, cancellation: Cancellation): void {
  changeStatus(turn, "CANCELLED");
  turn.state.error = null;
  turn.state.failedAt = null;
  const { requestedBy: actor } = cancellation;
  note(turn, { type: "workflow.cancelled", actor, data: { ...cancellation } });
}

function compensateOrSettle(turn: Turn, compensating: boolean): void {
  // One that is abandoned may have been undone when it failed.
  const isUndone = turn.state.compensation?.status === "COMPLETED";
  const isNeeded = compensating && turn.definition.compensationSteps.size > 0 && !isUndone;
  if (isNeeded) beginCompensation(turn);
  else settle(turn);
}

/** Stops all that is live, and lets the instance's own clocks go. */
export function stopLive(turn: Turn, reason: string, compensating: boolean): void {
  for (const execution of Object.values(turn.state.live)) {
    stopExecution(turn, execution, reason, compensating);
  }
  for (const timer of turn.state.timers) clearInstanceTimer(turn, timer);
  turn.agenda.length = 0;
}

/** The step of the definition's own list at which an instance fails now, if it is at one. */
function placeOfFailure(turn: Turn, stepId: string | null): string | null {
  const live = Object.values(turn.state.live).find(
    ({ within, phase, compensates }) =>
      within === undefined && phase !== "AWAITED" && compensates === undefined,
  );
  if (live !== undefined) return executionKey(live.path, live.iteration);
  const failed = stepId === null ? undefined : turn.definition.steps.get(stepId);
  if (failed === undefined) return null;
  const [outermost] = failed.lineage;
  return turn.touched.get(outermost?.stepId ?? failed.stepId) ?? null;
}
