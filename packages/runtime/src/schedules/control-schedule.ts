import { createHash } from "node:crypto";
import {
  canonicalJson,
  changeSchedule,
  insertRuns,
  noteTicks,
  runOfInstance,
  startedUnder,
} from "@millrace/store";
import type {
  Db,
  LockedSchedule,
  NewScheduleRun,
  ScheduleRun,
  StoredSchedule,
} from "@millrace/store";
import {
  CalendarNotFoundError,
  IdempotencyConflictError,
  InvalidBackfillError,
  ScheduleStatusError,
} from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { holdSchedule } from "./hold-schedule.ts";
import { planOf } from "./plan.ts";
import { afterChange, nextOf, whilePaused } from "./put-schedule.ts";
import { createRuns, draftRun } from "./scheduled-start.ts";
import type { Idempotency } from "./scheduled-start.ts";
import { countsOf, notYetRun, startTicks, tickUpToNow } from "./tick-schedule.ts";
import { nextTicks } from "./ticks.ts";

/**
 * No tick from now on until it is resumed; those up to now are seen to first. One that is paused stays as
 * it is.
 *
 * @throws ScheduleNotFoundError, ScheduleChangedError, ScheduleStatusError
 */
export async function pauseSchedule(
  services: Services,
  { tenantId, actor }: Caller,
  id: string,
  { reason = null }: { readonly reason?: string | null | undefined },
  ifMatch?: number,
): Promise<StoredSchedule> {
  const key = { tenantId, id };
  const { schedule, ticking } = await holdSchedule(
    services,
    key,
    ifMatch,
    async (trx, old, start) => {
      if (old.status === "COMPLETED") throw new ScheduleStatusError("paused", id, old.status);
      if (old.status === "PAUSED") return { schedule: old };
      const ticked = await tickUpToNow(services, trx, old, start);
      // Its last tick was among them.
      if (ticked.status === "COMPLETED")
        return { schedule: { ...old, ...ticked }, ticking: ticked };
      const { document, now } = old;
      const paused = await changeSchedule(trx, key, {
        document,
        status: "PAUSED",
        pause: { at: now.toISOString(), by: actor, reason },
        ...whilePaused(document, ticked),
        at: now,
        actor,
      });
      return { schedule: paused, ticking: ticked };
    },
  );
  if (ticking !== undefined) await afterChange(services, id, ticking);
  return schedule;
}

/**
 * Ticks from now on. Ticks of the pause are not made up for; a backfill runs them. What is to come once
 * comes now, if its time has passed and the catch-up window allows it.
 *
 * @throws ScheduleNotFoundError, ScheduleChangedError, ScheduleStatusError
 */
export async function resumeSchedule(
  services: Services,
  { tenantId, actor }: Caller,
  id: string,
  ifMatch?: number,
): Promise<StoredSchedule> {
  const key = { tenantId, id };
  const { schedule } = await holdSchedule(
    services,
    key,
    ifMatch,
    async (trx, old, { calendar }) => {
      const { status, document, now } = old;
      if (status === "COMPLETED") throw new ScheduleStatusError("resumed", id, status);
      if (status === "ACTIVE") return { schedule: old };
      const next = nextOf(old, calendar);
      const resumed = await changeSchedule(trx, key, {
        document,
        status: next.nextTickAt === null ? "COMPLETED" : "ACTIVE",
        pause: null,
        ...next,
        at: now,
        actor,
      });
      return { schedule: resumed };
    },
  );
  services.queue.wake.publish("schedule", { id });
  return schedule;
}

export interface Triggered {
  readonly run: ScheduleRun;
  /** The Idempotency-Key had started it before. */
  readonly replayed: boolean;
}

/**
 * Starts a run now, whatever its ticks and the overlap policy say.
 *
 * @param idempotencyKey One of those of starts: used for another schedule, or for a start, it is a conflict.
 * @throws ScheduleNotFoundError, InvalidInputError, WorkflowNotFoundError, IdempotencyConflictError
 */
