import type { Json } from "@millrace/expressions";
import { InvariantError } from "../assert.ts";
import { stepIdOf, takeApart } from "../definition/paths.ts";
import type { Mutable } from "../mutable.ts";
import { isEmpty, mapValues, put } from "./json-object.ts";
import type {
  JsonObject,
  LiveExecution,
  OpenBranches,
  OpenItems,
  Pause,
  Place,
  Snapshot,
  TimerKind,
  WorkflowError,
} from "./snapshot.ts";

/** Between a snapshot and what is stored of it: the frontier, one JSON column beside plain ones. */

/** A snapshot in columns of the store; `frontier` is what `encodeFrontier` made. */
export interface StoredSnapshot extends Omit<Snapshot, keyof Frontier> {
  readonly frontier: Json;
}

export type WaitKey = readonly Json[] | "NEVER";

type Frontier = Pick<
  Snapshot,
  | "live"
  | "iterations"
  | "completions"
  | "entered"
  | "completedSteps"
  | "countedSteps"
  | "begunItems"
  | "lastOutput"
  | "uncertain"
  | "timers"
  | "triggerKeys"
  | "pause"
  | "interventions"
  | "reopened"
  | "limits"
  | "slot"
  | "slotRequests"
  | "slotWantedAt"
  | "slotPromotedAt"
  | "failedAt"
>;

/**
 * A paused instance is written in a format of its own: a release that knows no pauses would go on with
 * it, and lose what is held. So is one that has asked for a slot: a release that knows no limits would
 * let it run without. And one that has limits which are not of its definition.
 */
const format = 1;

const pausedFormat = 2;

const limitedFormat = 3;

const setLimitsFormat = 4;

/** A live execution as stored. What most have in common is left out. */
export interface StoredLive {
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
  readonly called?: LiveExecution["called"];
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
  readonly entered?: number;
  readonly completedSteps?: number;
  readonly countedSteps?: readonly string[];
  readonly begunItems?: number;
  readonly lastOutput?: string;
  readonly uncertain?: readonly string[];
  readonly timers?: readonly TimerKind[];
  readonly triggerKeys?: Snapshot["triggerKeys"];
  readonly pause?: Pause;
  readonly interventions?: number;
  readonly reopened?: number;
  readonly limits?: string;
  readonly slot?: NonNullable<Snapshot["slot"]>;
  readonly slotRequests?: number;
  readonly slotWantedAt?: string;
  readonly slotPromotedAt?: string;
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
  entered: true,
  completedSteps: true,
  countedSteps: true,
  begunItems: true,
  lastOutput: true,
  uncertain: true,
  timers: true,
  triggerKeys: true,
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
  called: true,
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
  const { live, iterations, completions, entered, lastOutput } = snapshot;
  const { completedSteps, countedSteps, begunItems } = snapshot;
  const { uncertain, timers, triggerKeys, pause, interventions, reopened, failedAt } = snapshot;
  const { limits, slot, slotRequests, slotWantedAt, slotPromotedAt } = snapshot;
  const stored: Mutable<StoredFrontier> = { ...snapshot.others, format: formatOf(snapshot) };
  if (!isEmpty(live)) stored.live = mapValues(live, storeLive);
  if (!isEmpty(iterations)) stored.iterations = iterations;
  if (completions !== 0) stored.completions = completions;
  if (entered !== 0) stored.entered = entered;
  if (completedSteps !== 0) stored.completedSteps = completedSteps;
  if (countedSteps.length > 0) stored.countedSteps = countedSteps;
  if (begunItems !== 0) stored.begunItems = begunItems;
  if (lastOutput !== null) stored.lastOutput = lastOutput;
  if (uncertain.length > 0) stored.uncertain = uncertain;
  if (timers.length > 0) stored.timers = timers;
  if (!isEmpty(triggerKeys)) stored.triggerKeys = triggerKeys;
  if (pause !== null) stored.pause = pause;
  if (interventions !== 0) stored.interventions = interventions;
  if (reopened !== 0) stored.reopened = reopened;
  if (limits !== null) stored.limits = limits;
  if (slot !== null) stored.slot = slot;
  if (slotRequests !== 0) stored.slotRequests = slotRequests;
  if (slotWantedAt !== null) stored.slotWantedAt = slotWantedAt;
  if (slotPromotedAt !== null) stored.slotPromotedAt = slotPromotedAt;
  if (failedAt !== null) stored.failedAt = failedAt;
  return stored;
}

