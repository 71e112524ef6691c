import { invariant } from "../assert.ts";
import type { Definition } from "../definition/definition.ts";
import type {
  Command,
  Decision,
  ExecutionUpdate,
  Guard,
  HistoryEntry,
  ItemCounts,
  NewExecution,
  NewWait,
} from "../state/decision.ts";
import { waitPathOf } from "../definition/paths.ts";
import { noReads } from "../state/reads.ts";
import type { Reads } from "../state/reads.ts";
import type { Signal } from "../state/signal.ts";
import type {
  JsonObject,
  LiveExecution,
  OpenItems,
  Place,
  Snapshot,
  TimerKind,
  WorkflowError,
} from "../state/snapshot.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import type { InstanceStatus, StepStatus } from "../state/status.ts";
import { instanceChanges, isTerminal } from "../state/status.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type CommandOf<K extends Command["kind"]> = Extract<Command, { kind: K }>;
type UpdatedRow = ExecutionUpdate & { readonly stepId: string };

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
  readonly updates: Map<string, UpdatedRow>;
  /** By path: key of the execution that this turn made or changed last. */
  readonly touched: Map<string, string>;
  readonly waits: Map<string, CommandOf<"openWait"> | CommandOf<"closeWait">>;
  readonly rekeys: Map<string, CommandOf<"rekeyWait">>;
  readonly timers: Map<string, CommandOf<"setTimer"> | CommandOf<"clearTimer">>;
  readonly dispatches: Map<string, CommandOf<"dispatch">>;
  readonly aborts: Map<string, CommandOf<"abort">>;
  /** By their kind and the child's id. */
  readonly children: Map<string, CommandOf<"startChild"> | CommandOf<"cancelChild">>;
  readonly emitted: CommandOf<"emitEvent">[];
  readonly guards: Map<string, Guard>;
  readonly entries: HistoryEntry[];
  readonly observedRunning: Set<string>;
  /** Where the walk goes on: one entry for each branch that moves. */
  readonly agenda: Move[];
  /** What a pause has held, in order of time: it is applied after the signal that ends the pause. */
  readonly backlog: Held[];
  /** `state.live` is a copy of this turn's own. */
  ownsLive: boolean;
  deadLetter: CommandOf<"openDeadLetter"> | CommandOf<"resolveDeadLetter"> | undefined;
  /** Live executions that the instance does not end before: counted, as hundreds may be live. */
  busy: number;
  /** Steps walked through without work outside. */
  walked: number;
  /** Path of the step that was walked to last. */
  walkingAt: string | undefined;
  settled: boolean;
}

/** What comes next for a branch, an item or, without `within`, the definition's own list. */
export type Move =
  | { readonly kind: "enter"; readonly stepId: string; readonly within: Place | undefined }
  | { readonly kind: "ended"; readonly within: Place }
  | { readonly kind: "failed"; readonly within: Place; readonly error: WorkflowError };

/** A signal that was held, or an execution whose end was. */
export type Held =
  | { readonly at: string; readonly signal: Signal }
  | { readonly at: string; readonly execution: LiveExecution };

/** An instance that is not stored yet has no rows: nothing of it can be missing. */
const nothingStored: Reads = { ...noReads, all: true };

export function openTurn(definition: Definition, before: Snapshot, reads: Reads, now: Date): Turn {
  return {
    definition,
    reads: before.version === 0 && reads.executions.size === 0 ? nothingStored : reads,
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
    children: new Map(),
    emitted: [],
    guards: new Map(),
    entries: [],
    observedRunning: new Set(),
    agenda: [],
    backlog: [],
    ownsLive: false,
    deadLetter: undefined,
    busy: Object.values(before.live).filter(isBusy).length,
    walked: 0,
    walkingAt: undefined,
    settled: false,
  };
}

/** The decision that the turn came to; the snapshot it began with, by identity, if nothing happened. */
export function closeTurn(turn: Turn): Decision {
  const commands: Command[] = [
    ...turn.waits.values(),
    ...turn.rekeys.values(),
    ...timersOf(turn),
    // Of a paused instance no step starts: the row says what is to be done once it resumes.
    ...(turn.state.status === "PAUSED" ? [] : turn.dispatches.values()),
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
  };
}

/** A parent that waits hears of it, once, when nothing about this instance moves by itself any more. */
function reportOfEnd({ before, state }: Turn): readonly Command[] {
  const { parent, status, error, cancellation } = state;
  if (parent?.awaited !== true || !isTerminal(status) || isSettled(before)) return [];
  return [{ kind: "reportEnd", parent, status, error, reason: cancellation?.reason ?? null }];
}

