import { randomUUID } from "node:crypto";
import {
  changesBetween,
  blankSnapshot,
  encodeFrontier,
  executionKey,
  isHeldBack,
  signalsToKeep,
  storedSignal,
  triggerPath,
} from "@millrace/engine";
import type {
  Command,
  EmittedEvent,
  ExecutionUpdate,
  NewExecution,
  NewWait,
  Snapshot,
} from "@millrace/engine";
import type { Carry, Commit, Key, ReceivedSignal } from "../commit.ts";
import { jsonText, keyHashOf } from "../json.ts";
import { slotChangesOf } from "./slot-writes.ts";
import type { SlotChange } from "./slot-writes.ts";

/** A commit as the rows that it is written with. */
export interface Draft extends Key {
  readonly commit: Commit;
  readonly commitId: string;
  /** Expected to be stored; the commit makes it one more. */
  readonly version: number;
  readonly next: Snapshot;
  readonly at: Date;
  readonly actor: string;
  readonly texts: Texts;
  readonly needs: readonly NeededStep[];
  readonly freeWaits: readonly Place[];
  readonly inserts: readonly StepInsert[];
  readonly updates: readonly StepUpdate[];
  readonly opens: readonly WaitInsert[];
  readonly rekeys: readonly WaitKeyUpdate[];
  readonly closes: readonly Place[];
  /** Of the waits that are closed, those whose event is for another wait, if they have one. */
  readonly handsOn: readonly Place[];
  /** In the order in which they are emitted. */
  readonly emits: readonly EventInsert[];
  readonly sets: readonly CommandOf<"setTimer">[];
  readonly clears: readonly CommandOf<"clearTimer">[];
  readonly heldSteps: readonly HeldPlace[];
  readonly heldTimers: readonly (HeldPlace & { readonly timer: string })[];
  readonly heldWaits: readonly HeldPlace[];
  readonly opensLetter: CommandOf<"openDeadLetter"> | undefined;
  readonly resolvesLetter: CommandOf<"resolveDeadLetter"> | undefined;
  readonly settles: boolean;
  /** It settles, and waits were open: an event may take one of them meanwhile. */
  readonly closesAtEnd: boolean;
  /** One at most. */
  readonly slots: readonly SlotChange[];
  readonly starts: readonly CommandOf<"startChild">[];
  readonly sends: readonly ChildSignalInsert[];
  readonly received: readonly ReceivedSignal[];
  /** Rows beside the instance's and the history's. */
  readonly rows: number;
  /** Length of the JSON texts among its values. */
  readonly size: number;
}

/** JSON of the instance's row and of the history's; undefined where the column stays as it was. */
export interface Texts {
  readonly variables: string | undefined;
  readonly output: string | undefined;
  readonly error: string | undefined;
  readonly cancellation: string | undefined;
  readonly compensation: string | undefined;
  readonly frontier: string;
  readonly signals: string;
  readonly changes: string;
  readonly entries: string;
  /** Of a first commit only. */
  readonly input: string | undefined;
  readonly metadata: string | undefined;
}

export interface Place {
  readonly path: string;
  readonly iteration: number;
}

/** A row that a pause holds, or lets go. */
export interface HeldPlace extends Place {
  readonly isHeld: boolean;
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
  readonly isHeld: true | undefined;
}

export interface StepUpdate {
  readonly row: ExecutionUpdate;
  readonly output: string | undefined;
  readonly error: string | null;
  /** Undefined and not false: a column of nulls travels as nothing. */
  readonly isHeld: true | undefined;
}

export interface EventInsert {
  readonly event: EmittedEvent;
  readonly payload: string;
  /** How many the same commit emits after it. */
  readonly after: number;
}

export interface WaitInsert {
  readonly wait: NewWait;
  readonly eventPaths: string;
  readonly keyHash: string | null;
  /** How many events the same commit emits after the wait opens. */
  readonly emitsAfter: number;
  readonly isHeld: true | undefined;
}

