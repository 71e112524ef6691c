import type { Json } from "@millrace/expressions";
import type { Definition } from "./definition/definition.ts";
import { decide, isNeeds } from "./decide/decide.ts";
import { InvariantError } from "./assert.ts";
import type { Decision, ExecutionUpdate, NewExecution } from "./state/decision.ts";
import { noReads } from "./state/reads.ts";
import type { ExecutionRead, Reads } from "./state/reads.ts";
import type { Signal } from "./state/signal.ts";
import type { Snapshot } from "./state/snapshot.ts";
import { executionKey } from "./state/snapshot.ts";
import { workingTimesOf } from "./state/stored-signal.ts";

/** What one commit folded: the signals in order, and the time that the decision was given. */
export interface HistoryStep {
  readonly at: Date;
  readonly signals: readonly Signal[];
}

/**
 * An instance and its step rows in memory: what the store keeps, without a store. It serves replay,
 * simulation and model tests.
 */
export interface MemoryInstance {
  readonly snapshot: Snapshot;
  /** By execution key, in the order in which they began. */
  readonly executions: ReadonlyMap<string, ExecutionRead>;
  /** The items of MAPs, by execution key. */
  readonly inputs: ReadonlyMap<string, Json>;
  /** Those of the definition's steps, by id; null where there is none. */
  readonly calendars: Reads["calendars"];
}

export function memoryInstance(
  snapshot: Snapshot,
  calendars: Reads["calendars"] = noReads.calendars,
): MemoryInstance {
  return { snapshot, executions: new Map(), inputs: new Map(), calendars };
}

/**
 * Decides and, in memory, commits. Everything is at hand, so nothing is ever missing. Rows that were
 * observed to be RUNNING are so for this decision: what claims do in between leaves no trace.
 */
export function advanceInMemory(
  definition: Definition,
  instance: MemoryInstance,
  signals: readonly Signal[],
  now: Date,
): { readonly instance: MemoryInstance; readonly decision: Decision } {
  const observed = signals.reduce(applyObserved, instance);
  const reads = { ...readsOf(observed), workingTimes: workingTimesOf(signals) };
  const decision = decide(definition, instance.snapshot, signals, reads, now);
  if (isNeeds(decision)) throw new InvariantError("a decision needs rows that do not exist");
  return { instance: commitInMemory(instance, decision), decision };
}

/** Replays a history: the snapshot that it leads to (DESIGN, History). */
export function fold(
  definition: Definition,
  created: Snapshot,
  history: readonly HistoryStep[],
): MemoryInstance {
  return history.reduce(
    (instance, { signals, at }) => advanceInMemory(definition, instance, signals, at).instance,
    memoryInstance(created),
  );
}

/** A worker takes the row, if it can be taken: a task's. Claims leave the snapshot as it is. */
export function claimInMemory(instance: MemoryInstance, key: string): MemoryInstance {
  const read = instance.executions.get(key);
  if (read?.status !== "PENDING" && read?.status !== "RETRYING") return instance;
  if (read.queue === null) return instance;
  const claimed = { ...read, status: "RUNNING", fence: read.fence + 1 } as const;
  return { ...instance, executions: new Map(instance.executions).set(key, claimed) };
}

export function readsOf({ executions, inputs, calendars }: MemoryInstance): Reads {
  const latest = new Map([...executions.values()].map((read) => [read.path, read]));
  return { ...noReads, latest, executions, inputs, calendars, all: true };
}

function applyObserved(instance: MemoryInstance, signal: Signal): MemoryInstance {
  if (signal.kind !== "observedRunning") return instance;
  return signal.executions.reduce(claimInMemory, instance);
}

function commitInMemory(instance: MemoryInstance, decision: Decision): MemoryInstance {
  const next = new Map(instance.executions);
  const inputs = new Map(instance.inputs);
  for (const row of decision.inserts) {
    const key = executionKey(row.path, row.iteration);
    next.set(key, inserted(row));
    if (row.type === "MAP" && row.input !== undefined) inputs.set(key, row.input);
  }
  for (const update of decision.updates) {
    const key = executionKey(update.path, update.iteration);
    const before = next.get(key);
    if (before === undefined) throw new InvariantError(`update of an unknown execution ${key}`);
    next.set(key, updated(before, update));
  }
  return { ...instance, snapshot: decision.snapshot, executions: next, inputs };
}

function inserted(row: NewExecution): ExecutionRead {
  const { stepId, path, iteration, status, attempt, output, error, completion, entry, queue } = row;
  return {
    stepId,
    path,
    iteration,
    status,
    attempt,
    fence: 0,
    output,
    outputLeftOut: false,
    error,
    completion,
    entry,
    queue,
  };
}

function updated(before: ExecutionRead, update: ExecutionUpdate): ExecutionRead {
  const { status, attempt, output = before.output, error, completion } = update;
  return { ...before, status, attempt, output, error, completion };
}