export async function triggerSchedule(
  services: Services,
  { tenantId, actor }: Caller,
  id: string,
  idempotencyKey?: string,
): Promise<Triggered> {
  const key = { tenantId, id };
  const { run, commit } = await holdSchedule(
    services,
    key,
    undefined,
    async (trx, schedule, start) => {
      const idempotency = idempotencyKey && {
        key: idempotencyKey,
        bodyHash: hashOf(schedule),
      };
      const before = idempotency && (await runStartedUnder(trx, schedule, idempotency));
      if (before) return { run: before };
      if (start.known === undefined) throw start.refusal;
      const { now, status, nextTickAt, dueAt } = schedule;
      const manual = { kind: "MANUAL", tickAt: now } as const;
      const drafted = await draftRun(services, trx, schedule, start.known, {
        ...manual,
        requestedBy: actor,
        ...(idempotency && { idempotency }),
      });
      const started: ScheduleRun = {
        ...manual,
        status: "STARTED",
        reason: null,
        message: null,
        instanceId: drafted.previous.id,
        createdAt: now,
        startedAt: now,
      };
      await insertRuns(trx, key, [started]);
      await createRuns(trx, [drafted]);
      const counts = countsOf([started]);
      await noteTicks(trx, key, { status, nextTickAt, dueAt, lastTickAt: null, counts });
      return { run: started, commit: drafted };
    },
  );
  if (commit === undefined) return { run, replayed: true };
  await afterChange(services, id, { runs: [run], commits: [commit] });
  return { run, replayed: false };
}

/** One that is made anew under the same id is another schedule. */
function hashOf({ uid }: LockedSchedule): string {
  return createHash("sha256")
    .update(canonicalJson({ trigger: uid }))
    .digest("hex");
}

/** @throws IdempotencyConflictError */
async function runStartedUnder(
  trx: Db,
  schedule: LockedSchedule,
  { key, bodyHash }: Idempotency,
): Promise<ScheduleRun | undefined> {
  const before = await startedUnder(trx, schedule.tenantId, key);
  if (before === undefined) return undefined;
  const run =
    before.bodyHash === bodyHash && (await runOfInstance(trx, schedule, before.instanceId));
  if (!run) throw new IdempotencyConflictError(key);
  return run;
}

export interface Backfill {
  readonly from: Date;
  readonly to: Date;
  readonly overlapPolicy?: "BUFFER_ALL" | "ALLOW_ALL" | undefined;
}

export interface Backfilled {
  readonly ticks: number;
  readonly runs: readonly NewScheduleRun[];
  readonly alreadyRan: number;
}

/** Ticks of one backfill. */
const mostTicks = 1_000;

/**
 * Runs the ticks of a range of the past that have not run, whether they were skipped, missed or never
 * came up. None that ran, or waits to, is repeated.
 *
 * @throws ScheduleNotFoundError, InvalidBackfillError
 */
export async function backfillSchedule(
  services: Services,
  { tenantId }: Caller,
  id: string,
  { from, to, overlapPolicy }: Backfill,
): Promise<Backfilled> {
  const key = { tenantId, id };
  if (to < from)
    throw new InvalidBackfillError("/to", "BAD_RANGE", "the range ends before it begins");
  const done = await holdSchedule(services, key, undefined, async (trx, schedule, start) => {
    const { document, createdAt, now, status, nextTickAt, dueAt } = schedule;
    const { calendar } = start;
    if (calendar === null) throw new CalendarNotFoundError(document.calendarId ?? "");
    const plan = planOf(document, createdAt, calendar);
    const ticks = ticksBetween(plan.rule, from, to < now ? to : now);
    const todo = await notYetRun(trx, schedule, ticks);
    const policy =
      overlapPolicy ?? (plan.overlapPolicy === "ALLOW_ALL" ? "ALLOW_ALL" : "BUFFER_ALL");
    const started = await startTicks(services, trx, schedule, start, {
      kind: "BACKFILL",
      ticks: todo,
      policy,
    });
    const counts = countsOf(started.runs);
    await noteTicks(trx, key, { status, nextTickAt, dueAt, lastTickAt: null, counts });
    return { ...started, ticks: ticks.length, alreadyRan: ticks.length - todo.length };
  });
  await afterChange(services, id, done);
  return done;
}

function ticksBetween(
  rule: Parameters<typeof nextTicks>[0],
  from: Date,
  to: Date,
): readonly Date[] {
  const ticks = nextTicks(rule, new Date(from.getTime() - 1), mostTicks + 1);
  const within = ticks.filter((tick) => tick <= to);
  if (within.length <= mostTicks) return within;
  const message = `the range has more than ${mostTicks} ticks; ask for a part of it, up to ${within[mostTicks - 1]?.toISOString()} say`;
  throw new InvalidBackfillError("/to", "OUT_OF_RANGE", message);
}
