import type { Json } from "@millrace/expressions";
import type { Mutable } from "../mutable.ts";
import { restoreLive, storeLive } from "./codec.ts";
import type { StoredLive, WaitKey } from "./codec.ts";
import { isEmpty, mapValues, put, sameJson } from "./json-object.ts";
import type {
  Cancellation,
  Compensation,
  Pause,
  Snapshot,
  TimerKind,
  WorkflowError,
} from "./snapshot.ts";
import type { InstanceStatus } from "./status.ts";

/**
 * How one version of an instance differs from the one before: the history, from which any version can
 * be built again.
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
    entered: 0,
    completedSteps: 0,
    countedSteps: [],
    begunItems: 0,
    lastOutput: null,
    uncertain: [],
    timers: [],
    triggerKeys: {},
    pause: null,
    interventions: 0,
    reopened: 0,
    limits: null,
    slot: null,
    slotRequests: 0,
    slotWantedAt: null,
    slotPromotedAt: null,
    failedAt: null,
  };
}

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
  readonly entered?: number;
  readonly completedSteps?: number;
  readonly countedSteps?: readonly string[];
  readonly begunItems?: number;
  readonly lastOutput?: string | null;
  readonly uncertain?: readonly string[];
  readonly timers?: readonly TimerKind[];
  readonly triggerKeys?: ObjectChanges<WaitKey>;
  readonly pause?: Pause | null;
  readonly interventions?: number;
  readonly reopened?: number;
  readonly limits?: string | null;
  readonly slot?: Snapshot["slot"];
  readonly slotRequests?: number;
  readonly slotWantedAt?: string | null;
  readonly slotPromotedAt?: string | null;
  readonly failedAt?: string | null;
}

/**
 * What `applyChanges` needs to make `next` of `previous`, versions and identity apart. Values that
 * are the same object are taken as equal unseen, so that the work follows what a decision touched.
 */
export function changesBetween(previous: Snapshot, next: Snapshot): Changes {
  const plain: Partial<Record<PlainField, unknown>> = {};
  for (const field of plainFields) {
    const value = next[field];
    if (previous[field] !== value && !sameJson(previous[field], value)) plain[field] = value;
  }
  const changes = plain as Mutable<Changes>;
  const variables = objectChanges(previous.variables, next.variables);
  const live = objectChanges(previous.live, next.live);
  const iterations = objectChanges(previous.iterations, next.iterations);
  const triggerKeys = objectChanges(previous.triggerKeys, next.triggerKeys);
  if (variables) changes.variables = variables;
  if (live) changes.live = mapChanges(live, storeLive);
  if (iterations) changes.iterations = iterations;
  if (triggerKeys) changes.triggerKeys = triggerKeys;
  if (!sameJson(previous.startedAt, next.startedAt)) changes.startedAt = isoTime(next.startedAt);
  if (!sameJson(previous.completedAt, next.completedAt)) {
    changes.completedAt = isoTime(next.completedAt);
  }
  return changes;
}

/** Fields that are compared as a whole, and stored as they are. */
type PlainField = Exclude<
  keyof Changes,
  "variables" | "live" | "iterations" | "triggerKeys" | "startedAt" | "completedAt"
>;

const isPlain: Readonly<Record<PlainField, true>> = {
  status: true,
  priority: true,
  output: true,
  error: true,
  cancellation: true,
  compensation: true,
  completions: true,
  entered: true,
  completedSteps: true,
  countedSteps: true,
  begunItems: true,
  lastOutput: true,
  uncertain: true,
  timers: true,
  pause: true,
  interventions: true,
  reopened: true,
  limits: true,
  slot: true,
  slotRequests: true,
  slotWantedAt: true,
  slotPromotedAt: true,
  failedAt: true,
};

const plainFields = Object.keys(isPlain) as PlainField[];

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

function isoTime(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}

function timeOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
