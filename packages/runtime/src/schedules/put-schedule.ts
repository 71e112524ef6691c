import { randomUUID } from "node:crypto";
import type { Calendar } from "@millrace/engine";
import {
  canonicalJson,
  changeSchedule,
  deleteSchedule as removeSchedule,
  insertSchedule,
  readSchedule,
} from "@millrace/store";
import type {
  LockedSchedule,
  NextTick,
  StoredSchedule,
  StoredScheduleDocument,
  StoredScheduleStatus,
} from "@millrace/store";
import { CalendarNotFoundError, ScheduleExistsError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { holdSchedule } from "./hold-schedule.ts";
import { dueAtOf, firstTick, planOf } from "./plan.ts";
import { sameTiming } from "./same-timing.ts";
import { calendarOf, performRuns, registerTask } from "./scheduled-start.ts";
import { countTicks } from "./tick-metrics.ts";
import { tickUpToNow } from "./tick-schedule.ts";
import type { Ticking } from "./tick-schedule.ts";

/**
 * Makes a schedule. The same again is answered with the schedule as it is.
 *
 * @param document Without problems (check-schedule.ts).
 * @throws ScheduleExistsError
 */
export async function createSchedule(
  services: Services,
  caller: Caller,
  id: string,
  document: StoredScheduleDocument,
): Promise<{ readonly schedule: StoredSchedule; readonly created: boolean }> {
  const { tenantId, actor } = caller;
  const { db } = services.database;
  await registerTask(services, caller, document);
  const at = services.clock.now();
  const uid = randomUUID();
  const calendar = await calendarOf(services, tenantId, document);
  const next = nextOf({ document, uid, createdAt: at, now: at }, calendar);
  const status = next.nextTickAt === null ? "COMPLETED" : "ACTIVE";
  const schedule = { tenantId, id, uid, document, status, at, actor, ...next } as const;
  const inserted = await insertSchedule(db, schedule);
  if (inserted !== undefined) {
    services.queue.wake.publish("schedule", { id });
    services.log.info({ scheduleId: id, tenantId }, "schedule made");
    return { schedule: inserted, created: true };
  }
  const there = await readSchedule(db, { tenantId, id });
  const isSame = there !== undefined && canonicalJson(there.document) === canonicalJson(document);
  if (!isSame) throw new ScheduleExistsError(id);
  return { schedule: there, created: false };
}

/**
 * Puts another document in a schedule's place. Ticks up to now are those of the old one; the new one
 * ticks from now on, unless it ticks at the same times: then none is moved.
 *
 * @throws ScheduleNotFoundError, ScheduleChangedError
 */
export async function replaceSchedule(
  services: Services,
  caller: Caller,
  id: string,
  document: StoredScheduleDocument,
  ifMatch?: number,
): Promise<StoredSchedule> {
  const { tenantId, actor } = caller;
  await registerTask(services, caller, document);
  const calendar = await calendarOf(services, tenantId, document);
  const key = { tenantId, id };
  const { schedule, ticking } = await holdSchedule(
    services,
    key,
    ifMatch,
    async (trx, old, start) => {
      if (canonicalJson(old.document) === canonicalJson(document)) return { schedule: old };
      const ticked = await tickUpToNow(services, trx, old, start);
      const next = nextAfterChange(old, ticked, document, calendar);
      const changed = await changeSchedule(trx, key, {
        document,
        pause: old.pause,
        at: old.now,
        actor,
        ...next,
      });
      return { schedule: changed, ticking: ticked };
    },
  );
  if (ticking !== undefined) await afterChange(services, id, ticking);
  return schedule;
}

/** @throws ScheduleNotFoundError, ScheduleChangedError */
export async function deleteSchedule(
  services: Services,
  { tenantId }: Caller,
  id: string,
  ifMatch?: number,
): Promise<void> {
  const key = { tenantId, id };
  await holdSchedule(services, key, ifMatch, async (trx) => {
    await removeSchedule(trx, key);
    return {};
  });
  services.log.info({ scheduleId: id, tenantId }, "schedule deleted");
}

/** What the ticks up to a change ask for outside, and word to whoever waits for the next one. */
export async function afterChange(
  services: Services,
  id: string,
  { runs, commits }: Pick<Ticking, "runs" | "commits">,
): Promise<void> {
  services.queue.wake.publish("schedule", { id });
  countTicks(services, runs);
  await performRuns(services, commits);
}

/** When a schedule ticks whose rule holds from `now` on. @throws CalendarNotFoundError */
export function nextOf(
  { document, uid, createdAt, now }: Pick<LockedSchedule, "document" | "uid" | "createdAt" | "now">,
  calendar: Calendar | null | undefined,
): NextTick {
  if (calendar === null) throw new CalendarNotFoundError(document.calendarId ?? "");
  const plan = planOf(document, createdAt, calendar);
  const nextTickAt = firstTick(plan, now) ?? null;
  return { nextTickAt, dueAt: nextTickAt === null ? null : dueAtOf(plan, uid, nextTickAt) };
}

function nextAfterChange(
  old: StoredSchedule & { readonly now: Date },
  ticked: Ticking,
  document: StoredScheduleDocument,
  calendar: Calendar | null | undefined,
): NextTick & { readonly status: StoredScheduleStatus } {
  if (sameTiming(old.document, document)) {
    const { status, nextTickAt, dueAt } = ticked;
    return { status, nextTickAt, dueAt };
  }
  const next = nextOf({ ...old, document }, calendar);
  if (next.nextTickAt === null) return { ...next, status: "COMPLETED" };
  if (old.status !== "PAUSED") return { ...next, status: "ACTIVE" };
  return { ...whilePaused(document, next), status: "PAUSED" };
}

/** What is to come once is still owed when the pause is over; what comes again and again goes on from then. */
export function whilePaused(
  { type }: StoredScheduleDocument,
  { nextTickAt }: Pick<NextTick, "nextTickAt">,
): NextTick {
  return { nextTickAt: type === "one-time" ? nextTickAt : null, dueAt: null };
}
