import type { CancellationTrigger } from "../definition/definition.ts";
import type { EventFact, Signal } from "../state/signal.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { isSettled } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { cancelInstance } from "./end.ts";
import { isValueError, textOf } from "./evaluate.ts";
import { evaluateTemplate } from "./scope.ts";
import type { Turn } from "./turn.ts";

/** Cancels from outside. An instance that has ended already is left as it is (CONTRACT 2). */

export function requestCancel(
  turn: Turn,
  { reason, actor, shouldCompensate, source }: Extract<Signal, { kind: "cancelRequested" }>,
): void {
  if (!canCancel(turn.state)) return;
  cancelInstance(turn, {
    reason,
    requestedBy: actor,
    requestedAt: turn.now.toISOString(),
    source: source ?? "API",
    shouldCompensate,
  });
}

/** One that has FAILED is abandoned: what was not undone is undone now, if it is wished. */
export function canCancel({ status }: Snapshot): boolean {
  return !isTerminal(status) || status === "FAILED";
}

/** It moves on by itself, or has failed and settled, so that a retry or a cancel can still move it. */
export function canStillMove(snapshot: Snapshot): boolean {
  return !isTerminal(snapshot.status) || (snapshot.status === "FAILED" && isSettled(snapshot));
}

export function triggerCancel(
  turn: Turn,
  { trigger, event }: Extract<Signal, { kind: "cancelTriggered" }>,
): void {
  const triggered = turn.definition.cancellationTriggers[trigger - 1];
  if (triggered === undefined || isTerminal(turn.state.status)) return;
  cancelInstance(turn, {
    reason: reasonOf(turn, triggered, event),
    requestedBy: "system",
    requestedAt: turn.now.toISOString(),
    source: "EVENT",
    eventId: event.id,
    shouldCompensate: triggered.shouldCompensate,
  });
}

/** A reason that cannot be evaluated must not keep the instance from being cancelled. */
function reasonOf(turn: Turn, { reason }: CancellationTrigger, event: EventFact): string | null {
  try {
    return textOf(evaluateTemplate(turn, reason, { event })) ?? null;
  } catch (thrown) {
    if (isValueError(thrown)) return null;
    throw thrown;
  }
}
