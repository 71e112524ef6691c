import type { Signal } from "../state/signal.ts";
import { intervene } from "./pause.ts";
import { note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** It goes before all that have not run either, those included that were promoted before it. */
export function promote(
  turn: Turn,
  { intervention, actor, reason }: Extract<Signal, { kind: "promoteRequested" }>,
): void {
  const { state, now } = turn;
  if (state.slot !== "WANTED" || !intervene(turn, intervention)) return;
  state.slotPromotedAt = now.toISOString();
  note(turn, {
    type: "workflow.promoted",
    actor,
    ...(reason !== null && { data: { reason } }),
  });
}
