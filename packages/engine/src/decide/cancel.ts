import { ExpressionError } from "@millrace/expressions";
import type { EventFact, Signal } from "../state/signal.ts";
import { isTerminal } from "../state/status.ts";
import { cancelInstance } from "./end.ts";
import { evaluateTemplate } from "./scope.ts";
import type { Turn } from "./turn.ts";

/** Cancels from outside. An instance that has ended already is left as it is (CONTRACT 2). */

export function requestCancel(
  turn: Turn,
  { reason, actor, shouldCompensate }: Extract<Signal, { kind: "cancelRequested" }>,
): void {
  if (isTerminal(turn.state.status)) return;
  cancelInstance(turn, {
    reason,
    requestedBy: actor,
    requestedAt: turn.now.toISOString(),
    source: "API",
    shouldCompensate,
  });
}

export function triggerCancel(turn: Turn, index: number, event: EventFact): void {
  const trigger = turn.definition.cancellationTriggers[index - 1];
  if (trigger === undefined || isTerminal(turn.state.status)) return;
  cancelInstance(turn, {
    reason: reasonOf(turn, trigger.reason, event),
    requestedBy: "system",
    requestedAt: turn.now.toISOString(),
    source: "EVENT",
    eventId: event.id,
    shouldCompensate: trigger.shouldCompensate,
  });
}

/** A reason that cannot be evaluated must not keep the instance from being cancelled. */
function reasonOf(
  turn: Turn,
  reason: Parameters<typeof evaluateTemplate>[1],
  event: EventFact,
): string | null {
  try {
    const value = evaluateTemplate(turn, reason, { event });
    return value === undefined || value === null ? null : String(value);
  } catch (thrown) {
    if (thrown instanceof ExpressionError) return null;
    throw thrown;
  }
}
