import type { Definition } from "../definition/definition.ts";
import type { LiveExecution, Snapshot } from "../state/snapshot.ts";
import { note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * The slot of an instance whose workflow has a limit (CONTRACT 6). It is RUNNING only with one, and has
 * one only as long as it is RUNNING:
 *
 *   wanted     when something of it can run: it has just been created, or has waited, or was paused
 *   held       from the admission on
 *   given up   in the decision after which nothing of it can run any more
 *
 * A pause gives up the slot, and keeps the place in the queue of one that waits for it.
 *
 * Without a slot it still hears events and clocks, and passes steps that need no worker. At a task it
 * stands, READY, until it is admitted; tasks that were scheduled before a pause are held as they were
 * then. What undoes an instance that has ended needs no slot.
 */

export function lacksSlot({ definition, state }: Turn): boolean {
  return definition.concurrency !== undefined && state.slot !== "HELD";
}

/** The status that it goes to in place of `status`: without a slot it cannot run. */
export function allowedStatus<S extends string>(turn: Turn, status: S): S | "WAITING_FOR_EVENT" {
  return status === "RUNNING" && lacksSlot(turn) ? "WAITING_FOR_EVENT" : status;
}

/** No task of it starts for now: the rows of those that are scheduled are held. */
export function isHeldBack({ status, slot }: Snapshot): boolean {
  return status === "PAUSED" || slot === "WANTED";
}

/**
 * Of a workflow with a limit: asks for a slot where it can run, and gives it up where it cannot.
 *
 * @param since When what makes it able to run came, if not now.
 */
export function updateSlot(turn: Turn, since: string | undefined): void {
  const { before, entries, state } = turn;
  const exists = before.version > 0 || entries.length > 0;
  if (!exists || !canRun(state)) {
    state.slot = null;
    if (state.status !== "PAUSED") leaveQueue(state);
  } else if (state.slot === null) {
    state.slot = "WANTED";
    state.slotRequests += 1;
    state.slotWantedAt ??= since ?? turn.now.toISOString();
    note(turn, { type: "workflow.queued" });
  }
}

export function leaveQueue(state: Turn["state"]): void {
  state.slotWantedAt = null;
  state.slotPromotedAt = null;
}

/** What its slot must be between any two decisions. */
export function allowedSlot({ concurrency }: Definition, snapshot: Snapshot): Snapshot["slot"] {
  if (concurrency === undefined || !canRun(snapshot)) return null;
  return snapshot.status === "RUNNING" ? "HELD" : "WANTED";
}

function canRun(state: Snapshot): boolean {
  switch (state.status) {
    case "CREATED":
      return !state.timers.includes("start");
    case "RUNNING":
    case "WAITING_FOR_EVENT":
      return statusOf(state) === "RUNNING";
    default:
      return false;
  }
}

/** Phases in which nothing of an instance can run: a lost branch that has its grace is none of it. */
const idle: ReadonlySet<LiveExecution["phase"]> = new Set(["WAITING", "OPEN", "AWAITED"]);

/** Of an instance that has begun and has not ended, by what it is doing. */
export function statusOf({ live }: Snapshot): "RUNNING" | "WAITING_FOR_EVENT" {
  // Hundreds may be live, and mostly the first of them tells.
  for (const key in live) {
    const execution = live[key];
    if (execution !== undefined && !idle.has(execution.phase)) return "RUNNING";
  }
  return "WAITING_FOR_EVENT";
}
