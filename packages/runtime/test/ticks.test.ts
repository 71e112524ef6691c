import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cronRule, dueAt, nextTick, nextTicks, parseCron } from "../src/schedules/ticks.ts";
import type { DstRule, TickRule } from "../src/schedules/ticks.ts";

const iso = (ticks: readonly Date[]) => ticks.map((tick) => tick.toISOString().slice(0, 16));
const at = (text: string) => new Date(text);

/** Ticks later than `from`, up to and with `to`. */
function between(rule: TickRule, from: string, to: string): readonly string[] {
  const ticks = nextTicks(rule, at(from), 5_000);
  return iso(ticks.filter((tick) => tick <= at(to)));
}

test("C53: a half-hourly schedule ticks every real half hour while the clock is set back", () => {
  const rule = cronRule("*/30 * * * *", "America/New_York");

  const ticks = between(rule, "2026-11-01T04:50:00Z", "2026-11-01T08:00:00Z");

  expect(ticks).toEqual([
    "2026-11-01T05:00",
    "2026-11-01T05:30",
    "2026-11-01T06:00",
    "2026-11-01T06:30",
    "2026-11-01T07:00",
    "2026-11-01T07:30",
    "2026-11-01T08:00",
  ]);
});

test("C53: a minutely schedule ticks every minute through both changes of the clock", () => {
  const rule = cronRule("* * * * *", "Europe/Berlin");

  for (const change of ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"]) {
    const ticks = nextTicks(rule, new Date(at(change).getTime() - 7_200_000), 240);
    const gaps = ticks.slice(1).map((tick, index) => tick.getTime() - ticks[index]!.getTime());
    expect(new Set(gaps)).toEqual(new Set([60_000]));
  }
});

test("C59: every 13 hours is elapsed time as an interval, and twice a day as a cron step", () => {
  const origin = at("2026-10-24T00:00:00Z");
  const interval: TickRule = { kind: "interval", everyMs: 13 * 3_600_000, origin };
  const cron = cronRule("0 */13 * * *", "Europe/Berlin");

  expect(iso(nextTicks(interval, origin, 4))).toEqual([
    "2026-10-24T13:00",
    "2026-10-25T02:00",
    "2026-10-25T15:00",
    "2026-10-26T04:00",
  ]);
  expect(iso(nextTicks(cron, origin, 4))).toEqual([
    "2026-10-24T11:00",
    "2026-10-24T22:00",
    "2026-10-25T12:00",
    "2026-10-25T23:00",
  ]);
});

test.each([
  ["SHIFT", ["2026-03-07T07:30", "2026-03-08T07:30", "2026-03-09T06:30"]],
  ["SKIP", ["2026-03-07T07:30", "2026-03-09T06:30", "2026-03-10T06:30"]],
] as const)("a time that the clock leaves out: %s", (missing, expected) => {
  const rule = cronRule("30 2 * * *", "America/New_York", { missing });

  expect(iso(nextTicks(rule, at("2026-03-07T00:00:00Z"), 3))).toEqual(expected);
});

test.each([
  ["FIRST", ["2026-10-31T05:30", "2026-11-01T05:30", "2026-11-02T06:30"]],
  ["BOTH", ["2026-10-31T05:30", "2026-11-01T05:30", "2026-11-01T06:30"]],
] as const)("a time that comes twice: %s", (duplicate, expected) => {
  const rule = cronRule("30 1 * * *", "America/New_York", { duplicate });

  expect(iso(nextTicks(rule, at("2026-10-31T00:00:00Z"), 3))).toEqual(expected);
});

test("left alone, what is missing is made up for, and what is doubled comes once", () => {
  const rule = cronRule("30 2 * * *", "Europe/Berlin");

  expect(iso(nextTicks(rule, at("2026-03-28T12:00:00Z"), 1))).toEqual(["2026-03-29T01:30"]);
  expect(iso(nextTicks(rule, at("2026-10-24T12:00:00Z"), 2))).toEqual([
    "2026-10-25T00:30",
    "2026-10-26T01:30",
  ]);
});

/** Changes of the clock: of an hour, of half an hour, at midnight, of a whole day, and none. */
const changes = [
  ["America/New_York", "2026-03-08T07:00:00Z"],
  ["America/New_York", "2026-11-01T06:00:00Z"],
  ["Europe/Berlin", "2026-03-29T01:00:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z"],
  ["America/Sao_Paulo", "2018-11-04T03:00:00Z"],
  ["America/Sao_Paulo", "2018-02-18T02:00:00Z"],
  ["Pacific/Apia", "2011-12-30T10:00:00Z"],
  ["Asia/Kolkata", "2026-11-01T06:00:00Z"],
  ["UTC", "2026-11-01T06:00:00Z"],
] as const;

const minute = 60_000;
const hours = fc.uniqueArray(fc.integer({ min: 0, max: 23 }), { minLength: 1, maxLength: 24 });
const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 59 }), { minLength: 1, maxLength: 3 });

