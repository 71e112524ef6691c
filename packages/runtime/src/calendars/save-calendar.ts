import { openCalendar } from "@millrace/holidays";
import { deleteCalendar as deleteStored, saveCalendar as store } from "@millrace/store";
import type { StoredCalendar } from "@millrace/store";
import {
  CalendarChangedError,
  CalendarExistsError,
  CalendarNotFoundError,
  InvalidCalendarError,
} from "../errors.ts";
import type { Caller, Services } from "../services.ts";

export interface SavedCalendar {
  readonly calendar: StoredCalendar;
  readonly created: boolean;
}

/** @throws InvalidCalendarError with every problem, CalendarExistsError */
export async function createCalendar(
  services: Services,
  caller: Caller,
  value: unknown,
): Promise<SavedCalendar> {
  return save(services, caller, value, "NONE");
}

/**
 * Creates a calendar, or changes it: for what begins to count by it from then on. Stored again as it is,
 * it has its public holidays looked up for the years to come.
 *
 * @param id That of the call, which the calendar need not repeat.
 * @param ifMatch The version that the caller has read.
 * @throws InvalidCalendarError with every problem, CalendarChangedError
 */
export async function putCalendar(
  services: Services,
  caller: Caller,
  id: string,
  value: unknown,
  ifMatch?: number,
): Promise<SavedCalendar> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const document = isObject ? { id, ...value } : value;
  if (isObject && "id" in value && value.id !== id) {
    const message = `is ${JSON.stringify(value.id)}, and the call stores "${id}"; make them the same`;
    throw new InvalidCalendarError([{ path: "/id", code: "BAD_VALUE", message }]);
  }
  return save(services, caller, document, ifMatch);
}

async function save(
  { database: { db }, clock, log }: Services,
  { tenantId }: Caller,
  value: unknown,
  expected: number | "NONE" | undefined,
): Promise<SavedCalendar> {
  const opened = await openCalendar(value, clock.now());
  if ("problems" in opened) throw new InvalidCalendarError(opened.problems);
  const { document, holidays } = opened;
  const saved = await store(db, { tenantId, document, holidays }, expected);
  if (saved.kind === "unexpected") {
    if (expected === "NONE") throw new CalendarExistsError(document.id);
    throw new CalendarChangedError(document.id, saved.version);
  }
  const { kind, calendar } = saved;
  if (kind !== "same") log.info({ calendarId: calendar.id, version: calendar.version }, kind);
  return { calendar, created: kind === "created" };
}

/**
 * What counts by it already goes on; what would begin to fails.
 *
 * @param ifMatch The version that the caller has read.
 * @throws CalendarNotFoundError, CalendarChangedError
 */
export async function deleteCalendar(
  { database: { db } }: Services,
  { tenantId }: Caller,
  id: string,
  ifMatch?: number,
): Promise<void> {
  const before = await deleteStored(db, tenantId, id, ifMatch);
  if (before === undefined) throw new CalendarNotFoundError(id);
  if (!before.deleted) throw new CalendarChangedError(id, before.version);
}
