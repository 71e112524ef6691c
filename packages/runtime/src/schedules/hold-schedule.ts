import { readSchedule, withSchedule } from "@millrace/store";
import type { Db, LockedSchedule, ScheduleKey } from "@millrace/store";
import { ScheduleBusyError, ScheduleChangedError, ScheduleNotFoundError } from "../errors.ts";
import type { Services } from "../services.ts";
import { prepareStart } from "./scheduled-start.ts";
import type { ScheduledStart } from "./scheduled-start.ts";

/** Another change came between so many times: who is asked should not wait for long. */
const mostTries = 10;

/**
 * Does something to a schedule while nobody else can, knowing what it starts.
 *
 * @param ifMatch The version that the caller has seen.
 * @throws ScheduleNotFoundError, ScheduleChangedError, ScheduleBusyError
 */
export async function holdSchedule<T extends object>(
  services: Services,
  key: ScheduleKey,
  ifMatch: number | undefined,
  act: (trx: Db, schedule: LockedSchedule, start: ScheduledStart) => Promise<T>,
): Promise<T> {
  const { db } = services.database;
  for (let tries = 0; tries < mostTries; tries++) {
    const seen = await readSchedule(db, key);
    if (seen === undefined) throw new ScheduleNotFoundError(key.id);
    const start = await prepareStart(services, key.tenantId, seen.document);
    const done = await services.missed.aware(() =>
      withSchedule(db, key, {}, async (trx, schedule) => {
        if (ifMatch !== undefined && schedule.version !== ifMatch) {
          throw new ScheduleChangedError(key.id, ifMatch, schedule.version);
        }
        // It was changed meanwhile: what it starts may be something else.
        if (schedule.version !== seen.version || schedule.uid !== seen.uid) return undefined;
        return { value: await act(trx, schedule, start) };
      }),
    );
    if (done !== undefined) return done.value;
  }
  throw new ScheduleBusyError(key.id);
}
