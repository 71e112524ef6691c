import type { Definition } from "../definition/definition.ts";
import type { Signal } from "../state/signal.ts";
import type { LiveExecution, Snapshot } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * The slot of an instance that has a limit (CONTRACT 6), which is one under each of its limits. It is RUNNING
 * only with it, and has it only as long as it is RUNNING:
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

/** Whose limits those are says `Snapshot.limits`; how far they go is not known here. */
export function isLimited({ concurrency }: Definition, { limits }: Snapshot): boolean {
  return concurrency !== undefined || limits !== null;
}

export function lacksSlot({ definition, state }: Turn): boolean {
  return state.slot !== "HELD" && isLimited(definition, state);
}

/**
 * Limits were set or deleted. One that runs is counted from now on, and goes on; one that waits for a slot asks
 * again, and keeps its place. While it has a slot, or stands at a task without one, it stays limited.
 */
export function noteLimits(turn: Turn, { limits }: Extract<Signal, { kind: "limitsNoted" }>): void {
  const { before, definition, state } = turn;
  // One that has failed may be retried.
  if (limits === state.limits || (isTerminal(state.status) && state.status !== "FAILED")) return;
  if (limits === null && definition.concurrency === undefined && mayStand(state)) return;
  const wasLimited = isLimited(definition, state);
  state.limits = limits;
  // The first commit begins with it.
  if (before.version === 0) return;
  note(turn, { type: "workflow.limited", data: { limits: limits?.split(" ") ?? null } });
  if (!wasLimited && state.status === "RUNNING") state.slot = "HELD";
  if (state.slot !== null) state.slotRequests += 1;
}

/** A step of it may wait for the slot, and nothing else would bring it about. */
function mayStand({ slot, status }: Snapshot): boolean {
  return slot !== null || status === "PAUSED";
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
 * Of one that has a limit: asks for a slot where it can run, and gives it up where it cannot.
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
export function allowedSlot(definition: Definition, snapshot: Snapshot): Snapshot["slot"] {
  if (!isLimited(definition, snapshot) || !canRun(snapshot)) return null;
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
