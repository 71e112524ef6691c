import type { Json } from "@millrace/expressions";
import { InvariantError } from "../assert.ts";
import type { Signal } from "./signal.ts";
import type {
  Cancellation,
  Compensation,
  JsonObject,
  LiveExecution,
  Snapshot,
  OpenBranches,
  OpenItems,
  Pause,
  Place,
  TimerKind,
  WorkflowError,
} from "./snapshot.ts";
import { stepIdOf, takeApart } from "../definition/paths.ts";
import { executionKey } from "./snapshot.ts";
import type { InstanceStatus } from "./status.ts";

/**
 * Between a snapshot and what is stored of it: the frontier (one JSON column beside plain ones), and
 * the changes from one version to the next (the history, from which any version can be built again).
 */

/** What an instance is from its first version to its last. */
export type Identity = Pick<
  Snapshot,
  | "id"
  | "tenantId"
  | "workflowId"
  | "workflowVersion"
  | "correlationId"
  | "userId"
  | "startEventId"
  | "createdAt"
  | "input"
  | "parent"
>;

/** A snapshot in columns of the store; `frontier` is what `encodeFrontier` made. */
export interface StoredSnapshot extends Omit<Snapshot, keyof Frontier> {
  readonly frontier: Json;
}

type WaitKey = readonly Json[] | "NEVER";
type Frontier = Pick<
  Snapshot,
  | "live"
  | "iterations"
  | "completions"
  | "completedSteps"
  | "countedSteps"
  | "begunItems"
  | "lastOutput"
  | "uncertain"
  | "timers"
  | "triggerKeys"
  | "pause"
  | "interventions"
  | "failedAt"
>;

/**
 * A paused instance is written in a format of its own: a release that knows no pauses would go on with
 * it, and lose what is held.
 */
const format = 1;
const pausedFormat = 2;

/** A live execution as stored. What most have in common is left out. */
interface StoredLive {
  /** Absent: the last part of the path. */
  readonly stepId?: string;
  readonly phase: LiveExecution["phase"];
  /** Absent: 1. */
  readonly attempt?: number;
  /** Absent: none. */
  readonly timers?: readonly TimerKind[];
  readonly waitKey?: WaitKey;
  readonly awaiting?: LiveExecution["awaiting"];
  readonly compensates?: string;
  /** Iteration of the PARALLEL or MAP around it. Absent: the same as its own. */
  readonly outer?: number;
  /** `last` of its place. Absent: none. */
  readonly last?: string;
  readonly branches?: OpenBranches;
  readonly items?: OpenItems;
  readonly child?: string;
  readonly round?: number;
  readonly heldAt?: string;
  readonly error?: WorkflowError;
}

/** As stored; what is empty is left out. */
interface StoredFrontier {
  readonly format: number;
  readonly live?: { readonly [executionKey: string]: StoredLive };
  readonly iterations?: Snapshot["iterations"];
  readonly completions?: number;
  readonly completedSteps?: number;
  readonly countedSteps?: readonly string[];
  readonly begunItems?: number;
  readonly lastOutput?: string;
  readonly uncertain?: readonly string[];
  readonly timers?: readonly TimerKind[];
  readonly triggerKeys?: Snapshot["triggerKeys"];
  readonly pause?: Pause;
  readonly interventions?: number;
  readonly failedAt?: string;
}

/**
 * Fields that this release reads. Any other is one of a later release, which runs beside this one while
 * it is rolled out: it is handed on as it came.
 */
const frontierFields: Readonly<Record<keyof StoredFrontier, true>> = {
  format: true,
  live: true,
  iterations: true,
  completions: true,
  completedSteps: true,
  countedSteps: true,
  begunItems: true,
  lastOutput: true,
  uncertain: true,
  timers: true,
  triggerKeys: true,
  pause: true,
  interventions: true,
  failedAt: true,
};

const liveFields: Readonly<Record<keyof StoredLive, true>> = {
  stepId: true,
  phase: true,
  attempt: true,
  timers: true,
  waitKey: true,
  awaiting: true,
  compensates: true,
  outer: true,
  last: true,
  branches: true,
  items: true,
  child: true,
  round: true,
  heldAt: true,
  error: true,
};

/** Undefined, as nearly always, where there are none. */
function othersOf(stored: object, known: object): JsonObject | undefined {
  let others: Record<string, Json> | undefined;
  for (const key in stored) {
    if (Object.hasOwn(known, key)) continue;
    others ??= {};
    put(others, key, (stored as JsonObject)[key] ?? null);
  }
  return others;
}

