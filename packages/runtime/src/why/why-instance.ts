import { executionKey, hasOpenDeadLetter, isSettled, isUnheldTimer } from "@millrace/engine";
import type { Definition, Pause, Snapshot } from "@millrace/engine";
import {
  getDefinition,
  heldCounts,
  limitSetOf,
  limitsOfSet,
  listDeadLetters,
  liveWorkers,
  loadInstance,
  pausedQueues,
  queuePlace,
  readInstance,
  runningSuspects,
  shownLimit,
} from "@millrace/store";
import type { InstanceRead } from "@millrace/store";
import { InstanceNotFoundError } from "../errors.ts";
import { globalLimit, globalTenant } from "../limits/limit-cache.ts";
import { limitOf, limitUses } from "../limits/limit-in-force.ts";
import type { LimitUse } from "../limits/limit-in-force.ts";
import type { Caller, Services } from "../services.ts";
import { leastOfSuspects } from "../perform.ts";
import { damaged, missingParts } from "./missing-parts.ts";
import type { Reason } from "./reason.ts";
import { dueAt, stepReason, waitsAlone } from "./step-reason.ts";
import type { Surroundings } from "./step-reason.ts";
import { waitReason } from "./wait-reason.ts";

/** Why an instance is not moving: one reason for each thing that it stands at. */
export interface Why {
  readonly snapshot: Snapshot;
  readonly at: Date;
  /** Empty: it is about to move. */
  readonly reasons: readonly Reason[];
}

/** Waits that are explained in full. */
const waitsExplained = 20;
/** Steps that run alone and are counted, where one waits to. */
const mostSuspects = 1_000;
/** For so long after a commit nothing need be stored that says what it waits for. */
const silentMs = 60_000;

/** @throws InstanceNotFoundError */
export async function whyInstance(
  services: Services,
  { tenantId }: Caller,
  instanceId: string,
): Promise<Why> {
  const { db } = services.database;
  // What its steps have answered is of no matter, and may be large.
  const read = await readInstance(db, { tenantId, instanceId }, []);
  if (read === undefined) throw new InstanceNotFoundError(instanceId);
  const { snapshot } = read;
  const at = services.clock.now();
  if (hasOpenDeadLetter(snapshot)) {
    return { snapshot, at, reasons: [await deadLetterReason(services, snapshot)] };
  }
  if (isSettled(snapshot)) {
    return { snapshot, at, reasons: [{ kind: "ENDED", since: snapshot.completedAt }] };
  }
  const [workers, running, pauses, definition] = await Promise.all([
    liveWorkers(db),
    heldCounts(db),
    pausedQueues(db),
    definitionOf(services, snapshot),
  ]);
  const isAlone = read.steps.some(waitsAlone);
  const suspects = isAlone ? await runningSuspects(db, leastOfSuspects, mostSuspects) : [];
  const surroundings = { at, workers, running, pauses, suspects };
  const stands =
    snapshot.pause === null
      ? await standsAt(services, definition, read, surroundings)
      : [
          pausedReason(read, snapshot.pause, at),
          ...read.steps
            .filter(({ status }) => status === "RUNNING")
            .flatMap((step) => stepReason(step, read, surroundings) ?? []),
        ];
  const reasons = [
    ...(definition === undefined ? [definitionMissing(snapshot)] : []),
    ...missingParts(definition, read, at),
    ...(await queueReason(services, stands)),
    ...stands,
  ];
  const isSilent = at.getTime() - read.updatedAt.getTime() > silentMs;
  if (reasons.length === 0 && isSilent && isWhole(read)) {
    return { snapshot, at, reasons: [damaged("ANY", null)] };
  }
  return { snapshot, at, reasons };
}

/** Of the items of a MAP not all are read: the others may have a reason. */
function isWhole({ snapshot, steps }: InstanceRead): boolean {
  const known = new Set(steps.map(({ path, iteration }) => executionKey(path, iteration)));
  return Object.keys(snapshot.live).every((key) => known.has(key));
}

