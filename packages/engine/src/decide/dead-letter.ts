import type { JsonObject, Snapshot, WorkflowError } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import type { Signal } from "../state/signal.ts";
import { beginCompensation, endUndefined, leavePoisoned, tryPoisonedAgain } from "./compensate.ts";
import { note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * A step that killed its workers has a dead letter: for an operator, who retries or discards it, or cancels
 * the instance. Until then nothing is undone, or nothing more (CONTRACT 2, POISONED). What says so in the
 * snapshot is the instance's error, or, of a compensation step, the compensation: whoever reads the
 * instance sees it, and so does the next decision.
 */

export function openDeadLetter(
  turn: Turn,
  { path, iteration, attempt }: LiveExecution,
  error: WorkflowError,
): void {
  turn.deadLetter = { kind: "openDeadLetter", path, iteration, attempt, error };
}

/** Of the step for which the instance has failed. */
export function keepDeadLetter(turn: Turn, error: WorkflowError): void {
  turn.state.error = withState(error, "OPEN");
}

export function hasOpenDeadLetter(snapshot: Snapshot): boolean {
  return snapshot.compensation?.poisoned !== undefined || hasFailedPoisoned(snapshot);
}

function hasFailedPoisoned({ status, error }: Snapshot): boolean {
  return (
    status === "FAILED" && error?.kind === "POISONED" && detailsOf(error)["deadLetter"] === "OPEN"
  );
}

/** Whoever retries or cancels the instance resolves its dead letter in the same commit. */
export function resolveDeadLetter(
  turn: Turn,
  outcome: "RETRIED" | "DISCARDED",
  actor: string,
  reason: string | null,
): void {
  const { error } = turn.state;
  if (!hasOpenDeadLetter(turn.state)) return;
  if (error !== null && hasFailedPoisoned(turn.state)) {
    turn.state.error = withState(error, outcome);
  }
  const isNew = turn.deadLetter?.kind === "openDeadLetter";
  turn.deadLetter = isNew ? undefined : { kind: "resolveDeadLetter", outcome, actor, reason };
}

/** Nobody will try the step again: what was done before it is undone now. */
export function discardDeadLetter(
  turn: Turn,
  { actor, reason, withoutDefinition }: Extract<Signal, { kind: "deadLetterDiscarded" }>,
): void {
  if (!hasOpenDeadLetter(turn.state)) return;
  const poisoned = turn.state.compensation?.poisoned;
  resolveDeadLetter(turn, "DISCARDED", actor, reason);
  note(turn, { type: "workflow.deadLetter.discarded", actor, data: { reason } });
  if (poisoned !== undefined) {
    if (withoutDefinition === true) endUndefined(turn, poisoned);
    else leavePoisoned(turn, poisoned);
    return;
  }
  const { compensateOnFailure, compensationSteps } = turn.definition;
  if (!compensateOnFailure || compensationSteps.size === 0) return;
  turn.state.completedAt = null;
  turn.settled = false;
  beginCompensation(turn);
}

/** The compensation goes on with the step at which it stands, as a new execution. */
export function retryDeadLetter(
  turn: Turn,
  { actor, reason }: Extract<Signal, { kind: "deadLetterRetried" }>,
): void {
  if (turn.state.compensation?.poisoned === undefined) return;
  resolveDeadLetter(turn, "RETRIED", actor, reason);
  note(turn, { type: "workflow.deadLetter.retried", actor, data: { reason } });
  tryPoisonedAgain(turn);
}

function withState(
  error: WorkflowError,
  deadLetter: "OPEN" | "RETRIED" | "DISCARDED",
): WorkflowError {
  return { ...error, details: { ...detailsOf(error), deadLetter } };
}

function detailsOf({ details }: WorkflowError): JsonObject {
  const isObject = typeof details === "object" && details !== null && !Array.isArray(details);
  return isObject ? (details as JsonObject) : {};
}
