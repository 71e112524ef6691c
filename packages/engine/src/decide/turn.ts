import type { Definition } from "../definition/definition.ts";
import type {
  Command,
  Decision,
  ExecutionUpdate,
  Guard,
  HistoryEntry,
  NewExecution,
  NewWait,
} from "../state/decision.ts";
import type { Reads } from "../state/reads.ts";
import type { LiveExecution, Snapshot, TimerKind } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import type { InstanceStatus } from "../state/status.ts";
import { instanceChanges } from "../state/status.ts";
import { invariant } from "../assert.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type CommandOf<K extends Command["kind"]> = Extract<Command, { kind: K }>;

/**
 * One decision in the making: a private copy of the snapshot, and everything that will be written
 * with it. The functions of this folder change it; nobody outside sees it. Several signals fold
 * into one turn, so whatever they do to one row, wait or timer ends as one change.
 */
export interface Turn {
  readonly definition: Definition;
  readonly reads: Reads;
  readonly now: Date;
  readonly before: Snapshot;
  readonly state: Mutable<Snapshot>;
  readonly inserts: Map<string, NewExecution>;
  readonly updates: Map<string, ExecutionUpdate>;
  /** By path: the execution that this turn made or changed last. */
  readonly touched: Map<string, string>;
  readonly waits: Map<string, CommandOf<"openWait"> | CommandOf<"closeWait">>;
  readonly rekeys: Map<string, CommandOf<"rekeyWait">>;
  readonly timers: Map<string, CommandOf<"setTimer"> | CommandOf<"clearTimer">>;
  readonly dispatches: Map<string, CommandOf<"dispatch">>;
  readonly aborts: Map<string, CommandOf<"abort">>;
  readonly guards: Map<string, Guard>;
  readonly entries: HistoryEntry[];
  readonly observedRunning: Set<string>;
  /** Steps walked through without work outside. */
  walked: number;
  settled: boolean;
}

export function openTurn(
  definition: Definition,
  before: Snapshot,
  reads: Reads,
  now: Date,
): Turn {
  return {
    definition,
    reads,
    now,
    before,
    state: { ...before },
    inserts: new Map(),
    updates: new Map(),
    touched: new Map(),
    waits: new Map(),
    rekeys: new Map(),
    timers: new Map(),
    dispatches: new Map(),
    aborts: new Map(),
    guards: new Map(),
    entries: [],
    observedRunning: new Set(),
    walked: 0,
    settled: false,
  };
}

/** The decision that the turn came to; the snapshot it began with, by identity, if nothing happened. */
export function closeTurn(turn: Turn): Decision {
  const commands: Command[] = [
    ...turn.waits.values(),
    ...turn.rekeys.values(),
    ...turn.timers.values(),
    ...turn.dispatches.values(),
    ...turn.aborts.values(),
  ];
  if (turn.settled) commands.push({ kind: "settle" });
  const changed = turn.entries.length > 0 || commands.length > 0 || turn.updates.size > 0;
  return {
    snapshot: changed ? { ...turn.state, version: turn.before.version + 1 } : turn.before,
    inserts: [...turn.inserts.values()],
    updates: [...turn.updates.values()],
    commands,
    guards: [...turn.guards.values()],
    entries: turn.entries,
    observedRunning: [...turn.observedRunning],
  };
}

/** Notes a line of the audit. */
export function note(turn: Turn, entry: HistoryEntry): void {
  turn.entries.push(entry);
}

/** @throws InvariantError where the table of allowed changes has no such change. */
export function changeStatus(turn: Turn, to: InstanceStatus): void {
  const from = turn.state.status;
  if (from === to) return;
  invariant(instanceChanges[from].includes(to), `an instance cannot go from ${from} to ${to}`);
  turn.state.status = to;
  note(turn, { type: "workflow.status", data: { from, to } });
}

// Live executions

export function liveExecution(
  turn: Turn,
  path: string,
  iteration: number,
): LiveExecution | undefined {
  const key = executionKey(path, iteration);
  return Object.hasOwn(turn.state.live, key) ? turn.state.live[key] : undefined;
}

