import { randomUUID } from "node:crypto";
import {
  changesBetween,
  blankSnapshot,
  encodeFrontier,
  executionKey,
  storedSignal,
} from "@millrace/engine";
import type {
  Command,
  ExecutionUpdate,
  NewExecution,
  NewWait,
  Signal,
  Snapshot,
} from "@millrace/engine";
import type { Carry, Commit, Key } from "./commit.ts";
import { jsonText, keyHashOf } from "./json.ts";

/** A commit as the rows that it is written with. */
export interface Draft extends Key {
  readonly commit: Commit;
  readonly commitId: string;
  /** Expected to be stored; the commit makes it one more. */
  readonly version: number;
  readonly next: Snapshot;
  readonly at: Date;
  readonly actor: string;
  /** Undefined: as they were. */
  readonly variables: string | undefined;
  /** Of a first commit only. */
  readonly input: string | null;
  readonly metadata: string | null;
  readonly output: string | undefined;
  readonly error: string | undefined;
  readonly cancellation: string | undefined;
  readonly compensation: string | undefined;
  readonly frontier: string;
  readonly signals: string;
  readonly changes: string;
  readonly entries: string;
  readonly needs: readonly NeededStep[];
  readonly freeWaits: readonly Place[];
  readonly inserts: readonly StepInsert[];
  readonly updates: readonly StepUpdate[];
  readonly opens: readonly WaitInsert[];
  readonly rekeys: readonly (Place & { readonly keyHash: string | null })[];
  readonly closes: readonly Place[];
  readonly sets: readonly CommandOf<"setTimer">[];
  readonly clears: readonly CommandOf<"clearTimer">[];
  readonly settles: boolean;
  /** Rows beside the instance's and the history's. */
  readonly rows: number;
  /** Length of the JSON texts among its values. */
  readonly size: number;
}

export interface Place {
  readonly path: string;
  readonly iteration: number;
}

/** A step row that must be found so. */
export interface NeededStep extends Place {
  readonly status: string;
  readonly fence: number;
  /** Null: whoever holds it, if anyone. */
  readonly workerId: string | null;
}

export interface StepInsert {
  readonly row: NewExecution;
  readonly input: string | undefined;
  readonly output: string | undefined;
  readonly error: string | null;
  readonly carry: Carry | undefined;
  readonly retry: string | null;
  readonly clock: Clock;
}

export interface StepUpdate {
  readonly row: ExecutionUpdate;
  readonly output: string | undefined;
  readonly error: string | null;
}

export interface WaitInsert {
  readonly wait: NewWait;
  readonly eventPaths: string;
  readonly keyHash: string | null;
}

type CommandOf<K extends Command["kind"]> = Extract<Command, { kind: K }>;

/** @throws RangeError where a value cannot be stored. */
export function draftOf(commit: Commit): Draft {
  const { previous, decision, signals, at, actor, holds } = commit;
  const { snapshot: next, guards, commands } = decision;
  const settles = commands.some(({ kind }) => kind === "settle");
  const isFirst = previous.version === 0;
  const changed = (field: keyof Snapshot): string | undefined => {
    if (isFirst ? next[field] === null : previous[field] === next[field]) return undefined;
    return jsonText(next[field]);
  };
  const inserts = insertsOf(commit);
  const updates = decision.updates.map((row) => ({
    row,
    output: optionalJson(row.output),
    error: row.error && jsonText(row.error),
  }));
  const needs = [
    ...holds.map((hold) => ({ ...hold, status: "RUNNING" })),
    ...guards.flatMap((guard) =>
      guard.kind === "execution" ? [{ ...guard, workerId: null }] : [],
    ),
  ];
  // The end of an instance takes all its waits and timers, so there is no need to touch them singly.
  const kept = settles ? [] : commands;
  const opens = kept.flatMap((command) =>
    command.kind === "openWait" ? [waitInsert(command.wait)] : [],
  );
  const rekeys = kept.flatMap((command) =>
    command.kind === "rekeyWait" ? [{ ...command, keyHash: hashOf(command.key) }] : [],
  );
  const closes = kept.filter((command) => command.kind === "closeWait");
  const sets = kept.filter((command) => command.kind === "setTimer");
  const clears = kept.filter((command) => command.kind === "clearTimer");
  const texts = {
    variables: changed("variables"),
    output: changed("output"),
    error: changed("error"),
    cancellation: changed("cancellation"),
    compensation: changed("compensation"),
    frontier: jsonText(encodeFrontier(next)),
    signals: jsonText(observed(decision.observedRunning, signals).map(storedSignal)),
    changes: jsonText(changesBetween(isFirst ? blankSnapshot(previous) : previous, next)),
    entries: jsonText(decision.entries),
    input: isFirst ? jsonText(next.input) : null,
    metadata: commit.create?.metadata == null ? null : jsonText(commit.create.metadata),
  };
  return {
    ...texts,
    tenantId: previous.tenantId,
    instanceId: previous.id,
    commit,
    commitId: commitIdOf(commit),
    version: previous.version,
    next,
    at,
    actor,
    needs,
    freeWaits: guards.filter((guard) => guard.kind === "waitUnmatched"),
    inserts,
    updates,
    opens,
    rekeys,
    closes,
    sets,
    clears,
    settles,
    rows: needs.length + inserts.length + updates.length + opens.length + sets.length,
    size:
      sizeOf(Object.values(texts)) +
      sizeOf(inserts.flatMap(({ input, output }) => [input, output])) +
      sizeOf(updates.map(({ output }) => output)),
  };
}

