import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution, TimerKind } from "../state/snapshot.ts";
import type { Turn } from "./turn.ts";

/** A timer that was set in this same turn simply never comes to be. */

export function setTimer(
  turn: Turn,
  timer: TimerKind,
  { path, iteration, attempt }: Pick<LiveExecution, "path" | "iteration" | "attempt">,
  dueAt: Date,
): void {
  const key = `${timer}:${executionKey(path, iteration)}`;
  turn.timers.set(key, { kind: "setTimer", timer, path, iteration, attempt, dueAt });
}

export function clearTimer(turn: Turn, timer: TimerKind, path: string, iteration: number): void {
  const execution = executionKey(path, iteration);
  const key = `${timer}:${execution}`;
  const stored = path === "" ? turn.before.timers : turn.before.live[execution]?.timers;
  if (stored?.includes(timer) === true) {
    turn.timers.set(key, { kind: "clearTimer", timer, path, iteration });
  } else {
    turn.timers.delete(key);
  }
}

/** Clears one timer of an execution that stays live. */
export function dropTimer(turn: Turn, execution: LiveExecution, timer: TimerKind): LiveExecution {
  if (!execution.timers.includes(timer)) return execution;
  clearTimer(turn, timer, execution.path, execution.iteration);
  return { ...execution, timers: execution.timers.filter((other) => other !== timer) };
}

/** The timers of the instance itself have no path, and no attempt but its own, a retry being another. */
export function setInstanceTimer(turn: Turn, timer: TimerKind, dueAt: Date): void {
  setTimer(turn, timer, { path: "", iteration: 0, attempt: turn.state.reopened }, dueAt);
  turn.state.timers = [...turn.state.timers, timer];
}

export function clearInstanceTimer(turn: Turn, timer: TimerKind): void {
  if (!turn.state.timers.includes(timer)) return;
  clearTimer(turn, timer, "", 0);
  turn.state.timers = turn.state.timers.filter((other) => other !== timer);
}

/** Clocks of what was lost already, and the one that ends the pause, run on while it lasts. */
const unheldTimers: ReadonlySet<TimerKind> = new Set(["grace", "resume"]);

export function isUnheldTimer(timer: TimerKind): boolean {
  return unheldTimers.has(timer);
}