function formatOf({ pause, limits, slotRequests }: Snapshot): number {
  if (limits !== null) return setLimitsFormat;
  if (slotRequests > 0) return limitedFormat;
  return pause === null ? format : pausedFormat;
}

/** @throws InvariantError where the frontier was written by a later release. */
export function decodeSnapshot(columns: StoredSnapshot): Snapshot {
  const stored = columns.frontier as unknown as StoredFrontier;
  if (stored.format > setLimitsFormat) {
    throw new InvariantError(
      `instance ${columns.id} is stored in format ${stored.format}, and this release reads ${setLimitsFormat}`,
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
    entered: stored.entered ?? 0,
    completedSteps: stored.completedSteps ?? 0,
    countedSteps: stored.countedSteps ?? [],
    begunItems: stored.begunItems ?? 0,
    lastOutput: stored.lastOutput ?? null,
    uncertain: stored.uncertain ?? [],
    timers: stored.timers ?? [],
    triggerKeys: stored.triggerKeys ?? {},
    pause: stored.pause ?? null,
    interventions: stored.interventions ?? 0,
    reopened: stored.reopened ?? 0,
    limits: stored.limits ?? null,
    slot: stored.slot ?? null,
    slotRequests: stored.slotRequests ?? 0,
    slotWantedAt: stored.slotWantedAt ?? null,
    slotPromotedAt: stored.slotPromotedAt ?? null,
    failedAt: stored.failedAt ?? null,
    ...(others !== undefined && { others }),
  };
}

export function storeLive(execution: LiveExecution): StoredLive {
  const { stepId, path, iteration, phase, attempt, timers } = execution;
  const { waitKey, awaiting, compensates, within, branches, items } = execution;
  const { called, child, round, heldAt, error } = execution;
  const stored: Mutable<StoredLive> = { ...execution.others, phase };
  if (stepId !== stepIdOf(path)) stored.stepId = stepId;
  if (attempt !== 1) stored.attempt = attempt;
  if (timers.length > 0) stored.timers = timers;
  if (waitKey !== undefined) stored.waitKey = waitKey;
  if (awaiting !== undefined) stored.awaiting = awaiting;
  if (compensates !== undefined) stored.compensates = compensates;
  if (within !== undefined && within.iteration !== iteration) stored.outer = within.iteration;
  if (within !== undefined && within.last !== null) stored.last = within.last;
  if (branches !== undefined) stored.branches = branches;
  if (items !== undefined) stored.items = items;
  if (called !== undefined) stored.called = called;
  if (child !== undefined) stored.child = child;
  if (round !== undefined) stored.round = round;
  if (heldAt !== undefined) stored.heldAt = heldAt;
  if (error !== undefined) stored.error = error;
  return stored;
}

export function restoreLive(stored: StoredLive, key: string): LiveExecution {
  const at = key.lastIndexOf("#");
  const path = key.slice(0, at);
  const iteration = Number(key.slice(at + 1));
  const live: Mutable<LiveExecution> = {
    stepId: stored.stepId ?? stepIdOf(path),
    path,
    iteration,
    phase: stored.phase,
    attempt: stored.attempt ?? 1,
    timers: stored.timers ?? [],
  };
  const within = restorePlace(stored, path, iteration);
  const others = othersOf(stored, liveFields);
  if (stored.waitKey !== undefined) live.waitKey = stored.waitKey;
  if (stored.awaiting !== undefined) live.awaiting = stored.awaiting;
  if (stored.compensates !== undefined) live.compensates = stored.compensates;
  if (within !== undefined) live.within = within;
  if (stored.branches !== undefined) live.branches = stored.branches;
  if (stored.items !== undefined) live.items = stored.items;
  if (stored.called !== undefined) live.called = stored.called;
  if (stored.child !== undefined) live.child = stored.child;
  if (stored.round !== undefined) live.round = stored.round;
  if (stored.heldAt !== undefined) live.heldAt = stored.heldAt;
  if (stored.error !== undefined) live.error = stored.error;
  if (others !== undefined) live.others = others;
  return live;
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