/** Of one that is not paused. */
async function standsAt(
  services: Services,
  definition: Definition | undefined,
  read: InstanceRead,
  surroundings: Surroundings,
): Promise<readonly Reason[]> {
  const { snapshot } = read;
  const { workers } = surroundings;
  const waits = read.waits.filter(({ purpose }) => purpose === "STEP");
  const waiting = await Promise.all(
    waits.map((wait, index) =>
      waitReason(services, definition, read, wait, index < waitsExplained, workers),
    ),
  );
  const steps = read.steps
    .filter((step) => snapshot.slot !== "WANTED" || !isHeldWithoutSlot(step))
    .flatMap((step) => stepReason(step, read, surroundings) ?? []);
  const limits = await limitReason(services, snapshot);
  return [
    ...limits,
    ...startReason(read),
    ...steps,
    ...waiting,
    ...cutShort(read),
    ...(definition === undefined ? [] : itemsReason(definition, snapshot)),
  ];
}

/** Undefined where it is not stored any more, whatever this process remembers of it. */
async function definitionOf(
  { database: { db }, definitions }: Services,
  { tenantId, workflowId, workflowVersion }: Snapshot,
): Promise<Definition | undefined> {
  const stored = await getDefinition(db, tenantId, workflowId, workflowVersion);
  if (stored === undefined) return undefined;
  return (await definitions.get(tenantId, workflowId, workflowVersion)).definition;
}

function definitionMissing({ workflowId, workflowVersion, compensation }: Snapshot): Reason {
  const isUndoing = compensation?.status === "IN_PROGRESS";
  return { kind: "DEFINITION_MISSING", workflowId, workflowVersion, isUndoing };
}

/** Asked where something waits for a job: by the same probe as readiness. */
async function queueReason(
  { queue }: Services,
  reasons: readonly Reason[],
): Promise<readonly Reason[]> {
  if (!reasons.some(({ kind }) => goesByJob.has(kind))) return [];
  try {
    await queue.tryWrite();
    return [];
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return [{ kind: "QUEUE_AWAY", backend: queue.backend, problem }];
  }
}

const goesByJob: ReadonlySet<Reason["kind"]> = new Set([
  "NO_WORKER_KNOWS_TASK",
  "NO_WORKER_FOR_QUEUE",
  "QUEUED",
  "QUEUED_ALONE",
  "EVENT_TAKEN",
]);

/** Steps at which a long walk was cut. */
function cutShort(read: InstanceRead): readonly Reason[] {
  return Object.values(read.snapshot.live).flatMap(({ stepId, path, iteration, phase, timers }) =>
    phase === "READY" && timers.includes("continue")
      ? [
          {
            kind: "CONTINUES" as const,
            stepId,
            executionId: executionKey(path, iteration),
            isCompensation: false,
            until: dueAt(read, { path, iteration }, "continue"),
          },
        ]
      : [],
  );
}

/** MAPs that have more items than may be under way. */
function itemsReason({ steps }: Definition, { live }: Snapshot): readonly Reason[] {
  const all = Object.values(live);
  return all.flatMap(({ stepId, path, iteration, items }): readonly Reason[] => {
    const step = steps.get(stepId);
    const queued = items === undefined ? 0 : items.count - items.next;
    if (queued === 0 || step?.type !== "MAP") return [];
    const places = all.flatMap(({ within }) =>
      within?.path === path && within.iteration === iteration ? within.at : [],
    );
    const executionId = executionKey(path, iteration);
    const common = { stepId, executionId, isCompensation: false, queued };
    return [{ ...common, kind: "ITEMS", taken: new Set(places).size, limit: step.maxConcurrency }];
  });
}

/** No worker takes it before the instance has its slot. */
function isHeldWithoutSlot({ status }: InstanceRead["steps"][number]): boolean {
  return status === "PENDING" || status === "RETRYING";
}

