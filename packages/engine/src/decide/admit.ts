import type { Signal } from "../state/signal.ts";
import { removeLive } from "./live-executions.ts";
import { leaveQueue } from "./slot.ts";
import { begin } from "./start.ts";
import { changeStatus, move, note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** The instance has the slot that it has asked for last: it begins, or goes on where it stands. */
export function admit(turn: Turn, { request }: Extract<Signal, { kind: "admitted" }>): void {
  const { state } = turn;
  if (state.slot !== "WANTED" || request !== state.slotRequests) return;
  state.slot = "HELD";
  leaveQueue(state);
  note(turn, { type: "workflow.admitted" });
  if (state.status === "CREATED") {
    begin(turn);
    return;
  }
  changeStatus(turn, "RUNNING");
  for (const execution of Object.values(state.live)) {
    const { phase, timers, stepId, within } = execution;
    if (phase !== "READY" || timers.length > 0) continue;
    removeLive(turn, execution);
    move(turn, { kind: "enter", stepId, within });
  }
}
