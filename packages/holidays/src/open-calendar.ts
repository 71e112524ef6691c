import { CalendarDocument, parseJson } from "@millrace/contract";
import type { Problem } from "@millrace/contract";
import { compileCalendar, isRefusal, nextWorkingTime } from "@millrace/engine";
import type { Calendar, KnownHolidays } from "@millrace/engine";
import { publicHolidays } from "./public-holidays.ts";

export interface OpenedCalendar {
  /** With its defaults. */
  readonly document: CalendarDocument;
  /** Null where it has no public ones. */
  readonly holidays: KnownHolidays | null;
  /** As its first version. */
  readonly calendar: Calendar;
}

/**
 * Checks a calendar, and looks up what it needs to be counted by from `now` on.
 *
 * @returns The calendar, or all its problems.
 */
export async function openCalendar(
  value: unknown,
  now: Date,
): Promise<OpenedCalendar | { readonly problems: readonly Problem[] }> {
  const { data: document, problems } = parseJson(CalendarDocument, value);
  if (problems !== undefined) return { problems };
  const places = document.holidays?.public ?? [];
  const holidays = places.length === 0 ? null : await publicHolidays(places, now);
  if (holidays !== null && "problems" in holidays) return holidays;
  const calendar = compileCalendar(document, 1, holidays);
  const next = nextWorkingTime(calendar, now);
  if (!isRefusal(next)) return { document, holidays, calendar };
  const message = `the calendar ${next.problem}`;
  return { problems: [{ path: "/workingHours", code: "NO_WORKING_TIME", message }] };
}