/** What is live of an instance, ready for `JSON.stringify`. */
export function encodeFrontier(snapshot: Snapshot): StoredFrontier {
  const { live, iterations, completions, lastOutput } = snapshot;
  const { completedSteps, countedSteps, begunItems } = snapshot;
  const { uncertain, timers, triggerKeys, pause, interventions, failedAt } = snapshot;
  return {
    ...snapshot.others,
    format: pause === null ? format : pausedFormat,
    ...(!isEmpty(live) && { live: mapValues(live, storeLive) }),
    ...(!isEmpty(iterations) && { iterations }),
    ...(completions !== 0 && { completions }),
    ...(completedSteps !== 0 && { completedSteps }),
    ...(countedSteps.length > 0 && { countedSteps }),
    ...(begunItems !== 0 && { begunItems }),
    ...(lastOutput !== null && { lastOutput }),
    ...(uncertain.length > 0 && { uncertain }),
    ...(timers.length > 0 && { timers }),
    ...(!isEmpty(triggerKeys) && { triggerKeys }),
    ...(pause !== null && { pause }),
    ...(interventions !== 0 && { interventions }),
    ...(failedAt !== null && { failedAt }),
  };
}

/** @throws InvariantError where the frontier was written by a later release. */
export function decodeSnapshot(columns: StoredSnapshot): Snapshot {
  const stored = columns.frontier as unknown as StoredFrontier;
  if (stored.format > pausedFormat) {
    throw new InvariantError(
      `instance ${columns.id} is stored in format ${stored.format}, and this release reads ${pausedFormat}`,
    );
  }
  const others = othersOf(stored, frontierFields);
  // Field by field, as in `createSnapshot`.
  return {
    id: columns.id,
    tenantId: columns.tenantId,
    workflowId: columns.workflowId,
    workflowVersion: columns.workflowVersion,
    correlationId: columns.correlationId,
    userId: columns.userId,
    startEventId: columns.startEventId,
    createdAt: columns.createdAt,
    input: columns.input,
    parent: columns.parent,
    priority: columns.priority,
    version: columns.version,
    status: columns.status,
    startedAt: columns.startedAt,
    completedAt: columns.completedAt,
    variables: columns.variables,
    output: columns.output,
    error: columns.error,
    cancellation: columns.cancellation,
    compensation: columns.compensation,
    live: mapValues(stored.live ?? {}, restoreLive),
    iterations: stored.iterations ?? {},
    completions: stored.completions ?? 0,
    completedSteps: stored.completedSteps ?? 0,
    countedSteps: stored.countedSteps ?? [],
    begunItems: stored.begunItems ?? 0,
    lastOutput: stored.lastOutput ?? null,
    uncertain: stored.uncertain ?? [],
    timers: stored.timers ?? [],
    triggerKeys: stored.triggerKeys ?? {},
    pause: stored.pause ?? null,
    interventions: stored.interventions ?? 0,
    failedAt: stored.failedAt ?? null,
    ...(others !== undefined && { others }),
  };
}

function storeLive(execution: LiveExecution): StoredLive {
  const { stepId, path, iteration, phase, attempt, timers } = execution;
  const { waitKey, awaiting, compensates, within, branches, items } = execution;
  const { child, round, heldAt, error } = execution;
  return {
    ...execution.others,
    ...(stepId !== stepIdOf(path) && { stepId }),
    phase,
    ...(attempt !== 1 && { attempt }),
    ...(timers.length > 0 && { timers }),
    ...(waitKey !== undefined && { waitKey }),
    ...(awaiting !== undefined && { awaiting }),
    ...(compensates !== undefined && { compensates }),
    ...(within !== undefined && within.iteration !== iteration && { outer: within.iteration }),
    ...(within !== undefined && within.last !== null && { last: within.last }),
    ...(branches !== undefined && { branches }),
    ...(items !== undefined && { items }),
    ...(child !== undefined && { child }),
    ...(round !== undefined && { round }),
    ...(heldAt !== undefined && { heldAt }),
    ...(error !== undefined && { error }),
  };
}

function restoreLive(stored: StoredLive, key: string): LiveExecution {
  const at = key.lastIndexOf("#");
  const path = key.slice(0, at);
  const iteration = Number(key.slice(at + 1));
  const within = restorePlace(stored, path, iteration);
  const others = othersOf(stored, liveFields);
  return {
    stepId: stored.stepId ?? stepIdOf(path),
    path,
    iteration,
    phase: stored.phase,
    attempt: stored.attempt ?? 1,
    timers: stored.timers ?? [],
    ...(stored.waitKey !== undefined && { waitKey: stored.waitKey }),
    ...(stored.awaiting !== undefined && { awaiting: stored.awaiting }),
    ...(stored.compensates !== undefined && { compensates: stored.compensates }),
    ...(within !== undefined && { within }),
    ...(stored.branches !== undefined && { branches: stored.branches }),
    ...(stored.items !== undefined && { items: stored.items }),
    ...(stored.child !== undefined && { child: stored.child }),
    ...(stored.round !== undefined && { round: stored.round }),
    ...(stored.heldAt !== undefined && { heldAt: stored.heldAt }),
    ...(stored.error !== undefined && { error: stored.error }),
    ...(others !== undefined && { others }),
  };
}