export interface WaitKeyUpdate extends Place {
  readonly keyHash: string | null;
  /** Null: as it was. */
  readonly isHeld: boolean | null;
}

/** A row for another instance. */
export interface ChildSignalInsert extends Place {
  readonly to: string;
  readonly kind: ReceivedSignal["kind"];
  readonly childId: string;
  /** Of the decision that sends it. */
  readonly sentVersion: number;
  readonly attempt: number;
  readonly body: string;
}

type CommandOf<K extends Command["kind"]> = OfKind<Command, K>;

/** Also those that have one of several kinds. */
type OfKind<C extends Command, K> = C extends unknown ? (K extends C["kind"] ? C : never) : never;

/** @throws RangeError where a value cannot be stored. */
export function draftOf(commit: Commit): Draft {
  const { previous, decision, at, actor } = commit;
  const { snapshot: next, guards } = decision;
  const all = byKind(decision.commands);
  const settles = all("settle").length > 0;
  // The end of an instance takes all its waits and timers, so there is no need to touch them singly.
  const kept: CommandsByKind = settles ? () => none : all;
  const texts = textsOf(commit);
  const inserts = insertsOf(commit);
  const updates = decision.updates.map((row) => ({
    row,
    output: optionalJson(row.output),
    error: row.error && jsonText(row.error),
    isHeld: isHeldIn(decision, row),
  }));
  const needs = [
    ...commit.holds.map(({ path, iteration, fence, workerId }) => ({
      path,
      iteration,
      fence,
      workerId,
      status: "RUNNING",
    })),
    ...guards.flatMap((guard) =>
      guard.kind === "execution" ? [{ ...guard, workerId: null }] : [],
    ),
  ];
  const isPaused = next.status === "PAUSED";
  const pauses = isPaused !== (previous.status === "PAUSED");
  const emitted = all("emitEvent");
  const emits = emitted.map(({ event }, index) => ({
    event,
    payload: jsonText(event.payload),
    after: emitted.length - index - 1,
  }));
  const opens = kept("openWait").map(({ wait }) => waitInsert(wait, emitted.length, isPaused));
  const rekeys = kept("rekeyWait").map((command) => ({
    ...command,
    keyHash: hashOf(command.key),
    isHeld: pauses && command.path !== triggerPath ? isPaused : null,
  }));
  const sets = kept("setTimer");
  const holds = [...kept("hold"), ...kept("letGo")].map((command) => ({
    ...command,
    isHeld: command.kind === "hold",
  }));
  return {
    tenantId: previous.tenantId,
    instanceId: previous.id,
    commit,
    commitId: commitIdOf(commit),
    version: previous.version,
    next,
    at,
    actor,
    texts,
    needs,
    freeWaits: guards.filter((guard) => guard.kind === "waitUnmatched"),
    inserts,
    updates,
    opens,
    rekeys,
    closes: kept("closeWait"),
    handsOn: all("closeWait").filter(({ handsOn }) => handsOn === true),
    emits,
    sets,
    clears: kept("clearTimer"),
    heldSteps: holds.flatMap(({ executions, isHeld }) =>
      executions.map((place) => ({ ...place, isHeld })),
    ),
    heldTimers: holds.flatMap(({ timers, isHeld }) => timers.map((each) => ({ ...each, isHeld }))),
    heldWaits: holds.flatMap(({ waits, isHeld }) => waits.map((each) => ({ ...each, isHeld }))),
    opensLetter: all("openDeadLetter")[0],
    resolvesLetter: all("resolveDeadLetter")[0],
    settles,
    closesAtEnd: settles && all("closeWait").length > 0,
    slots: slotChangesOf(commit),
    starts: all("startChild"),
    sends: [
      ...all("cancelChild").map((command) => cancelOf(next, command)),
      ...all("reportEnd").map((command) => endOf(next, command)),
    ],
    received: commit.received ?? [],
    rows:
      needs.length + inserts.length + updates.length + opens.length + sets.length + emits.length,
    size: sizeOf(texts, inserts, updates, emits),
  };
}