/** Clocks of what was lost already, and the one that ends the pause, run on while it lasts. */
const unheldTimers: ReadonlySet<TimerKind> = new Set(["grace", "resume"]);

export function isUnheldTimer(timer: TimerKind): boolean {
  return unheldTimers.has(timer);
}

function timersOf({ timers, state }: Turn): Iterable<Command> {
  if (state.status !== "PAUSED") return timers.values();
  return [...timers.values()].map((command) =>
    command.kind === "setTimer" && !unheldTimers.has(command.timer)
      ? { ...command, held: true }
      : command,
  );
}

/** What is live before and after a decision that begins or ends a pause, and that it does not write. */
function holdOrLetGo(turn: Turn): Command | undefined {
  const { before, state, inserts, updates } = turn;
  const isPaused = state.status === "PAUSED";
  if (isPaused === (before.status === "PAUSED") || isTerminal(state.status)) return undefined;
  const stays = Object.entries(state.live).filter(([key]) => Object.hasOwn(before.live, key));
  const executions = stays.flatMap(([key, { phase, path, iteration }]) =>
    phase === "ACTIVE" && !inserts.has(key) && !updates.has(key) ? [{ path, iteration }] : [],
  );
  const clocks = [
    { path: "", iteration: 0, timers: state.timers },
    ...stays.map(([, execution]) => execution),
  ];
  const timers = clocks.flatMap(({ path, iteration, timers: kinds }) =>
    kinds.flatMap((timer) => {
      const isWritten = turn.timers.has(`${timer}:${executionKey(path, iteration)}`);
      return isWritten || unheldTimers.has(timer) ? [] : [{ timer, path, iteration }];
    }),
  );
  return { kind: isPaused ? "hold" : "letGo", executions, timers };
}

/** Goes on with a branch once what is under way has been written down. */
export function move(turn: Turn, next: Move): void {
  turn.agenda.push(next);
}

/** Notes a line of the audit. */
export function note(turn: Turn, entry: HistoryEntry): void {
  turn.entries.push(entry);
}

export function noteStep(
  turn: Turn,
  type: string,
  { stepId, path, iteration, attempt }: LiveExecution,
  data?: JsonObject,
): void {
  note(turn, {
    type,
    stepId,
    ...(path !== stepId && { path }),
    ...(iteration > 1 && { iteration }),
    ...(attempt > 1 ? { data: { attempt, ...data } } : data && { data }),
  });
}

/** @throws InvariantError where the table of allowed changes has no such change. */
export function changeStatus(turn: Turn, to: InstanceStatus): void {
  const from = turn.state.status;
  if (from === to) return;
  invariant(instanceChanges[from].includes(to), `an instance cannot go from ${from} to ${to}`);
  turn.state.status = to;
  if (from === "PAUSED") turn.state.pause = null;
  note(turn, { type: "workflow.status", data: { from, to } });
}

/** Status and compensation are final: what the instance still had waiting goes in this commit. */
export function settle(turn: Turn): void {
  turn.state.completedAt = turn.now;
  turn.settled = true;
}

// Live executions

export function liveExecution(
  turn: Turn,
  path: string,
  iteration: number,
): LiveExecution | undefined {
  return turn.state.live[executionKey(path, iteration)];
}

export function putLive(turn: Turn, execution: LiveExecution): void {
  const key = executionKey(execution.path, execution.iteration);
  const live = ownLive(turn);
  if (isBusy(live[key])) turn.busy -= 1;
  if (isBusy(execution)) turn.busy += 1;
  live[key] = execution;
}

/** A lost branch that is given its grace holds nothing up. */
function isBusy(execution: LiveExecution | undefined): boolean {
  return execution !== undefined && execution.phase !== "AWAITED";
}

/** Copied once a turn: hundreds of branches may be live, and each of them may move. */
function ownLive(turn: Turn): Record<string, LiveExecution> {
  if (!turn.ownsLive) turn.state.live = { ...turn.state.live };
  turn.ownsLive = true;
  return turn.state.live;
}

/** The execution is no longer live: its timers, its waits and its job go with it. */
export function removeLive(turn: Turn, execution: LiveExecution): void {
  const { path, iteration, phase } = execution;
  const key = executionKey(path, iteration);
  for (const timer of execution.timers) clearTimer(turn, timer, path, iteration);
  if (phase === "WAITING") closeWaits(turn, execution);
  turn.dispatches.delete(key);
  if (isBusy(turn.state.live[key])) turn.busy -= 1;
  if (turn.ownsLive) {
    delete ownLive(turn)[key];
    return;
  }
  // A chain comes here once a turn: V8 is slower with an object of which a member was deleted.
  const { [key]: _removed, ...live } = turn.state.live;
  turn.state.live = live;
  turn.ownsLive = true;
}