test("around any change of the clock the ticks are those that a look at each minute finds", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...changes),
      hours,
      minutes,
      fc.constantFrom<DstRule["missing"]>("SHIFT", "SKIP"),
      fc.constantFrom<DstRule["duplicate"]>("FIRST", "BOTH"),
      ([zone, change], inHours, inMinutes, missing, duplicate) => {
        const dst = { missing, duplicate };
        const rule = cronRule(`${inMinutes.join(",")} ${inHours.join(",")} * * *`, zone, dst);
        const [from, to] = [at(change).getTime() - 86_400_000, at(change).getTime() + 86_400_000];

        const ticks = nextTicks(rule, new Date(from), 24 * 3 * 3);

        const found = lookAtEachMinute(zone, from, to, new Set(inHours), new Set(inMinutes), dst);
        expect(ticks.map(Number).filter((tick) => tick <= to)).toEqual(found);
      },
    ),
    { numRuns: 120 },
  );
});

/** Knows nothing of offsets: reads what the clock shows in each minute. */
function lookAtEachMinute(
  zone: string,
  from: number,
  to: number,
  inHours: ReadonlySet<number>,
  inMinutes: ReadonlySet<number>,
  { missing, duplicate }: DstRule,
): readonly number[] {
  const matches = (wall: number) =>
    inHours.has(new Date(wall).getUTCHours()) && inMinutes.has(new Date(wall).getUTCMinutes());
  const seen = new Set<number>();
  const found = new Set<number>();
  let last: number | undefined;
  // Two days more before, for what a change makes double or late.
  for (let ms = from - 2 * 86_400_000; ms <= to; ms += minute) {
    const wall = shownAt(zone, ms);
    if (last !== undefined && wall > last + minute && missing === "SHIFT") {
      for (let left = last + minute; left < wall; left += minute) {
        if (matches(left)) found.add(ms + (left - last - minute));
      }
    }
    if (matches(wall) && (duplicate === "BOTH" || !seen.has(wall))) found.add(ms);
    seen.add(wall);
    last = wall;
  }
  return [...found].filter((ms) => ms > from && ms <= to).toSorted((a, b) => a - b);
}

const formats = new Map<string, Intl.DateTimeFormat>();
/** The minutes around a change are looked at for every rule, and to ask takes longer than all else. */
const shown = new Map<string, number>();

function shownAt(zone: string, ms: number): number {
  const key = `${zone} ${ms}`;
  const known = shown.get(key);
  if (known !== undefined) return known;
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  formats.set(zone, format);
  const wall = Date.parse(`${format.format(ms).replace(" ", "T")}:00Z`);
  shown.set(key, wall);
  return wall;
}

test("ticks come in order, each later than the last, and asking from any time gives the same ones", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...changes),
      fc.constantFrom("*/20 * * * *", "15 1,2 * * *", "0 0 * * *", "*/7 2 * * *", "@hourly"),
      fc.integer({ min: -90_000_000, max: 90_000_000 }),
      ([zone, change], expression, offsetMs) => {
        const rule = cronRule(expression, zone);
        const from = new Date(at(change).getTime() - 90_000_000);
        const middle = new Date(at(change).getTime() + offsetMs);

        const all = nextTicks(rule, from, 200).map(Number);

        expect(all).toEqual([...new Set(all)].toSorted((a, b) => a - b));
        const next = nextTick(rule, middle)?.getTime();
        const last = all.at(-1) ?? 0;
        expect(middle.getTime() >= last || next === all.find((ms) => ms > +middle)).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

test("start and end are part of the time in which it ticks, and after the end there is nothing", () => {
  const [start, end] = [at("2026-01-01T09:00:00Z"), at("2026-01-03T09:00:00Z")];
  const rule = cronRule("0 9 * * *", "UTC", {}, { start, end });

  expect(iso(nextTicks(rule, at("2020-01-01T00:00:00Z"), 10))).toEqual([
    "2026-01-01T09:00",
    "2026-01-02T09:00",
    "2026-01-03T09:00",
  ]);
  expect(nextTick({ kind: "once", at: end }, start)).toEqual(end);
  expect(nextTick({ kind: "once", at: end }, end)).toBeUndefined();
});

test("with a calendar it ticks at working moments only, and never where there are none", () => {
  // Weekdays from nine to five, UTC.
  const nextWorking = (from: Date): Date | undefined => {
    for (let ms = from.getTime(); ; ms = Math.floor(ms / 3_600_000 + 1) * 3_600_000) {
      const [day, hour] = [new Date(ms).getUTCDay(), new Date(ms).getUTCHours()];
      if (day % 6 !== 0 && hour >= 9 && hour < 17) return new Date(ms);
    }
  };
  const from = at("2026-11-27T00:00:00Z");
  const ticks = (expression: string, count: number) =>
    iso(nextTicks(cronRule(expression, "UTC", {}, { nextWorking }), from, count));

  expect(ticks("0 9 * * *", 3)).toEqual([
    "2026-11-27T09:00",
    "2026-11-30T09:00",
    "2026-12-01T09:00",
  ]);
  expect(ticks("0 */4 * * *", 3)).toEqual([
    "2026-11-27T12:00",
    "2026-11-27T16:00",
    "2026-11-30T12:00",
  ]);
  expect(ticks("0 3 * * *", 1)).toEqual([]);
  const never = cronRule("0 9 * * *", "UTC", {}, { nextWorking: () => undefined });
  expect(nextTicks(never, from, 1)).toEqual([]);
});

test("jitter is the same for the same tick, never early, and never beyond the tick after it", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 0, max: 200_000 }),
      (index, jitterMs) => {
        const tick = new Date(index * minute);
        const following = new Date((index + 1) * minute);

        const due = dueAt(tick, following, jitterMs, "tenant", "schedule");

        expect(due).toEqual(dueAt(tick, following, jitterMs, "tenant", "schedule"));
        expect(due >= tick && due < following).toBe(true);
        expect(due.getTime() - tick.getTime()).toBeLessThanOrEqual(jitterMs);
      },
    ),
  );
  const spread = Array.from({ length: 50 }, (_, index) =>
    dueAt(at("2026-01-01T00:00:00Z"), undefined, 60_000, `schedule-${index}`).getTime(),
  );
  expect(new Set(spread).size).toBeGreaterThan(40);
});

