import type { JsonObject, Snapshot, WorkflowError } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import type { Signal } from "../state/signal.ts";
import { beginCompensation } from "./compensate.ts";
import { note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * An instance that failed because a step killed its workers has a dead letter: for an operator, who
 * retries it, discards it, or cancels the instance. Until then nothing is undone (CONTRACT 2, POISONED).
 * The error's details say which it is: whoever reads the instance sees it, and so does the next decision.
 */

export function openDeadLetter(
  turn: Turn,
  { path, iteration, attempt }: LiveExecution,
  error: WorkflowError,
): void {
  turn.state.error = withState(error, "OPEN");
  turn.deadLetter = { kind: "openDeadLetter", path, iteration, attempt, error };
}

export function hasOpenDeadLetter({ status, error }: Snapshot): boolean {
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
  if (error === null || !hasOpenDeadLetter(turn.state)) return;
  turn.state.error = withState(error, outcome);
  const isNew = turn.deadLetter?.kind === "openDeadLetter";
  turn.deadLetter = isNew ? undefined : { kind: "resolveDeadLetter", outcome, actor, reason };
}

/** Nobody will try the step again: what was done before it is undone now. */
export function discardDeadLetter(
  turn: Turn,
  { actor, reason }: Extract<Signal, { kind: "deadLetterDiscarded" }>,
): void {
  if (!hasOpenDeadLetter(turn.state)) return;
  resolveDeadLetter(turn, "DISCARDED", actor, reason);
  note(turn, { type: "workflow.deadLetter.discarded", actor, data: { reason } });
  const { compensateOnFailure, compensationSteps } = turn.definition;
  if (!compensateOnFailure || compensationSteps.size === 0) return;
  turn.state.completedAt = null;
  turn.settled = false;
  beginCompensation(turn);
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