// Step rows

export function insertExecution(turn: Turn, execution: NewExecution): void {
  const key = executionKey(execution.path, execution.iteration);
  turn.inserts.set(key, execution);
  turn.touched.set(execution.path, key);
}

/** What a row becomes. What is not named is as it is at a step that has just begun. */
export interface RowChange extends Partial<
  Pick<
    ExecutionUpdate,
    "attempt" | "output" | "error" | "completion" | "completedAt" | "retryAt" | "awaited"
  >
> {
  readonly status: StepStatus;
}

/** Changes a row; one that this same turn inserts simply begins that way. */
export function updateExecution(turn: Turn, execution: LiveExecution, change: RowChange): void {
  const { stepId, path, iteration } = execution;
  const {
    status,
    attempt = execution.attempt,
    error = null,
    completion = null,
    completedAt = null,
    retryAt = null,
    awaited = false,
  } = change;
  const items = execution.items && itemCounts(execution.items);
  const key = executionKey(path, iteration);
  turn.touched.set(path, key);
  const inserted = turn.inserts.get(key);
  // What this turn has written stays, as what an earlier one has; null is an output like any other.
  const { output = (inserted ?? turn.updates.get(key))?.output } = change;
  const row = { status, attempt, output, error, completion, items, completedAt };
  if (inserted !== undefined) turn.inserts.set(key, { ...inserted, ...row });
  else turn.updates.set(key, { stepId, path, iteration, ...row, retryAt, awaited });
}

function itemCounts({ count, completed, failed }: OpenItems): ItemCounts {
  return { count, completed, failed };
}

/** Puts an error beside what this turn has made of a row. */
export function noteError(
  { inserts, updates }: Turn,
  { path, iteration }: LiveExecution,
  error: WorkflowError,
): void {
  const key = executionKey(path, iteration);
  const inserted = inserts.get(key);
  const updated = updates.get(key);
  if (inserted !== undefined) inserts.set(key, { ...inserted, error });
  else if (updated !== undefined) updates.set(key, { ...updated, error });
}

// Waits and timers. What was opened or set in this same turn simply never comes to be.

export function openWait(turn: Turn, given: NewWait): void {
  const emittedBefore = given.emittedBefore ?? turn.emitted.length;
  const wait = emittedBefore === 0 ? given : { ...given, emittedBefore };
  turn.waits.set(executionKey(wait.path, wait.iteration), { kind: "openWait", wait });
}

export function closeWait(turn: Turn, path: string, iteration: number): void {
  const key = executionKey(path, iteration);
  turn.rekeys.delete(key);
  if (turn.waits.get(key)?.kind === "openWait") turn.waits.delete(key);
  else turn.waits.set(key, { kind: "closeWait", path, iteration });
}

/** Where the waits of an execution are stored, those whose event has come excepted. */
export function waitPathsOf({ path, awaiting }: LiveExecution): readonly string[] {
  if (awaiting === undefined) return [path];
  return Object.keys(awaiting).map((place) => waitPathOf(path, Number(place)));
}

function closeWaits(turn: Turn, execution: LiveExecution): void {
  if (turn.definition.steps.get(execution.stepId)?.type !== "EVENT_WAIT") return;
  for (const path of waitPathsOf(execution)) closeWait(turn, path, execution.iteration);
}

export function setTimer(
  turn: Turn,
  timer: TimerKind,
  { path, iteration, attempt }: Pick<LiveExecution, "path" | "iteration" | "attempt">,
  dueAt: Date,
): void {
  const key = `${timer}:${executionKey(path, iteration)}`;
  turn.timers.set(key, { kind: "setTimer", timer, path, iteration, attempt, dueAt });
}

function clearTimer(turn: Turn, timer: TimerKind, path: string, iteration: number): void {
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

/** The timers of the instance itself have no path. */
export function setInstanceTimer(turn: Turn, timer: TimerKind, dueAt: Date): void {
  setTimer(turn, timer, { path: "", iteration: 0, attempt: 0 }, dueAt);
  turn.state.timers = [...turn.state.timers, timer];
}

export function clearInstanceTimer(turn: Turn, timer: TimerKind): void {
  if (!turn.state.timers.includes(timer)) return;
  clearTimer(turn, timer, "", 0);
  turn.state.timers = turn.state.timers.filter((other) => other !== timer);
}