test.each([
  ["", "must have five fields"],
  ["* * * *", "must have five fields"],
  ["2026-01-01T00:00:00", "must have five fields"],
  ["@reboot", "must have five fields"],
  ["61 * * * *", 'in field 1, the minute ("61"), 61 is not from 0 to 59'],
  ["0 0 0 * *", 'in field 3, the day of the month ("0"), 0 is not from 1 to 31'],
  ["0 0 1-32/2,L * *", 'in field 3, the day of the month ("1-32/2,L"), 32 is not from 1 to 31'],
  ["0 0 0 1 13 *", 'in field 5, the month ("13"), 13 is not from 1 to 12'],
  ["0 0 * * -1", 'in field 5, the day of the week ("-1"), -1 is not from 0 to 7'],
  ["*/0 * * * *", 'in field 1, the minute ("*/0"), illegal stepping: 0'],
  ["0 0 * * FOO", 'in field 5, the day of the week ("FOO"), something contains illegal characters'],
])("%j is no cron expression", (text, expected) => {
  expect(parseCron(text)).toEqual({ problem: expect.stringContaining(expected) });
});

test("the first of the month or a Monday; the last Friday; seconds; a day that never comes", () => {
  const from = at("2026-11-01T00:00:00Z");
  const days = (expression: string, count: number) =>
    nextTicks(cronRule(expression, "UTC"), from, count).map((tick) => tick.toISOString());

  expect(days("0 0 1 * MON", 3).map((day) => day.slice(0, 10))).toEqual([
    "2026-11-02",
    "2026-11-09",
    "2026-11-16",
  ]);
  expect(days("0 0 * * FRI#L", 1)).toEqual(["2026-11-27T00:00:00.000Z"]);
  expect(days("*/20 * * * * *", 2)).toEqual([
    "2026-11-01T00:00:20.000Z",
    "2026-11-01T00:00:40.000Z",
  ]);
  expect(days("0 0 30 2 *", 1)).toEqual([]);
});

test("in the first century of all, years are what they are", () => {
  const from = at("0001-01-01T00:00:00Z");
  const first = (expression: string, zone: string) =>
    nextTicks(cronRule(expression, zone), from, 2).map((tick) => tick.toISOString());

  expect(first("0 12 * * *", "UTC")).toEqual([
    "0001-01-01T12:00:00.000Z",
    "0001-01-02T12:00:00.000Z",
  ]);
  // The first of the first was a Monday; clocks in Lisbon were 36:45 behind until 1912.
  expect(first("0 0 * * MON", "Europe/Lisbon")[1]).toBe("0001-01-08T00:36:45.000Z");
  expect(first("0 0 29 2 *", "America/New_York")[0]).toBe("0004-02-29T04:56:02.000Z");
});

test("a tick that comes once in years is not walked to day by day", () => {
  const asked: number[] = [];
  const rule = cronRule("0 0 29 2 *", "Europe/Berlin");
  const clock: typeof rule.clock = {
    stretchAt: (ms) => {
      asked.push(ms);
      return rule.clock.stretchAt(ms);
    },
  };

  const ticks = nextTicks({ ...rule, clock }, new Date("2026-11-28T00:00Z"), 10);

  expect(ticks.map((tick) => tick.toISOString())).toEqual(
    [2028, 2032, 2036, 2040, 2044, 2048, 2052, 2056, 2060, 2064].map(
      (year) => `${year}-02-28T23:00:00.000Z`,
    ),
  );
  expect(asked.length).toBeLessThan(100);
});