/** The limit that keeps it waiting: the widest one that is full, else the narrowest. */
async function limitReason(services: Services, snapshot: Snapshot): Promise<readonly Reason[]> {
  if (snapshot.slot !== "WANTED") return [];
  const { tenantId, id: instanceId, version } = snapshot;
  const { db } = services.database;
  await services.limits.refresh(db);
  const limitSet = limitSetOf(snapshot);
  const keys = limitsOfSet(limitSet);
  const useOf = await limitUses(services, tenantId, keys.includes(globalLimit.limitKey));
  const limits = await Promise.all(
    keys.map(async (limitKey) => {
      const { slots, queue } = await limitOf(services, { tenantId, limitKey });
      const use = useOf(limitKey);
      const isFull = use.taken >= slots;
      return { limitKey, slots, queue, isFull, ...seenBy(tenantId, limitKey, slots, use) };
    }),
  );
  const limit = limits.find(({ isFull }) => isFull) ?? limits.at(-1);
  if (limit === undefined) return [];
  const place = await queuePlace(db, { tenantId, limitSet, instanceId }, limit.queue, limit.sets);
  if (place === undefined) {
    // It may have been admitted, and have ended, since it was read.
    const now = await loadInstance(db, { tenantId, instanceId });
    return now?.version === version ? [damaged("SLOT", null)] : [];
  }
  const { status, wantedAt: since, position } = place;
  return [
    {
      kind: "LIMIT",
      limitKey: shownLimit(limit.limitKey),
      limit: limit.slots,
      taken: limit.taken,
      position: status === "WANTED" ? position : null,
      queued: limit.queued,
      since,
    },
  ];
}

/** Of the limit of all tenants each sees its own; and whether it is full, since that is what keeps it waiting. */
function seenBy(tenantId: string, limitKey: string, slots: number, use: LimitUse): LimitUse {
  if (limitKey !== globalLimit.limitKey || tenantId === globalTenant) return use;
  const sets = use.sets.filter((set) => set.tenantId === tenantId);
  const queued = sets.reduce((sum, set) => sum + set.queued, 0);
  const own = sets.reduce((sum, set) => sum + set.taken, 0);
  return { sets, queued, taken: use.taken >= slots ? slots : own };
}

async function deadLetterReason(
  { database: { db } }: Services,
  { tenantId, id: instanceId, compensation, error: failure, completedAt }: Snapshot,
): Promise<Reason> {
  const undoing = compensation?.poisoned ?? undefined;
  const error = undoing ?? failure;
  const filter = { status: "OPEN", instanceId } as const;
  const { items } = await listDeadLetters(db, tenantId, filter, { limit: 1 });
  return {
    kind: "DEAD_LETTER",
    deadLetterId: items[0]?.id ?? null,
    stepId: error?.stepId ?? "",
    isCompensation: undoing !== undefined,
    since: completedAt,
    error,
  };
}

function startReason({ snapshot, timers }: InstanceRead): readonly Reason[] {
  const start = timers.find(({ kind }) => kind === "start");
  if (snapshot.status !== "CREATED" || start === undefined) return [];
  return [{ kind: "STARTS_LATER", until: start.dueAt }];
}

function pausedReason(
  { snapshot, steps, waits, timers }: InstanceRead,
  { by, reason, at: since, until }: Pause,
  at: Date,
): Reason {
  const { error } = snapshot;
  const held = {
    steps: steps.filter(({ status }) => status === "PENDING" || status === "RETRYING").length,
    results: Object.values(snapshot.live).filter(({ phase }) => phase === "HELD").length,
    events: waits.filter(({ matchedEventId }) => matchedEventId !== null).length,
    timers: timers.filter(({ kind, dueAt: due }) => !isUnheldTimer(kind) && due <= at).length,
  };
  return { kind: "PAUSED", by, reason, since, until, error, held };
}
