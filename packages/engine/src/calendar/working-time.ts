import type { Refusal, WorkingDuration } from "../definition/duration.ts";
import { addMonths, isRefusal } from "../definition/duration.ts";
import type { Calendar, Span } from "./calendar.ts";
import { dayMs, mostSpans } from "./calendar.ts";

/**
 * Counting in the working time of a calendar (CONTRACT 1.1, `calendarId`).
 *
 * Working hours are what the clocks of the calendar's zone show; between them time passes as it does for
 * everybody, so that a day on which the clocks are set has an hour more or less. A working span has its
 * beginning within it and not its end; yet whoever counts working time down to nothing is there at the end.
 */

/** For how long there may be no working time: beyond, the calendar is taken to have none. */
const horizonYears = 10;
const horizonDays = 3_653;

/** Nothing is counted farther ahead: whoever waits by working hours does not wait for a generation. */
const longestYears = 30;
const longestDays = 3 * horizonDays;

export function isWorkingTime(calendar: Calendar, at: Date): boolean {
  const first = nextWorkingTime(calendar, at);
  return !isRefusal(first) && first.getTime() === at.getTime();
}

/** The first working moment at or after `until`, for whoever waits for it from `now` on. */
export function workingTimeFrom(calendar: Calendar, now: Date, until: Date): Date | Refusal {
  if (until <= now) return nextWorkingTime(calendar, now);
  return until.getTime() > latestFrom(now) ? tooLong : nextWorkingTime(calendar, until);
}

/** The first working moment at or after `at`. */
export function nextWorkingTime(calendar: Calendar, at: Date): Date | Refusal {
  const span = spansFrom(calendar, at.getTime()).next();
  return span.done === true ? span.value : new Date(span.value.from);
}

/**
 * When a duration has passed that begins at `from`.
 *
 * Years, months and weeks are those of everybody's calendar, at the same time of the day. Days are working
 * days, the first of them counted from the first working moment: the same time of the day again, or the
 * nearest one of that day's hours. Hours, minutes and seconds are working time. In this order.
 *
 * @returns Never a moment outside of working hours, their ends included.
 */
export function addWorkingTime(
  calendar: Calendar,
  from: Date,
  duration: WorkingDuration,
): Date | Refusal {
  const later = addPeriods(calendar, from, duration);
  if (later.getTime() > latestFrom(from)) return tooLong;
  const begin = nextWorkingTime(calendar, later);
  if (isRefusal(begin)) return begin;
  const onDay = duration.days === 0 ? begin : addWorkingDays(calendar, begin, duration.days);
  if (isRefusal(onDay)) return onDay;
  const end = duration.ms === 0 ? onDay : addElapsed(calendar, onDay, duration.ms);
  return !isRefusal(end) && end.getTime() > latestFrom(from) ? tooLong : end;
}

function latestFrom(from: Date): number {
  return from.getTime() + longestDays * dayMs;
}

function addPeriods({ clock }: Calendar, from: Date, { months, weeks }: WorkingDuration): Date {
  if (months === 0 && weeks === 0) return from;
  const wall = addMonths(new Date(clock.wallAt(from.getTime())), months);
  return new Date(clock.firstAt(wall.getTime() + weeks * 7 * dayMs));
}

function addWorkingDays(calendar: Calendar, from: Date, days: number): Date | Refusal {
  const { clock } = calendar;
  const wall = clock.wallAt(from.getTime());
  const today = Math.floor(wall / dayMs);
  let left = days;
  for (const found of openDays(calendar, today + 1)) {
    if (isRefusal(found)) return found;
    left -= 1;
    if (left > 0) continue;
    return new Date(
      nearest(found.spans, clock.firstAt(found.day * dayMs + (wall - today * dayMs))),
    );
  }
  return tooLong;
}

/** In a pause that is when work goes on; before and after all work, the day's first or last moment. */
function nearest(spans: readonly Span[], at: number): number {
  const span = spans.find(({ to }) => at < to);
  return span === undefined ? (spans.at(-1)?.to ?? at) : Math.max(at, span.from);
}

function addElapsed(calendar: Calendar, from: Date, ms: number): Date | Refusal {
  const spans = spansFrom(calendar, from.getTime());
  let left = ms;
  for (let counted = 0; counted < mostSpans; counted++) {
    const next = spans.next();
    if (next.done === true) return next.value;
    const { from: begin, to } = next.value;
    if (left <= to - begin) return new Date(begin + left);
    left -= to - begin;
  }
  return tooFine;
}

/** What is left of all working time from `at` on; ends with the reason why there is no more. */
function* spansFrom(calendar: Calendar, at: number): Generator<Span, Refusal, void> {
  const today = Math.floor(calendar.clock.wallAt(at) / dayMs);
  for (const found of openDays(calendar, today)) {
    if (isRefusal(found)) return found;
    for (const { from, to } of found.spans) {
      if (to > at) yield { from: Math.max(from, at), to };
    }
  }
  return tooLong;
}

/** The days on which somebody works, from `first` on, or why none is known to follow. */
function* openDays(
  { spansOf, lastDay }: Calendar,
  first: number,
): Generator<{ readonly day: number; readonly spans: readonly Span[] } | Refusal, void, void> {
  let closed = 0;
  for (let day = first; day < first + longestDays; day++) {
    if (day > lastDay) return yield unknownHolidays(lastDay);
    const spans = spansOf(day);
    closed = spans.length === 0 ? closed + 1 : 0;
    if (closed > horizonDays) {
      return yield { problem: `has no working time within ${horizonYears} years` };
    }
    if (spans.length > 0) yield { day, spans };
  }
}

function unknownHolidays(lastDay: number): Refusal {
  const date = new Date(lastDay * dayMs).toISOString().slice(0, 10);
  return { problem: `has public holidays that are known until ${date} only; store it again` };
}

const tooLong: Refusal = { problem: `counts at most ${longestYears} years` };
const tooFine: Refusal = { problem: `counts at most ${mostSpans} spells of work` };