const none: readonly never[] = [];

type CommandsByKind = <K extends Command["kind"]>(kind: K) => readonly CommandOf<K>[];

/** In one walk: most commits have a command or two, and are asked for each of the kinds. */
function byKind(commands: readonly Command[]): CommandsByKind {
  const kinds = new Map<string, unknown[]>();
  for (const command of commands) {
    const those = kinds.get(command.kind);
    if (those === undefined) kinds.set(command.kind, [command]);
    else those.push(command);
  }
  return (kind) => (kinds.get(kind) ?? none) as readonly CommandOf<typeof kind>[];
}

function cancelOf(
  { id: parentId, version: sentVersion }: Snapshot,
  { path, iteration, attempt, childId, reason, shouldCompensate }: CommandOf<"cancelChild">,
): ChildSignalInsert {
  const body = jsonText({ reason, shouldCompensate, parentId });
  return { to: childId, kind: "CANCEL", path, iteration, attempt, childId, sentVersion, body };
}

function endOf(
  { id: childId, version: sentVersion }: Snapshot,
  { parent, status, error, reason, isOwn }: CommandOf<"reportEnd">,
): ChildSignalInsert {
  const { instanceId: to, path, iteration, attempt } = parent;
  const body = jsonText({ status, error, reason, isOwn });
  return { to, kind: "END", path, iteration, attempt, childId, sentVersion, body };
}

function textsOf({ previous, decision, signals, create }: Commit): Texts {
  const { snapshot: next, entries } = decision;
  const isFirst = previous.version === 0;
  const changed = (before: unknown, after: unknown): string | undefined =>
    (isFirst ? after === null : before === after) ? undefined : jsonText(after);
  return {
    variables: changed(previous.variables, next.variables),
    output: changed(previous.output, next.output),
    error: changed(previous.error, next.error),
    cancellation: changed(previous.cancellation, next.cancellation),
    compensation: changed(previous.compensation, next.compensation),
    frontier: jsonText(encodeFrontier(next)),
    signals: jsonText(signalsToKeep(decision, signals).map(storedSignal)),
    changes: jsonText(changesBetween(isFirst ? blankSnapshot(previous) : previous, next)),
    entries: jsonText(entries),
    input: isFirst ? jsonText(next.input) : undefined,
    metadata: create?.metadata == null ? undefined : jsonText(create.metadata),
  };
}

function sizeOf(
  { variables, output, signals, changes, entries, input, metadata }: Texts,
  inserts: readonly StepInsert[],
  updates: readonly StepUpdate[],
  emits: readonly EventInsert[],
): number {
  let size = signals.length + changes.length + entries.length;
  for (const text of [variables, output, input, metadata]) size += text?.length ?? 0;
  for (const row of inserts) size += (row.input?.length ?? 0) + (row.output?.length ?? 0);
  for (const row of updates) size += row.output?.length ?? 0;
  for (const { payload } of emits) size += payload.length;
  return size;
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
      isHeld: isHeldIn(decision, row),
    };
  });
}

/** Whatever a decision writes of the tasks of an instance that is held back is held. */
function isHeldIn({ snapshot }: Commit["decision"], { path, iteration }: Place): true | undefined {
  if (!isHeldBack(snapshot)) return undefined;
  return snapshot.live[executionKey(path, iteration)]?.phase === "ACTIVE" || undefined;
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

function waitInsert(wait: NewWait, emitted: number, isPaused: boolean): WaitInsert {
  return {
    wait,
    eventPaths: wait.eventPaths.join(" "),
    keyHash: hashOf(wait.key),
    emitsAfter: emitted - (wait.emittedBefore ?? 0),
    isHeld: (isPaused && wait.purpose === "STEP") || undefined,
  };
}

function hashOf(key: NewWait["key"]): string | null {
  return key === "NEVER" ? null : keyHashOf(key);
}

function optionalJson(value: NewExecution["output"]): string | undefined {
  return value === undefined ? undefined : jsonText(value);
}
