import type { Json } from "@millrace/expressions";
import { InvariantError } from "../assert.ts";
import { decide, isNeeds } from "../decide/decide.ts";
import { createSnapshot } from "../decide/start.ts";
import type { Definition } from "../definition/definition.ts";
import { engineRev } from "../rev.ts";
import { applyChanges, blankSnapshot, changesBetween } from "../state/changes.ts";
import { restoredSignal, workingTimesOf } from "../state/stored-signal.ts";
import type { Changes, Identity } from "../state/changes.ts";
import type { StoredSignal } from "../state/stored-signal.ts";
import type { Command, Decision, HistoryEntry, NewWait } from "../state/decision.ts";
import { noReads } from "../state/reads.ts";
import type { ExecutionRead, Reads } from "../state/reads.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import type { CommitEvidence, MadeCommit, ReplayedStep } from "./evidence.ts";
import { sameStored } from "./same.ts";

/**
 * A history read in two ways (DESIGN, History): its changes, applied one after the other, and its
 * signals, decided upon again. Both must lead to what is stored. The second also says which rows,
 * waits and timers there must be, to the last detail.
 */

type CommandOf<K extends Command["kind"]> = Extract<Command, { kind: K }>;

export interface ReplayedWait {
  readonly wait: NewWait;
  /** Of the decision that opened it. */
  readonly at: Date;
}

/** What the signals lead to. */
export interface Replayed {
  readonly snapshot: Snapshot;
  /** Every commit is of the revision that decides here: rows are as it writes them, column by column. */
  readonly isOfThisEngine: boolean;
  /** By execution key. */
  readonly steps: ReadonlyMap<string, ReplayedStep>;
  readonly waits: ReadonlyMap<string, ReplayedWait>;
  /** By `timerKey`. */
  readonly timers: ReadonlyMap<string, CommandOf<"setTimer">>;
  readonly starts: readonly CommandOf<"startChild">[];
}

export type Replay =
  | {
      readonly kind: "replayed";
      readonly replayed: Replayed;
      /** Those versions whose stored changes are not those of the decision. */
      readonly otherChanges: readonly MadeCommit[];
      /** Those whose entries are not. */
      readonly otherEntries: readonly MadeCommit[];
    }
  /** A commit of an earlier engine came to something else than this one would: no finding. */
  | { readonly kind: "earlierEngine"; readonly version: number }
  | { readonly kind: "failed"; readonly version: number; readonly message: string };

export function timerKey(timer: string, path: string, iteration: number): string {
  return `${timer}:${executionKey(path, iteration)}`;
}

/** Commits between two pauses: a few milliseconds of work. */
const commitsAtOnce = 50;

/**
 * Pauses again and again, for whoever must not be kept busy for long.
 *
 * @param outputOf The stored output of an execution, by its key.
 */
export function* replay(
  definition: Definition,
  identity: Identity,
  history: readonly CommitEvidence[],
  outputOf: (executionKey: string) => Json,
): Generator<void, Replay, void> {
  const isOfThisEngine = history.every(({ engineRev: rev }) => rev === engineRev);
  const first = firstSnapshot(definition, identity, history[0]?.changes?.priority ?? 0);
  const world = openWorld(first, isOfThisEngine);
  const otherChanges: MadeCommit[] = [];
  const otherEntries: MadeCommit[] = [];
  for (const { version, at, engineRev: rev, signals, changes, entries } of history) {
    if (version % commitsAtOnce === 0) yield;
    const before = version === 1 ? blankSnapshot(identity) : world.snapshot;
    let made: readonly HistoryEntry[];
    try {
      made = advance(definition, world, signals, outputOf, at);
    } catch (thrown) {
      if (rev !== engineRev) return { kind: "earlierEngine", version };
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      return { kind: "failed", version, message };
    }
    const decided = { version, changes: changesBetween(before, world.snapshot), entries: made };
    if (!sameStored(decided.changes, changes)) {
      if (rev !== engineRev) return { kind: "earlierEngine", version };
      otherChanges.push(decided);
    }
    // An earlier engine told the same in other words.
    if (rev === engineRev && !sameStored(made, entries)) otherEntries.push(decided);
  }
  return { kind: "replayed", replayed: world, otherChanges, otherEntries };
}

/** What the changes of a history without gaps lead to; undefined where they cannot be applied. */
export function applyHistory(
  identity: Identity,
  history: readonly CommitEvidence[],
): Snapshot | undefined {
  try {
    return history.reduce(
      (snapshot, { changes }) => applyChanges(snapshot, changes),
      blankSnapshot(identity),
    );
  } catch {
    return undefined;
  }
}

/** As the instance was before its first signal. */
function firstSnapshot(definition: Definition, identity: Identity, priority: number): Snapshot {
  return createSnapshot(definition, { ...identity, priority });
}