/**
 * The same for the same object, so that a commit that is handed in again is known as the one it was.
 * Random per process and counted within it: a random id for each would cost as much as its statement's
 * parameters.
 */
function commitIdOf(commit: Commit): string {
  const known = commitIds.get(commit);
  if (known !== undefined) return known;
  const id = `${thisProcess}-${(counter++).toString(16).padStart(12, "0")}`;
  commitIds.set(commit, id);
  return id;
}

const commitIds = new WeakMap<Commit, string>();
const thisProcess = randomUUID().slice(0, -13);
let counter = 0;

/** What a decision saw of claims, which leave no other trace, goes into the history before it. */
function observed(executions: readonly string[], signals: readonly Signal[]): readonly Signal[] {
  return executions.length === 0 ? signals : [{ kind: "observedRunning", executions }, ...signals];
}

function insertsOf({ decision, carry }: Commit): readonly StepInsert[] {
  const carried = new Map(carry.map((each) => [executionKey(each.path, each.iteration), each]));
  return decision.inserts.map((row) => {
    const mine = carried.get(executionKey(row.path, row.iteration));
    return {
      row,
      input: optionalJson(row.input),
      output: optionalJson(row.output),
      error: row.error && jsonText(row.error),
      carry: mine,
      retry: mine === undefined || mine.retry === null ? null : jsonText(mine.retry),
      clock: clockOf(row, mine),
    };
  });
}

/** The clocks of an attempt that starts now, in milliseconds from then. */
export interface Clock {
  readonly timeoutMs: number | null;
  readonly dueMs: number | null;
  readonly name: "timeout" | "heartbeat" | null;
}

function clockOf(row: NewExecution, carry: Carry | undefined): Clock {
  if (carry === undefined) return { timeoutMs: null, dueMs: null, name: null };
  const timeoutMs = row.timeoutMs ?? carry.timeoutMs;
  const heartbeatMs = row.heartbeatTimeoutMs ?? carry.heartbeatTimeoutMs;
  if (heartbeatMs !== null && (timeoutMs === null || heartbeatMs < timeoutMs)) {
    return { timeoutMs, dueMs: heartbeatMs, name: "heartbeat" };
  }
  return { timeoutMs, dueMs: timeoutMs, name: timeoutMs === null ? null : "timeout" };
}

function waitInsert(wait: NewWait): WaitInsert {
  return { wait, eventPaths: wait.eventPaths.join(" "), keyHash: hashOf(wait.key) };
}

function hashOf(key: NewWait["key"]): string | null {
  return key === "NEVER" ? null : keyHashOf(key);
}

function sizeOf(texts: readonly (string | null | undefined)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

function optionalJson(value: NewExecution["output"]): string | undefined {
  return value === undefined ? undefined : jsonText(value);
}
