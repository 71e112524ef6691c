/**
 * Times are ISO-8601 texts. All arithmetic is in UTC on the text's own instant: no time zone and no
 * clock of the host has a part in it. Business time and durations belong to steps, not here.
 */
import { Failure } from "../run.ts";
import { badArgument, number, text } from "../spec.ts";
import type { FunctionSpec } from "../spec.ts";

export const timeFunctions: readonly FunctionSpec[] = [
  {
    name: "now",
    parameters: "",
    summary: "The time of the decision, an ISO-8601 UTC text; the same on replay.",
    example: ["type(now())", "string"],
    plain: true,
    clock: true,
    call: (run) => run.scope.now,
  },
  {
    name: "timestamp",
    parameters: "time",
    summary: "An ISO-8601 time as milliseconds since 1970; missing stays missing.",
    example: ["timestamp('1970-01-02')", 86_400_000],
    plain: true,
    call: (_run, time) => (time === undefined ? undefined : toMilliseconds("timestamp", time)),
  },
  {
    name: "isoTime",
    parameters: "milliseconds",
    summary: "Milliseconds since 1970 as an ISO-8601 UTC text.",
    example: ["isoTime(0)", "1970-01-01T00:00:00.000Z"],
    plain: true,
    call: (_run, milliseconds) => toIso("isoTime", number("isoTime", milliseconds)),
  },
  {
    name: "dateAdd",
    parameters: "time, amount, unit",
    summary:
      "A time moved by milliseconds, seconds, minutes, hours, days, weeks, months or years; a month that is too short ends on its last day.",
    example: ["dateAdd('2026-01-31', 1, 'months')", "2026-02-28T00:00:00.000Z"],
    plain: true,
    call: (_run, time, amount, unit) => {
      const start = toMilliseconds("dateAdd", time);
      const count = number("dateAdd", amount);
      const months = monthsOf(unit);
      if (months !== undefined) return toIso("dateAdd", addMonths(start, count * months));
      return toIso("dateAdd", start + count * millisecondsOf("dateAdd", unit));
    },
  },
  {
    name: "dateDiff",
    parameters: "from, to, unit?",
    summary:
      "The time between, in milliseconds (default), seconds, minutes, hours, days or weeks; negative when `to` is earlier.",
    example: ["dateDiff('2026-01-01', '2026-01-02', 'hours')", 24],
    plain: true,
    call: (_run, from, to, unit) => {
      const between = toMilliseconds("dateDiff", to) - toMilliseconds("dateDiff", from);
      return between / (unit === undefined ? 1 : millisecondsOf("dateDiff", unit));
    },
  },
];

const fixedUnits: ReadonlyMap<unknown, number> = new Map([
  ["milliseconds", 1],
  ["seconds", 1_000],
  ["minutes", 60_000],
  ["hours", 3_600_000],
  ["days", 86_400_000],
  ["weeks", 604_800_000],
]);

function millisecondsOf(name: string, unit: unknown): number {
  const milliseconds = fixedUnits.get(unit);
  if (milliseconds !== undefined) return milliseconds;
  throw badArgument(name, `one of the units ${[...fixedUnits.keys()].join(", ")}`, unit);
}

function monthsOf(unit: unknown): number | undefined {
  return unit === "months" ? 1 : unit === "years" ? 12 : undefined;
}

function addMonths(start: number, count: number): number {
  if (!Number.isInteger(count)) throw badArgument("dateAdd", "a whole number of months", count);
  const date = new Date(start);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + count);
  date.setUTCDate(Math.min(day, lastDayOf(date.getUTCFullYear(), date.getUTCMonth() + 1)));
  return date.getTime();
}

function toIso(name: string, milliseconds: number): string {
  const date = new Date(milliseconds);
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) {
    throw new Failure("BAD_ARGUMENT", `${name} leads to a time outside the years 0 to 9999`);
  }
  return date.toISOString();
}

function toMilliseconds(name: string, value: unknown): number {
  if (typeof value === "number") return value;
  const given = text(name, value);
  const parts = given.length <= 40 ? isoTime.exec(given) : null;
  const milliseconds = parts === null ? Number.NaN : Date.parse(normalised(parts));
  // Date.parse takes 30 February for 2 March: the day must come back as it was written.
  if (Number.isNaN(milliseconds) || !isRealDay(parts)) {
    throw badArgument(name, "an ISO-8601 date, or date and time with Z or an offset", value);
  }
  return milliseconds;
}

/** The one form that every engine is bound to read: milliseconds, an offset with a colon. */
function normalised(parts: RegExpExecArray): string {
  const [, year, month, day, hour = "00", minute = "00", second = "00", fraction = ""] = parts;
  const zone = parts[8]?.toUpperCase() ?? "Z";
  const offset = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const milliseconds = fraction.slice(0, 3).padEnd(3, "0");
  return `${year}-${month}-${day}T${hour}:${minute}:${second}.${milliseconds}${offset}`;
}

function isRealDay(parts: RegExpExecArray | null): boolean {
  if (parts === null) return false;
  const [, year, month, day] = parts;
  return Number(day) >= 1 && Number(day) <= lastDayOf(Number(year), Number(month));
}

/** Leap years repeat every 400, and Date.UTC would take the years 0 to 99 for 1900 to 1999. */
function lastDayOf(year: number, month: number): number {
  return new Date(Date.UTC(2_000 + (year % 400), month, 0)).getUTCDate();
}

const isoTime =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?([Zz]|[+-]\d\d:?\d\d))?$/;
