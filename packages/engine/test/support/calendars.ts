import { CalendarDocument } from "@millrace/contract";
import type { CalendarSource } from "@millrace/contract";
import { compileCalendar } from "../../src/calendar/calendar.ts";
import type { Calendar, KnownHolidays } from "../../src/calendar/calendar.ts";

export function calendar(
  source: Partial<CalendarSource>,
  { version = 1, holidays = null }: { version?: number; holidays?: KnownHolidays | null } = {},
): Calendar {
  const document = CalendarDocument.parse({ id: "office", timeZone: "UTC", ...source });
  return compileCalendar(document, version, holidays);
}

/** Those that instances in tests find: an office in Berlin, and none by any other name. */
export const knownCalendars: ReadonlyMap<string, Calendar | null> = new Map([
  ["office", calendar({ timeZone: "Europe/Berlin" })],
  ["nowhere", null],
]);