/** Most of a place is in the path. */
function restorePlace(stored: StoredLive, path: string, iteration: number): Place | undefined {
  const enclosed = takeApart(path);
  if (enclosed === undefined) return undefined;
  return {
    path: enclosed.path,
    iteration: stored.outer ?? iteration,
    at: enclosed.at,
    last: stored.last ?? null,
  };
}

// Changes

/** Entries that are new or different, and keys that are gone. */
export interface ObjectChanges<T> {
  readonly set?: { readonly [key: string]: T };
  readonly removed?: readonly string[];
}

/**
 * How one version differs from the one before. A field that is absent is as it was; null is a value.
 * Times are ISO 8601.
 */
export interface Changes {
  readonly status?: InstanceStatus;
  readonly priority?: number;
  readonly startedAt?: string | null;
  readonly completedAt?: string | null;
  readonly variables?: ObjectChanges<Json>;
  readonly output?: Json;
  readonly error?: WorkflowError | null;
  readonly cancellation?: Cancellation | null;
  readonly compensation?: Compensation | null;
  readonly live?: ObjectChanges<StoredLive>;
  readonly iterations?: ObjectChanges<number>;
  readonly completions?: number;
  readonly completedSteps?: number;
  readonly countedSteps?: readonly string[];
  readonly begunItems?: number;
  readonly lastOutput?: string | null;
  readonly uncertain?: readonly string[];
  readonly timers?: readonly TimerKind[];
  readonly triggerKeys?: ObjectChanges<WaitKey>;
  readonly pause?: Pause | null;
  readonly interventions?: number;
  readonly failedAt?: string | null;
}

/** What the changes of version 1 start from. */
export function blankSnapshot(identity: Identity): Snapshot {
  const { id, tenantId, workflowId, workflowVersion } = identity;
  const { correlationId, userId, startEventId, createdAt, input, parent } = identity;
  return {
    id,
    tenantId,
    workflowId,
    workflowVersion,
    correlationId,
    userId,
    startEventId,
    createdAt,
    input,
    parent,
    priority: 0,
    version: 0,
    status: "CREATED",
    startedAt: null,
    completedAt: null,
    variables: {},
    output: null,
    error: null,
    cancellation: null,
    compensation: null,
    live: {},
    iterations: {},
    completions: 0,
    completedSteps: 0,
    countedSteps: [],
    begunItems: 0,
    lastOutput: null,
    uncertain: [],
    timers: [],
    triggerKeys: {},
    pause: null,
    interventions: 0,
    failedAt: null,
  };
}

/**
 * What `applyChanges` needs to make `next` of `previous`, versions and identity apart. Values that
 * are the same object are taken as equal unseen, so that the work follows what a decision touched.
 */
export function changesBetween(previous: Snapshot, next: Snapshot): Changes {
  const variables = objectChanges(previous.variables, next.variables);
  const live = objectChanges(previous.live, next.live);
  const iterations = objectChanges(previous.iterations, next.iterations);
  const triggerKeys = objectChanges(previous.triggerKeys, next.triggerKeys);
  const changed = (field: keyof Snapshot): boolean => !sameJson(previous[field], next[field]);
  return {
    ...(changed("status") && { status: next.status }),
    ...(changed("priority") && { priority: next.priority }),
    ...(changed("startedAt") && { startedAt: isoTime(next.startedAt) }),
    ...(changed("completedAt") && { completedAt: isoTime(next.completedAt) }),
    ...(variables && { variables }),
    ...(changed("output") && { output: next.output }),
    ...(changed("error") && { error: next.error }),
    ...(changed("cancellation") && { cancellation: next.cancellation }),
    ...(changed("compensation") && { compensation: next.compensation }),
    ...(live && { live: mapChanges(live, storeLive) }),
    ...(iterations && { iterations }),
    ...(changed("completions") && { completions: next.completions }),
    ...(changed("completedSteps") && { completedSteps: next.completedSteps }),
    ...(changed("countedSteps") && { countedSteps: next.countedSteps }),
    ...(changed("begunItems") && { begunItems: next.begunItems }),
    ...(changed("lastOutput") && { lastOutput: next.lastOutput }),
    ...(changed("uncertain") && { uncertain: next.uncertain }),
    ...(changed("timers") && { timers: next.timers }),
    ...(triggerKeys && { triggerKeys }),
    ...(changed("pause") && { pause: next.pause }),
    ...(changed("interventions") && { interventions: next.interventions }),
    ...(changed("failedAt") && { failedAt: next.failedAt }),
  };
}

