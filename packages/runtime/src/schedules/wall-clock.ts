import { inPlainYears } from "./plain-years.ts";

/** What clocks on the wall of a time zone show, as milliseconds that read like UTC: 02:30 is `…T02:30Z`. */
export type WallMs = number;

/** A change of the clock: from when on it is ahead of UTC by `after`, no longer by `before`. */
export interface ClockChange {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** A time without a change of the clock. */
export interface Stretch {
  /** By how many milliseconds the clock is ahead of UTC. */
  readonly offset: number;
  /** The first moment that is not part of it; the clock need not be changed there. */
  readonly until: number;
  /** The change that it began with, where that was not long ago. */
  readonly change: ClockChange | undefined;
}

export interface WallClock {
  /** The stretch around a moment. */
  stretchAt(ms: number): Stretch;
}

/** No zone has ever moved its clock by more. */
export const longestChangeMs = 24 * 3_600_000;

const dayMs = 24 * 3_600_000;
/** Changes are looked for in spans of so many days at once, and kept. */
const spanMs = 64 * dayMs;

/** @throws RangeError where there is no such time zone. */
export function openWallClock(timezone: string): WallClock {
  const { format, changes } = zoneOf(timezone);
  const offsetAt = (ms: number): number =>
    inPlainYears(ms, (plain) => wallOf(format, plain)) - floorToSecond(ms);

  function changesIn(span: number): readonly ClockChange[] {
    const known = changes.get(span);
    if (known !== undefined) return known;
    const found = findChanges(offsetAt, span * spanMs, (span + 1) * spanMs);
    if (changes.size >= mostSpans) changes.clear();
    changes.set(span, found);
    return found;
  }

  return {
    stretchAt(ms) {
      const span = Math.floor(ms / spanMs);
      const near = [...changesIn(span - 1), ...changesIn(span)];
      const last = near.findLast(({ at }) => at <= ms);
      const next = near.find(({ at }) => at > ms);
      return {
        offset: last?.after ?? next?.before ?? offsetAt(ms),
        until: next?.at ?? (span + 1) * spanMs,
        change: last !== undefined && ms - last.at <= longestChangeMs ? last : undefined,
      };
    },
  };
}

export function isTimezone(name: string): boolean {
  try {
    zoneOf(name);
    return true;
  } catch {
    return false;
  }
}

interface Zone {
  readonly format: Intl.DateTimeFormat;
  /** By their span. */
  readonly changes: Map<number, readonly ClockChange[]>;
}

/** Making a format takes a hundred times as long as using it. */
const zones = new Map<string, Zone>();
const mostZones = 600;
const mostSpans = 1_000;

function zoneOf(timezone: string): Zone {
  const known = zones.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: timezone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  if (zones.size >= mostZones) zones.clear();
  const zone = { format, changes: new Map<number, readonly ClockChange[]>() };
  zones.set(timezone, zone);
  return zone;
}

/** Later than `from`, up to and with `to`. Day by day: no zone has ever changed its clock twice in one. */
function findChanges(
  offsetAt: (ms: number) => number,
  from: number,
  to: number,
): readonly ClockChange[] {
  const changes: ClockChange[] = [];
  let before = offsetAt(from);
  for (let day = from; day < to; day += dayMs) {
    const after = offsetAt(day + dayMs);
    if (after !== before) changes.push({ at: bisect(offsetAt, day, day + dayMs), before, after });
    before = after;
  }
  return changes;
}

/** @returns The first second whose offset is that of `to`; that of `from` is another. */
function bisect(offsetAt: (ms: number) => number, from: number, to: number): number {
  const after = offsetAt(to);
  let [low, high] = [from, to];
  while (high - low > 1_000) {
    const middle = floorToSecond((low + high) / 2);
    if (offsetAt(middle) === after) high = middle;
    else low = middle;
  }
  return high;
}

function wallOf(format: Intl.DateTimeFormat, ms: number): WallMs {
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
  return Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second"));
}

function floorToSecond(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
}
