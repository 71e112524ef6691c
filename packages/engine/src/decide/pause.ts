import type { HeldSignal, Signal } from "../state/signal.ts";
import type { LiveExecution, Pause, Snapshot, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { instanceChanges } from "../state/status.ts";
import { putLive } from "./live-executions.ts";
import { clearInstanceTimer, setInstanceTimer } from "./set-timers.ts";
import { allowedStatus, statusOf } from "./slot.ts";
import { changeStatus, note } from "./turn.ts";
import type { Held, Turn } from "./turn.ts";

/**
 * A pause loses nothing (CONTRACT 2). What is running finishes, and its result is kept; what would
 * follow from it is held, as are events that waits have taken and timers that have come due:
 *
 *   results   in the snapshot, as executions that are HELD
 *   events    in the rows of their waits, which take one and no more
 *   timers    in their rows; clocks go on
 *
 * The signal that ends the pause brings the last two along, and all of it is applied in order of time.
 * A wait whose time is over takes no event any more, though the pause holds its timeout: the store sees
 * to that when it matches. So no timeout takes what an event has been counted for.
 */

export function requestPause(
  turn: Turn,
  { intervention, actor, reason, until }: Extract<Signal, { kind: "pauseRequested" }>,
): void {
  if (!canPause(turn.state) || !intervene(turn, intervention)) return;
  pause(turn, { by: actor, reason, until, cause: "REQUEST" });
}

export function canPause({ status }: Snapshot): boolean {
  return instanceChanges[status].includes("PAUSED");
}

function pause(turn: Turn, why: Pick<Pause, "by" | "reason" | "until" | "cause">): void {
  const { state, now } = turn;
  const { by: actor, ...data } = why;
  const from = state.status === "CREATED" ? "CREATED" : statusOf(state);
  state.pause = { from, at: now.toISOString(), ...why };
  changeStatus(turn, "PAUSED");
  note(turn, { type: "workflow.paused", actor, data });
  if (why.until !== null) setInstanceTimer(turn, "resume", new Date(why.until));
}

/** The retries of a step are spent: nothing goes on until somebody has looked at it. */
export function pauseExhausted(turn: Turn, { stepId }: LiveExecution, error: WorkflowError): void {
  const { state } = turn;
  const cause = "EXHAUSTED";
  if (state.pause === null) {
    const reason = `the retries of step "${stepId}" are spent`;
    pause(turn, { by: "system", reason, until: null, cause });
  } else {
    clearInstanceTimer(turn, "resume");
    state.pause = { ...state.pause, until: null, cause };
  }
  state.error = error;
}

/**
 * Goes back to where it was, and on with what was held in the meantime.
 */
export function requestResume(
  turn: Turn,
  { intervention, actor, reason, held }: Extract<Signal, { kind: "resumeRequested" }>,
): void {
  if (turn.state.pause === null || !intervene(turn, intervention)) return;
  note(turn, { type: "workflow.resumed", actor, data: { reason } });
  resume(turn, held);
}

export function resume(turn: Turn, held: readonly HeldSignal[]): void {
  const { pause: paused, live } = turn.state;
  clearInstanceTimer(turn, "resume");
  if (paused?.cause === "EXHAUSTED") turn.state.error = null;
  changeStatus(turn, allowedStatus(turn, paused?.from ?? "RUNNING"));
  const ends = Object.values(live).flatMap((execution): Held[] =>
    execution.heldAt === undefined ? [] : [{ at: execution.heldAt, execution }],
  );
  turn.backlog.push(...[...ends, ...held].toSorted(inOrder));
}

/**
 * Of an event and a timer of one moment the event comes first: it has been counted as delivered, and the
 * timer may be late.
 */
function inOrder(one: Held, other: Held): number {
  if (one.at === other.at) return Number(isTimer(one)) - Number(isTimer(other));
  return one.at < other.at ? -1 : 1;
}

function isTimer(held: Held): boolean {
  return "signal" in held && held.signal.kind === "timerFired";
}

/** False for one that has been made before, or was thought of at another state of things. */
export function intervene({ state }: Turn, number: number): boolean {
  if (number !== state.interventions + 1) return false;
  state.interventions = number;
  return true;
}

export function isPaused({ state }: Turn): boolean {
  return state.status === "PAUSED";
}

/** It has settled, and is left once the pause is over. */
export function hold(turn: Turn, execution: LiveExecution, error?: WorkflowError): void {
  const { child: _settledToo, ...rest } = execution;
  putLive(turn, {
    ...rest,
    phase: "HELD",
    timers: [],
    heldAt: turn.now.toISOString(),
    ...(error !== undefined && { error }),
  });
}

/** Still to be left: what was applied before it may have taken its branch away. */
export function isHeld({ state }: Turn, { path, iteration }: LiveExecution): boolean {
  return state.live[executionKey(path, iteration)]?.phase === "HELD";
}