/** The snapshot one version on. */
export function applyChanges(snapshot: Snapshot, changes: Changes): Snapshot {
  const { startedAt, completedAt, variables, live, iterations, triggerKeys, ...plain } = changes;
  return {
    ...snapshot,
    ...plain,
    version: snapshot.version + 1,
    ...(startedAt !== undefined && { startedAt: timeOf(startedAt) }),
    ...(completedAt !== undefined && { completedAt: timeOf(completedAt) }),
    variables: changedObject(snapshot.variables, variables),
    live: changedObject(snapshot.live, live && mapChanges(live, restoreLive)),
    iterations: changedObject(snapshot.iterations, iterations),
    triggerKeys: changedObject(snapshot.triggerKeys, triggerKeys),
  };
}

function mapChanges<T, R>(
  { set, removed }: ObjectChanges<T>,
  map: (value: T, key: string) => R,
): ObjectChanges<R> {
  return {
    ...(set !== undefined && { set: mapValues(set, map) }),
    ...(removed !== undefined && { removed }),
  };
}

function objectChanges<T>(
  previous: { readonly [key: string]: T },
  next: { readonly [key: string]: T },
): ObjectChanges<T> | undefined {
  if (previous === next) return undefined;
  const set: Record<string, T> = {};
  for (const [key, value] of Object.entries(next)) {
    if (!Object.hasOwn(previous, key) || !sameJson(previous[key], value)) put(set, key, value);
  }
  const removed = Object.keys(previous).filter((key) => !Object.hasOwn(next, key));
  if (isEmpty(set) && removed.length === 0) return undefined;
  return { ...(!isEmpty(set) && { set }), ...(removed.length > 0 && { removed }) };
}

function changedObject<T>(
  object: { readonly [key: string]: T },
  changes: ObjectChanges<T> | undefined,
): { readonly [key: string]: T } {
  if (changes === undefined) return object;
  const changed: Record<string, T> = {};
  const removed = new Set(changes.removed);
  for (const [key, value] of Object.entries(object)) {
    if (!removed.has(key)) put(changed, key, value);
  }
  for (const [key, value] of Object.entries(changes.set ?? {})) put(changed, key, value);
  return changed;
}

// Signals in the history

/** A signal as the history keeps it: the output of a step is in its row. */
export type StoredSignal =
  | Exclude<Signal, { kind: "stepSucceeded" } | { kind: "childEnded" } | { kind: "scheduled" }>
  | Omit<Extract<Signal, { kind: "stepSucceeded" }>, "output">
  | Omit<Extract<Signal, { kind: "childEnded" }>, "output">
  | { readonly kind: "scheduled"; readonly startAt: string };

export function storedSignal(signal: Signal): StoredSignal {
  switch (signal.kind) {
    case "stepSucceeded":
    case "childEnded": {
      const { output: _inItsRow, ...rest } = signal;
      return rest;
    }
    case "scheduled":
      return { kind: "scheduled", startAt: signal.startAt.toISOString() };
    default:
      return signal;
  }
}

/**
 * @param outputOf The stored output of an execution, by its key.
 * @returns The signal as it was decided upon.
 */
export function restoredSignal(
  stored: StoredSignal,
  outputOf: (executionKey: string) => Json,
): Signal {
  switch (stored.kind) {
    case "stepSucceeded":
      return { ...stored, output: outputOf(executionKey(stored.path, stored.iteration)) };
    case "childEnded": {
      const isCompleted = stored.status === "COMPLETED";
      const output = isCompleted ? outputOf(executionKey(stored.path, stored.iteration)) : null;
      return { ...stored, output };
    }
    case "scheduled":
      return { kind: "scheduled", startAt: new Date(stored.startAt) };
    default:
      return stored;
  }
}

// Values

/** Equal as JSON, the order of keys apart. */
function sameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Date || b instanceof Date) {
    return a instanceof Date && b instanceof Date && a.getTime() === b.getTime();
  }
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keysOfA = Object.keys(a);
  if (keysOfA.length !== Object.keys(b).length) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return keysOfA.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}

/** As an own property, whatever its name: `__proto__` too is only a key. */
function put<T>(object: Record<string, T>, key: string, value: T): void {
  if (key !== "__proto__") {
    object[key] = value;
    return;
  }
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function mapValues<T, R>(
  object: { readonly [key: string]: T },
  map: (value: T, key: string) => R,
): Record<string, R> {
  const mapped: Record<string, R> = {};
  for (const [key, value] of Object.entries(object)) put(mapped, key, map(value, key));
  return mapped;
}

function isEmpty(object: object): boolean {
  return Object.keys(object).length === 0;
}

function isoTime(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}

function timeOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
