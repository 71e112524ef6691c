import { WEEKDAYS } from "@millrace/contract";
import type { CalendarDocument, Hours } from "@millrace/contract";
import { zoneClock } from "./zone-clock.ts";
import type { ZoneClock } from "./zone-clock.ts";

/** A time from its beginning up to its end, in milliseconds: of UTC, or since a day began. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A calendar as business time is counted by it. Days are numbered from 1970-01-01, in its own zone. */
export interface Calendar {
  readonly id: string;
  readonly version: number;
  /** When somebody works on that day, in UTC and in order of time. */
  spansOf(day: number): readonly Span[];
  readonly clock: ZoneClock;
  /** The last day whose holidays are known. */
  readonly lastDay: number;
  /** What it was compiled of: plain values, which can be handed to another thread. */
  readonly source: {
    readonly document: CalendarDocument;
    readonly version: number;
    readonly holidays: KnownHolidays | null;
  };
}

/** The public holidays of a calendar, as whoever stores it has looked them up. ISO dates. */
export interface KnownHolidays {
  readonly dates: readonly string[];
  /** The last day for which they are known. */
  readonly until: string;
}

export const dayMs = 86_400_000;

/**
 * What a calendar remembers at most, some 2 MB, and what is counted at once: the offices of thirty years,
 * or the hours of two.
 */
export const mostSpans = 20_000;

/**
 * @param holidays Null for a calendar without public holidays, whose days are all known.
 */
export function compileCalendar(
  document: CalendarDocument,
  version: number,
  holidays: KnownHolidays | null,
): Calendar {
  const clock = zoneClock(document.timeZone);
  const week = WEEKDAYS.map((weekday) => spansWithin(document.workingHours[weekday]));
  const special = specialDays(document, holidays);
  const opened = new Map<number, readonly Span[]>();
  let remembered = 0;
  return {
    id: document.id,
    version,
    clock,
    lastDay: holidays === null ? Infinity : dayOf(holidays.until),
    source: { document, version, holidays },
    spansOf(day) {
      const known = opened.get(day);
      if (known !== undefined) return known;
      const spans = (special.get(day) ?? week[weekdayOf(day)] ?? []).flatMap(({ from, to }) => {
        const span = {
          from: clock.firstAt(day * dayMs + from),
          to: clock.firstAt(day * dayMs + to),
        };
        // The clocks may have been set forward past all of it.
        return span.from < span.to ? [span] : [];
      });
      remembered += spans.length;
      if (remembered > mostSpans) {
        opened.clear();
        remembered = spans.length;
      }
      opened.set(day, spans);
      return spans;
    },
  };
}

/** The days with hours of their own; the later rule counts. */
function specialDays(
  { holidays, workingDays = [] }: CalendarDocument,
  known: KnownHolidays | null,
): ReadonlyMap<number, readonly Span[]> {
  const own = (holidays?.dates ?? []).map((each) => (typeof each === "string" ? each : each.date));
  return new Map([
    ...[...(known?.dates ?? []), ...own].map((date) => [dayOf(date), []] as const),
    ...workingDays.map(({ date, hours }) => [dayOf(date), spansWithin(hours)] as const),
  ]);
}

function spansWithin(hours: readonly Hours[] | undefined): readonly Span[] {
  return (hours ?? []).map(({ from, to }) => ({ from: clockMs(from), to: clockMs(to) }));
}

function clockMs(text: string): number {
  return (Number(text.slice(0, 2)) * 60 + Number(text.slice(3))) * 60_000;
}

function dayOf(date: string): number {
  return Date.parse(date) / dayMs;
}

/** Monday is 0, as in `WEEKDAYS`; 1970-01-01 was a Thursday. */
function weekdayOf(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}
