import {
  DatabaseUnavailableError,
  dueSchedules,
  putOffSchedule,
  scheduleOutlook,
  waitingSchedules,
  withSchedule,
} from "@millrace/store";
import type { StoredSchedule, WaitingSchedule } from "@millrace/store";
import { StatusConflictError } from "../errors.ts";
import { cancelInstance } from "../instances/cancel-instance.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import { performRuns, prepareStart } from "../schedules/scheduled-start.ts";
import { startWaiting } from "../schedules/start-waiting.ts";
import { tickSchedule } from "../schedules/tick-schedule.ts";
import { countTicks } from "../schedules/tick-metrics.ts";
import type { Services } from "../services.ts";
import { isLate } from "./fire-timers.ts";

/**
 * Makes schedules tick when they are due by the database's clock, and starts runs that waited for others
 * to settle. Any number of schedulers may: each takes the row of one schedule at a time and passes over
 * those that others have, and all that a tick brings about is one transaction.
 */

const batchSize = 50;
/** Schedules that are seen to at once. */
const lanes = 4;
/** Safety net; pub/sub tells of schedules that are made or changed. */
const longestSleepMs = 500;
/** While runs wait for others to settle, of which nobody tells. */
const waitingSleepMs = 250;
/** What could not be made to tick has its next turn after so long. */
const putOffMs = 5_000;

export function startScheduleLoop(services: Services): Loop {
  const options = { name: "schedules", log: services.log, maxDelayMs: longestSleepMs };
  const loop = startLoop(options, () => round(services));
  const unsubscribe = services.queue.wake.subscribe("schedule", () => loop.wake());
  return {
    wake: () => loop.wake(),
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}

/** @returns In how many milliseconds the next schedule is due. */
async function round(services: Services): Promise<number> {
  const { db } = services.database;
  const due = await dueSchedules(db, batchSize);
  await inLanes(due, (schedule) => tick(services, schedule));
  const waiting = await waitingSchedules(db, batchSize);
  await inLanes(waiting, (schedule) => makeRoom(services, schedule));
  if (due.length === batchSize) return 0;
  const { dueAt, isWaiting } = await scheduleOutlook(db);
  const sleepMs = isWaiting ? waitingSleepMs : longestSleepMs;
  if (dueAt === null) return sleepMs;
  return Math.min(sleepMs, dueAt.getTime() - services.clock.now().getTime());
}

async function inLanes<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const lane = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** One that cannot be made to tick holds up none of the others. */
async function tick(services: Services, seen: StoredSchedule): Promise<void> {
  try {
    const start = await prepareStart(services, seen.tenantId, seen.document);
    const ticking = await services.missed.aware(() =>
      withSchedule(services.database.db, seen, { ifFree: true }, async (trx, schedule) => {
        const isDue = schedule.dueAt !== null && schedule.dueAt <= schedule.now;
        // Changed since it was seen: what it starts may be something else.
        if (!isDue || schedule.version !== seen.version) return undefined;
        const isBacklog = isLate(services, { dueAt: schedule.dueAt ?? schedule.now });
        return { ...(await tickSchedule(services, trx, schedule, start)), isBacklog };
      }),
    );
    if (ticking === undefined) return;
    countTicks(services, ticking.runs);
    await performRuns(services, ticking.commits, ticking.isBacklog);
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) throw error;
    const { id, tenantId } = seen;
    services.log.warn({ err: error, scheduleId: id, tenantId }, "a schedule could not tick");
    const reason = error instanceof Error ? error.message : String(error);
    await putOffSchedule(services.database.db, seen, putOffMs, reason);
  }
}

async function makeRoom(services: Services, schedule: WaitingSchedule): Promise<void> {
  try {
    if (schedule.toCancel.length === 0) await startWaiting(services, schedule);
    for (const { tenantId, instanceId } of schedule.toCancel) {
      const caller = { tenantId, actor: `schedule:${schedule.id}` };
      const reason = `the next run of schedule ${schedule.id} is due`;
      await cancelInstance(services, caller, instanceId, { reason }).catch(unlessOver);
    }
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) throw error;
    const { id, tenantId } = schedule;
    services.log.warn({ err: error, scheduleId: id, tenantId }, "a run could not be started");
  }
}

/** It ended, or somebody else cancelled it. */
function unlessOver(error: unknown): void {
  if (!(error instanceof StatusConflictError)) throw error;
}