/** Changed in place: a history has as many commits as the instance has steps. */
interface World {
  snapshot: Snapshot;
  readonly isOfThisEngine: boolean;
  readonly steps: Map<string, ReplayedStep>;
  readonly waits: Map<string, ReplayedWait>;
  readonly timers: Map<string, CommandOf<"setTimer">>;
  readonly starts: CommandOf<"startChild">[];
  readonly latest: Map<string, ExecutionRead>;
  readonly executions: Map<string, ExecutionRead>;
  readonly inputs: Map<string, Json>;
}

function openWorld(snapshot: Snapshot, isOfThisEngine: boolean): World {
  return {
    snapshot,
    isOfThisEngine,
    steps: new Map(),
    waits: new Map(),
    timers: new Map(),
    starts: [],
    latest: new Map(),
    executions: new Map(),
    inputs: new Map(),
  };
}

function advance(
  definition: Definition,
  world: World,
  stored: readonly StoredSignal[],
  outputOf: (executionKey: string) => Json,
  at: Date,
): readonly HistoryEntry[] {
  if (!Array.isArray(stored)) throw new InvariantError("they are no list of signals");
  const signals = stored.map((signal) => restoredSignal(signal, outputOf));
  const observed = signals.flatMap((signal) =>
    signal.kind === "observedRunning" ? signal.executions : [],
  );
  const unclaimed = observed.map((key) => [key, world.executions.get(key)] as const);
  for (const [key, read] of unclaimed) if (read !== undefined) putRead(world, key, claimed(read));
  const workingTimes = workingTimesOf(signals);
  const reads: Reads = { ...noReads, ...world, workingTimes, all: true };
  const decision = decide(definition, world.snapshot, signals, reads, at);
  // Claims leave no trace: what was seen RUNNING is so for this decision only.
  for (const [key, read] of unclaimed) if (read !== undefined) putRead(world, key, read);
  if (isNeeds(decision)) throw new InvariantError("a decision needs rows that do not exist");
  if (decision.snapshot === world.snapshot) throw new InvariantError("its signals change nothing");
  commit(world, decision, at);
  return decision.entries;
}

function claimed(read: ExecutionRead): ExecutionRead {
  return { ...read, status: "RUNNING", fence: read.fence + 1 };
}

function putRead(world: World, key: string, read: ExecutionRead): void {
  world.executions.set(key, read);
  const latest = world.latest.get(read.path);
  if (latest === undefined || latest.iteration <= read.iteration) world.latest.set(read.path, read);
}

function commit(world: World, { snapshot, inserts, updates, commands }: Decision, at: Date): void {
  world.snapshot = snapshot;
  for (const row of inserts) {
    const key = executionKey(row.path, row.iteration);
    putStep(world, key, { ...row, retryAt: null, awaited: false, insertedAt: at });
    if (row.type === "MAP" && row.input !== undefined) world.inputs.set(key, row.input);
  }
  for (const update of updates) {
    const key = executionKey(update.path, update.iteration);
    const before = world.steps.get(key);
    if (before === undefined) throw new InvariantError(`update of an unknown execution ${key}`);
    const { output = before.output, items = before.items, completion } = update;
    putStep(world, key, {
      ...before,
      ...update,
      output,
      items,
      completion: completion ?? before.completion,
    });
  }
  if (commands.some(({ kind }) => kind === "settle")) {
    world.waits.clear();
    world.timers.clear();
  } else {
    for (const command of commands) follow(world, command, at);
  }
  for (const command of commands) if (command.kind === "startChild") world.starts.push(command);
}

function putStep(world: World, key: string, step: ReplayedStep): void {
  world.steps.set(key, step);
  const { stepId, path, iteration, status, attempt, output, error, completion, entry, queue } =
    step;
  const fence = world.executions.get(key)?.fence ?? 0;
  const place = { stepId, path, iteration, entry, queue };
  const row = { ...place, status, attempt, fence, output, error, completion };
  putRead(world, key, { ...row, outputLeftOut: false });
}

function follow({ waits, timers }: World, command: Command, at: Date): void {
  switch (command.kind) {
    case "openWait": {
      const { wait } = command;
      waits.set(executionKey(wait.path, wait.iteration), { wait, at });
      return;
    }
    case "rekeyWait": {
      const key = executionKey(command.path, command.iteration);
      const known = waits.get(key);
      if (known) waits.set(key, { ...known, wait: { ...known.wait, key: command.key } });
      return;
    }
    case "closeWait":
      waits.delete(executionKey(command.path, command.iteration));
      return;
    case "setTimer":
      timers.set(timerKey(command.timer, command.path, command.iteration), command);
      return;
    case "clearTimer":
      timers.delete(timerKey(command.timer, command.path, command.iteration));
      return;
    default:
  }
}

export type { Changes };