export function putLive(turn: Turn, execution: LiveExecution): void {
  const key = executionKey(execution.path, execution.iteration);
  turn.state.live = { ...turn.state.live, [key]: execution };
}

/** The execution is no longer live: its timers and its wait go with it. */
export function removeLive(turn: Turn, execution: LiveExecution): void {
  for (const timer of execution.timers) {
    clearTimer(turn, timer, execution.path, execution.iteration);
  }
  const key = executionKey(execution.path, execution.iteration);
  turn.dispatches.delete(key);
  const { [key]: _removed, ...live } = turn.state.live;
  turn.state.live = live;
}

// Step rows

export function insertExecution(turn: Turn, execution: NewExecution): void {
  const key = executionKey(execution.path, execution.iteration);
  turn.inserts.set(key, execution);
  turn.touched.set(execution.path, key);
}

/** Changes a row; one that this same turn inserts simply begins that way. */
export function updateExecution(
  turn: Turn,
  execution: LiveExecution,
  change: Pick<ExecutionUpdate, "status"> & Partial<ExecutionUpdate>,
): void {
  const { path, iteration } = execution;
  const key = executionKey(path, iteration);
  turn.touched.set(path, key);
  const inserted = turn.inserts.get(key);
  const earlier = turn.updates.get(key);
  const update: ExecutionUpdate = {
    path,
    iteration,
    attempt: change.attempt ?? execution.attempt,
    output: change.output ?? earlier?.output,
    error: change.error ?? earlier?.error ?? null,
    completion: change.completion ?? null,
    completedAt: change.completedAt ?? null,
    retryAt: change.retryAt ?? null,
    awaited: change.awaited ?? false,
    status: change.status,
  };
  if (inserted === undefined) {
    turn.updates.set(key, update);
  } else {
    const { status, attempt, output, error, completion, completedAt } = update;
    turn.inserts.set(key, { ...inserted, status, attempt, output, error, completion, completedAt });
  }
}

// Waits and timers. A row that was opened or set in this same turn simply never comes to be.

export function openWait(turn: Turn, wait: NewWait): void {
  turn.waits.set(executionKey(wait.path, wait.iteration), { kind: "openWait", wait });
}

export function closeWait(turn: Turn, path: string, iteration: number): void {
  const key = executionKey(path, iteration);
  turn.rekeys.delete(key);
  if (turn.waits.get(key)?.kind === "openWait") turn.waits.delete(key);
  else turn.waits.set(key, { kind: "closeWait", path, iteration });
}

export function setTimer(
  turn: Turn,
  timer: TimerKind,
  { path, iteration, attempt }: { path: string; iteration: number; attempt: number },
  dueAt: Date,
): void {
  const key = `${timer}:${executionKey(path, iteration)}`;
  turn.timers.set(key, { kind: "setTimer", timer, path, iteration, attempt, dueAt });
}

export function clearTimer(turn: Turn, timer: TimerKind, path: string, iteration: number): void {
  const key = `${timer}:${executionKey(path, iteration)}`;
  const stored = turn.before.live[executionKey(path, iteration)]?.timers ?? turn.before.timers;
  if (stored.includes(timer)) turn.timers.set(key, { kind: "clearTimer", timer, path, iteration });
  else turn.timers.delete(key);
}

/** Clears one timer of an execution that stays live. */
export function dropTimer(turn: Turn, execution: LiveExecution, timer: TimerKind): LiveExecution {
  if (!execution.timers.includes(timer)) return execution;
  clearTimer(turn, timer, execution.path, execution.iteration);
  return { ...execution, timers: execution.timers.filter((other) => other !== timer) };
}

/** The instance's own timers have an empty path. */
export function clearInstanceTimers(turn: Turn): void {
  for (const timer of turn.state.timers) clearTimer(turn, timer, "", 0);
  turn.state.timers = [];
}
