import { hasOpenDeadLetter, isSettled, isUnheldTimer } from "@millrace/engine";
import type { Pause, Snapshot } from "@millrace/engine";
import {
  listDeadLetters,
  liveWorkers,
  queuePlace,
  readInstance,
  runningSuspects,
  typeLimitKey,
} from "@millrace/store";
import type { InstanceRead } from "@millrace/store";
import { InstanceNotFoundError } from "../errors.ts";
import { limitOf } from "../instances/limit.ts";
import type { Caller, Services } from "../services.ts";
import type { Reason } from "./reason.ts";
import { leastOfSuspects } from "../perform.ts";
import { stepReason, waitsAlone } from "./step-reason.ts";
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

/** @throws InstanceNotFoundError */
export async function whyInstance(
  services: Services,
  { tenantId }: Caller,
  instanceId: string,
): Promise<Why> {
  const { db } = services.database;
  const read = await readInstance(db, { tenantId, instanceId });
  if (read === undefined) throw new InstanceNotFoundError(instanceId);
  const { snapshot } = read;
  const at = services.clock.now();
  if (hasOpenDeadLetter(snapshot)) {
    return { snapshot, at, reasons: [await deadLetterReason(services, snapshot)] };
  }
  if (isSettled(snapshot)) {
    return { snapshot, at, reasons: [{ kind: "ENDED", since: snapshot.completedAt }] };
  }
  const { workflowId, workflowVersion } = snapshot;
  const [workers, { definition }] = await Promise.all([
    liveWorkers(db),
    services.definitions.get(tenantId, workflowId, workflowVersion),
  ]);
  const isAlone = read.steps.some(waitsAlone);
  const suspects = isAlone ? await runningSuspects(db, leastOfSuspects, mostSuspects) : [];
  const surroundings = { at, workers, suspects };
  if (snapshot.pause !== null) {
    const running = read.steps.filter(({ status }) => status === "RUNNING");
    const reasons = running.flatMap((step) => stepReason(step, read, surroundings) ?? []);
    return { snapshot, at, reasons: [pausedReason(read, snapshot.pause, at), ...reasons] };
  }
  const waits = read.waits.filter(({ purpose }) => purpose === "STEP");
  const waiting = await Promise.all(
    waits.map((wait, index) =>
      waitReason(services, definition, read, wait, index < waitsExplained),
    ),
  );
  const steps = read.steps
    .filter((step) => snapshot.slot !== "WANTED" || !isHeldWithoutSlot(step))
    .flatMap((step) => stepReason(step, read, surroundings) ?? []);
  const limits = await limitReason(services, snapshot);
  return { snapshot, at, reasons: [...limits, ...startReason(read), ...steps, ...waiting] };
}

/** No worker takes it before the instance has its slot. */
function isHeldWithoutSlot({ status }: InstanceRead["steps"][number]): boolean {
  return status === "PENDING" || status === "RETRYING";
}

async function limitReason(
  services: Services,
  { tenantId, id, workflowId, slot }: Snapshot,
): Promise<readonly Reason[]> {
  if (slot !== "WANTED") return [];
  const limitKey = typeLimitKey(workflowId);
  const limit = { tenantId, limitKey };
  const { slots, queue } = await limitOf(services, limit);
  const place = await queuePlace(services.database.db, limit, id, queue);
  if (place === undefined) return [];
  const { status, wantedAt: since, position, queued, taken } = place;
  const isQueued = status === "WANTED";
  return [
    {
      kind: "LIMIT",
      limitKey,
      limit: slots,
      taken,
      position: isQueued ? position : null,
      queued,
      since,
    },
  ];
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
