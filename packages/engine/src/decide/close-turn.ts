import type { Command, Decision } from "../state/decision.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { waitPathsOf } from "./open-waits.ts";
import { isUnheldTimer } from "./set-timers.ts";
import { isHeldBack } from "./slot.ts";
import type { Turn } from "./turn.ts";

/** The decision that the turn came to; the snapshot it began with, by identity, if nothing happened. */
export function closeTurn(turn: Turn): Decision {
  const commands: Command[] = [
    ...turn.waits.values(),
    ...turn.rekeys.values(),
    ...timersOf(turn),
    // No step starts: the row says what is to be done once it resumes, or is admitted.
    ...(isHeldBack(turn.state) ? [] : turn.dispatches.values()),
    ...turn.aborts.values(),
    ...turn.children.values(),
    ...turn.emitted,
  ];
  const holding = holdOrLetGo(turn);
  if (holding !== undefined) commands.push(holding);
  if (turn.deadLetter !== undefined) commands.push(turn.deadLetter);
  if (turn.settled) commands.push({ kind: "settle" }, ...reportOfEnd(turn));
  const changed = turn.entries.length > 0 || commands.length > 0 || turn.updates.size > 0;
  // The turn is over, so that its state need not be copied.
  if (changed) turn.state.version = turn.before.version + 1;
  return {
    snapshot: changed ? turn.state : turn.before,
    inserts: [...turn.inserts.values()],
    updates: [...turn.updates.values()],
    commands,
    guards: [...turn.guards.values()],
    entries: turn.entries,
    observedRunning: [...turn.observedRunning],
    ...(turn.workingTimes.size > 0 && { workingTimes: Object.fromEntries(turn.workingTimes) }),
  };
}

/** A parent that waits hears of it, once, when nothing about this instance moves by itself any more. */
function reportOfEnd({ before, state, definition }: Turn): readonly Command[] {
  const { parent, status, error, cancellation } = state;
  if (parent?.awaited !== true || !isTerminal(status) || isSettled(before)) return [];
  const reason = cancellation?.reason ?? null;
  const step = definition.steps.get(error?.stepId ?? "");
  const isOwn = error !== null && step?.type !== "SUB_WORKFLOW";
  return [{ kind: "reportEnd", parent, status, error, reason, ...(isOwn && { isOwn }) }];
}

function timersOf({ timers, state }: Turn): Iterable<Command> {
  if (state.status !== "PAUSED") return timers.values();
  return [...timers.values()].map((command) =>
    command.kind === "setTimer" && !isUnheldTimer(command.timer)
      ? { ...command, held: true }
      : command,
  );
}

/**
 * What is live before and after a decision, and is not written by it, where a pause or the lack of a
 * slot begins or ends: tasks are held by both, clocks and waits by a pause alone.
 */
function holdOrLetGo(turn: Turn): Command | undefined {
  const { before, state, inserts, updates } = turn;
  const isPaused = state.status === "PAUSED";
  const pauses = isPaused !== (before.status === "PAUSED");
  const isHeld = isHeldBack(state);
  const holds = isHeld !== isHeldBack(before);
  if (!(pauses || holds) || isTerminal(state.status)) return undefined;
  const stays = Object.entries(state.live).filter(([key]) => Object.hasOwn(before.live, key));
  const executions = stays.flatMap(([key, { phase, path, iteration }]) =>
    holds && phase === "ACTIVE" && !inserts.has(key) && !updates.has(key)
      ? [{ path, iteration }]
      : [],
  );
  if (!pauses && executions.length === 0) return undefined;
  const clocks = [
    { path: "", iteration: 0, timers: state.timers },
    ...stays.map(([, execution]) => execution),
  ];
  const timers = clocks.flatMap(({ path, iteration, timers: kinds }) =>
    kinds.flatMap((timer) => {
      const isWritten = turn.timers.has(`${timer}:${executionKey(path, iteration)}`);
      return !pauses || isWritten || isUnheldTimer(timer) ? [] : [{ timer, path, iteration }];
    }),
  );
  const waits = pauses ? stays.flatMap(([, execution]) => waitsLeft(turn, execution)) : [];
  return { kind: (pauses ? isPaused : isHeld) ? "hold" : "letGo", executions, timers, waits };
}

/** Those that the turn does not write. */
function waitsLeft(turn: Turn, execution: LiveExecution): readonly Place[] {
  const { stepId, phase, iteration } = execution;
  const isWait = phase === "WAITING" && turn.definition.steps.get(stepId)?.type === "EVENT_WAIT";
  if (!isWait) return [];
  return waitPathsOf(execution).flatMap((path) => {
    const key = executionKey(path, iteration);
    return turn.waits.has(key) || turn.rekeys.has(key) ? [] : [{ path, iteration }];
  });
}

type Place = Pick<LiveExecution, "path" | "iteration">;
