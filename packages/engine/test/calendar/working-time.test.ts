import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Calendar } from "../../src/calendar/calendar.ts";
import { addWorkingTime, isWorkingTime, nextWorkingTime } from "../../src/calendar/working-time.ts";
import { isRefusal, parseWorkingDuration } from "../../src/definition/duration.ts";
import type { Refusal } from "../../src/definition/duration.ts";
import { calendar } from "../support/calendars.ts";

const berlin = calendar({ timeZone: "Europe/Berlin" });

describe("a duration of time parts passes in working hours", () => {
  test.each([
    ["within a day", "2026-03-02T10:00+01:00", "PT2H30M", "2026-03-02T12:30+01:00"],
    ["to the very end of a day", "2026-03-02T09:00+01:00", "PT8H", "2026-03-02T17:00+01:00"],
    ["into the next day", "2026-03-02T16:00+01:00", "PT2H", "2026-03-03T10:00+01:00"],
    ["over a weekend", "2026-03-06T16:30+01:00", "PT1H", "2026-03-09T09:30+01:00"],
    ["from a weekend", "2026-03-07T12:00+01:00", "PT1H", "2026-03-09T10:00+01:00"],
    ["from an evening", "2026-03-02T20:00+01:00", "PT1S", "2026-03-03T09:00:01+01:00"],
    [
      "to the millisecond",
      "2026-03-02T16:59:59.500+01:00",
      "PT0.6S",
      "2026-03-03T09:00:00.100+01:00",
    ],
    ["zero, within hours", "2026-03-02T10:00+01:00", "PT0S", "2026-03-02T10:00+01:00"],
    ["zero, outside of them", "2026-03-02T17:00+01:00", "PT0S", "2026-03-03T09:00+01:00"],
    ["over the spring's change", "2026-03-27T16:00+01:00", "PT2H", "2026-03-30T10:00+02:00"],
  ])("%s", (_, from, duration, expected) => {
    expect(added(berlin, from, duration)).toBe(iso(expected));
  });
});

describe("a duration of days counts working days", () => {
  test.each([
    ["at the same time of the day", "2026-03-02T10:20+01:00", "P1D", "2026-03-03T10:20+01:00"],
    ["over a weekend", "2026-03-05T15:00+01:00", "P2D", "2026-03-09T15:00+01:00"],
    ["from the first working moment", "2026-03-07T12:00+01:00", "P1D", "2026-03-10T09:00+01:00"],
    ["then its time parts", "2026-03-02T16:00+01:00", "P1DT2H", "2026-03-04T10:00+01:00"],
    ["by the wall's clock", "2026-03-27T16:00+01:00", "P1D", "2026-03-30T16:00+02:00"],
    ["twenty of them are four weeks", "2026-03-02T11:00+01:00", "P20D", "2026-03-30T11:00+02:00"],
  ])("%s", (_, from, duration, expected) => {
    expect(added(berlin, from, duration)).toBe(iso(expected));
  });

  test("within the hours of the day that they come to", () => {
    const short = calendar({
      timeZone: "Europe/Berlin",
      workingHours: {
        monday: [{ from: "08:00", to: "18:00" }],
        tuesday: [
          { from: "09:00", to: "12:00" },
          { from: "13:00", to: "15:00" },
        ],
      },
    });
    expect(added(short, "2026-03-02T17:00+01:00", "P1D")).toBe(iso("2026-03-03T15:00+01:00"));
    expect(added(short, "2026-03-02T12:20+01:00", "P1D")).toBe(iso("2026-03-03T13:00+01:00"));
    expect(added(short, "2026-03-02T08:10+01:00", "P1D")).toBe(iso("2026-03-03T09:00+01:00"));
  });
});

describe("weeks, months and years are everybody's, moved on to a working moment", () => {
  test.each([
    ["P1W", "2026-03-02T10:00+01:00", "2026-03-09T10:00+01:00"],
    ["P1W", "2026-03-07T10:00+01:00", "2026-03-16T09:00+01:00"],
    ["P1M", "2026-01-31T10:00+01:00", "2026-03-02T09:00+01:00"],
    ["P1Y", "2028-02-29T10:00+01:00", "2029-02-28T10:00+01:00"],
    ["P4Y", "2028-02-29T10:00+01:00", "2032-03-01T09:00+01:00"],
    ["P1W1D", "2026-03-02T10:00+01:00", "2026-03-10T10:00+01:00"],
    ["P4W", "2026-03-02T10:00+01:00", "2026-03-30T10:00+02:00"],
  ])("%s from %s", (duration, from, expected) => {
    expect(added(berlin, from, duration)).toBe(iso(expected));
  });

  test.each(["P0.5D", "P1.5W"])(
    "%s is refused: a part of a day is no number of working days",
    (text) => {
      expect(parseWorkingDuration(text)).toEqual({
        problem: "has a fraction of a week or day, of which a calendar has whole ones only",
      });
    },
  );
});

describe("days with rules of their own", () => {
  const shop = calendar(
    {
      timeZone: "Europe/Berlin",
      holidays: { dates: ["2026-12-23", { date: "2026-12-24", name: "Christmas Eve" }] },
      workingDays: [
        { date: "2026-12-24", hours: [{ from: "10:00", to: "12:00" }] },
        { date: "2026-12-26", name: "a Saturday", hours: [{ from: "10:00", to: "12:00" }] },
      ],
    },
    { holidays: { dates: ["2026-12-25", "2026-12-26"], until: "2030-12-31" } },
  );

  test("a holiday has no hours, a working day has its own, on whichever day it is", () => {
    expect(added(shop, "2026-12-22T16:00+01:00", "PT2H")).toBe(iso("2026-12-24T11:00+01:00"));
    expect(added(shop, "2026-12-24T11:30+01:00", "PT1H")).toBe(iso("2026-12-26T10:30+01:00"));
    expect(added(shop, "2026-12-26T11:00+01:00", "PT2H")).toBe(iso("2026-12-28T10:00+01:00"));
  });

  test("29 February is a day like any other", () => {
    const leap = calendar({ timeZone: "UTC", holidays: { dates: ["2028-02-29"] } });
    expect(added(leap, "2028-02-28T16:00Z", "PT2H")).toBe(iso("2028-03-01T10:00Z"));
    expect(added(calendar({ timeZone: "UTC" }), "2028-02-28T16:00Z", "PT2H")).toBe(
      iso("2028-02-29T10:00Z"),
    );
  });

  test("beyond the last day whose holidays are known nothing is counted", () => {
    expect(addWorkingTime(shop, new Date("2030-12-30T10:00Z"), working("P2D"))).toEqual({
      problem: "has public holidays that are known until 2030-12-31 only; store it again",
    });
  });

  test("a calendar without working time says so, within bounds", () => {
    const never = calendar({ timeZone: "UTC", workingHours: {} });
    const problem = "has no working time within 10 years";
    expect(nextWorkingTime(never, new Date("2026-01-01T00:00Z"))).toEqual({ problem });
    expect(addWorkingTime(never, new Date("2026-01-01T00:00Z"), working("PT1S"))).toEqual({
      problem,
    });
  });

  test.each(["P9000D", "P31Y", "P400M", "P2000W", "P29Y9M2000D", "P29Y11M600D"])(
    "thirty years from the beginning are the most, however %s is made up",
    (duration) => {
      const from = new Date("2026-01-01T00:00Z");
      expect(addWorkingTime(berlin, from, working(duration))).toEqual({
        problem: "counts at most 30 years",
      });
    },
  );

  test("so many spells of work that counting them would take long are refused", () => {
    const hours = Array.from({ length: 24 }, (_, hour) => {
      const text = String(hour).padStart(2, "0");
      return { from: `${text}:00`, to: `${text}:59` };
    });
    const fine = calendar({ timeZone: "UTC", workingHours: { monday: hours, tuesday: hours } });
    expect(addWorkingTime(fine, new Date("2026-01-01T00:00Z"), working("PT20000H"))).toEqual({
      problem: "counts at most 20000 spells of work",
    });
  });
});

describe("on days on which the clocks are set", () => {
  const always = { from: "00:00", to: "24:00" };
  const everyDay = {
    monday: [always],
    tuesday: [always],
    wednesday: [always],
    thursday: [always],
    friday: [always],
    saturday: [always],
    sunday: [always],
  };

  test.each([
    ["Europe/Berlin", "2026-03-29", 23],
    ["Europe/Berlin", "2026-10-25", 25],
    ["America/New_York", "2026-03-08", 23],
    ["America/New_York", "2026-11-01", 25],
    ["Australia/Lord_Howe", "2026-10-04", 23.5],
    ["Australia/Lord_Howe", "2026-04-05", 24.5],
    ["Pacific/Apia", "2011-12-30", 0],
    ["America/Havana", "2026-11-01", 25],
    ["Asia/Kathmandu", "2026-03-29", 24],
  ])("%s has on %s %d hours", (timeZone, date, hours) => {
    const spans = calendar({ timeZone, workingHours: everyDay }).spansOf(dayNumber(date));
    expect(spans.reduce((sum, { from, to }) => sum + to - from, 0)).toBe(hours * 3_600_000);
  });

  test.each([
    // Hours that begin in what the clocks leave out begin when they are set forward.
    ["Europe/Berlin", "2026-03-29", "02:30", "2026-03-29T03:00+02:00"],
    ["America/New_York", "2026-03-08", "02:00", "2026-03-08T03:00-04:00"],
    ["Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-04T02:30+11:00"],
    // Of a time that the clocks show twice the first counts.
    ["Europe/Berlin", "2026-10-25", "02:30", "2026-10-25T02:30+02:00"],
    ["America/New_York", "2026-11-01", "01:30", "2026-11-01T01:30-04:00"],
    ["Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-05T01:45+11:00"],
  ])("%s opens on %s at %s", (timeZone, date, from, expected) => {
    const night = [{ from, to: "06:00" }];
    const { spansOf } = calendar({ timeZone, workingHours: { sunday: night } });
    expect(new Date(spansOf(dayNumber(date))[0]?.from ?? 0).toISOString()).toBe(iso(expected));
  });

  test("hours that the clocks leave out are none", () => {
    const night = [{ from: "02:10", to: "02:50" }];
    const { spansOf } = calendar({ timeZone: "Europe/Berlin", workingHours: { sunday: night } });
    expect(spansOf(dayNumber("2026-03-29"))).toEqual([]);
    expect(spansOf(dayNumber("2026-03-22"))).toHaveLength(1);
  });

  test("who is in the second of two hours of one name is in working time all the same", () => {
    const havana = calendar({ timeZone: "America/Havana", workingHours: everyDay });
    // The clocks went back at 01:00 to 00:00; before that it was midnight of the same day.
    const second = new Date("2026-11-01T00:30-05:00");
    expect(nextWorkingTime(havana, second)).toEqual(second);
  });
});

describe("for all calendars and times", () => {
  const zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];
  const hours = fc
    .uniqueArray(fc.integer({ min: 0, max: 48 }), { minLength: 2, maxLength: 6 })
    .map((halves) => {
      const sorted = halves.toSorted((a, b) => a - b).map(halfHour);
      return sorted.flatMap((to, index) =>
        index % 2 === 1 ? [{ from: sorted[index - 1] ?? to, to }] : [],
      );
    });
  const date = fc
    .integer({ min: dayNumber("2026-01-01"), max: dayNumber("2029-12-31") })
    .map((day) => new Date(day * 86_400_000).toISOString().slice(0, 10));
  const source = fc.record({
    timeZone: fc.constantFrom(...zones),
    workingHours: fc.record({
      monday: hours,
      wednesday: fc.option(hours, { nil: undefined }),
      saturday: fc.option(hours, { nil: undefined }),
      sunday: fc.option(hours, { nil: undefined }),
    }),
    holidays: fc.record({ dates: fc.array(date, { maxLength: 40 }) }),
    workingDays: fc.uniqueArray(fc.record({ date, hours }), {
      maxLength: 10,
      selector: (day) => day.date,
    }),
  });
  const calendars = source.map((given) => calendar(given));
  const minute = (text: string) => Date.parse(text) / 60_000;
  const times = fc.oneof(
    fc
      .integer({ min: minute("2026-01-01T00:00Z"), max: minute("2028-12-31T00:00Z") })
      .map((minutes) => new Date(minutes * 60_000)),
    // Around changes of the clocks and 29 February.
    fc
      .tuple(
        fc.constantFrom("2026-03-29", "2026-10-25", "2026-11-01", "2026-10-04", "2028-02-29"),
        fc.integer({ min: -2 * 1440, max: 2 * 1440 }),
      )
      .map(([text, minutes]) => new Date(Date.parse(text) + minutes * 60_000)),
  );
  const lengths = fc.integer({ min: 1, max: 40 * 3_600_000 });
  const plain = { months: 0, weeks: 0, days: 0, ms: 0 };
  const durations = fc.record({
    months: fc.integer({ min: 0, max: 14 }),
    weeks: fc.integer({ min: 0, max: 9 }),
    days: fc.integer({ min: 0, max: 30 }),
    ms: fc.oneof(fc.constant(0), lengths),
  });

  test("a delay ends in working hours, at their end at most, and never before it begins", () => {
    fc.assert(
      fc.property(calendars, times, durations, (office, from, duration) => {
        const end = sound(addWorkingTime(office, from, duration));
        expect(end.getTime()).toBeGreaterThanOrEqual(from.getTime());
        expect(isInHours(office, end, duration.days + duration.ms === 0)).toBe(true);
      }),
    );
  });

  test("so much working time as was asked for lies between", () => {
    fc.assert(
      fc.property(calendars, times, lengths, (office, from, ms) => {
        const end = sound(addWorkingTime(office, from, { ...plain, ms }));
        expect(workingMs(office, from, end)).toBe(ms);
      }),
    );
  });

  test("one length and then another is their sum", () => {
    fc.assert(
      fc.property(calendars, times, lengths, lengths, (office, from, one, other) => {
        const first = sound(addWorkingTime(office, from, { ...plain, ms: one }));
        const both = addWorkingTime(office, first, { ...plain, ms: other });
        expect(both).toEqual(addWorkingTime(office, from, { ...plain, ms: one + other }));
      }),
    );
  });

  test("who begins later is not done before, and longer does not end earlier", () => {
    fc.assert(
      fc.property(calendars, times, times, lengths, lengths, (office, one, other, ms, more) => {
        const [early = one, late = one] = [one, other].toSorted(
          (a, b) => a.getTime() - b.getTime(),
        );
        const end = (from: Date, length: number) =>
          sound(addWorkingTime(office, from, { ...plain, ms: length })).getTime();
        expect(end(early, ms)).toBeLessThanOrEqual(end(late, ms));
        expect(end(early, ms)).toBeLessThan(end(early, ms + more));
      }),
    );
  });

  test("days end on a later day on which somebody works, as many of them later", () => {
    fc.assert(
      fc.property(calendars, times, fc.integer({ min: 1, max: 30 }), (office, from, days) => {
        const end = sound(addWorkingTime(office, from, { ...plain, days }));
        const today = localDay(office, sound(nextWorkingTime(office, from)));
        const open = (day: number) => office.spansOf(day).length > 0;
        // The end of one day's hours may be the beginning of the next one's.
        const counts = [localDay(office, end) - 1, localDay(office, end)]
          .filter((day) => isWithin(office.spansOf(day), end))
          .map((last) => range(today + 1, last).filter(open).length);
        expect(counts).toContain(days);
      }),
    );
  });

  test("the next working moment is a working moment, and the first one", () => {
    fc.assert(
      fc.property(calendars, times, (office, at) => {
        const next = sound(nextWorkingTime(office, at));
        expect(isWorkingTime(office, next)).toBe(true);
        expect(workingMs(office, at, next)).toBe(0);
        expect(isWorkingTime(office, at)).toBe(isInHours(office, at, true));
      }),
    );
  });

  /** By looking at every span around. */
  function isInHours(office: Calendar, at: Date, isStrict: boolean): boolean {
    const today = localDay(office, at);
    const around = range(today - 1, today + 1).flatMap(office.spansOf);
    return isWithin(
      around.filter(({ to }) => !isStrict || at.getTime() < to),
      at,
    );
  }

  function isWithin(spans: ReturnType<Calendar["spansOf"]>, at: Date): boolean {
    return spans.some(({ from, to }) => from <= at.getTime() && at.getTime() <= to);
  }

  function range(first: number, last: number): readonly number[] {
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  }

  function workingMs({ spansOf }: Calendar, from: Date, to: Date): number {
    const first = Math.floor(from.getTime() / 86_400_000) - 1;
    const last = Math.floor(to.getTime() / 86_400_000) + 1;
    let sum = 0;
    for (let day = first; day <= last; day++) {
      for (const span of spansOf(day)) {
        const begin = Math.max(span.from, from.getTime());
        sum += Math.max(0, Math.min(span.to, to.getTime()) - begin);
      }
    }
    return sum;
  }

  function localDay({ clock }: Calendar, at: Date): number {
    return Math.floor(clock.wallAt(at.getTime()) / 86_400_000);
  }
});

function added(office: Calendar, from: string, duration: string): string {
  return sound(addWorkingTime(office, new Date(from), working(duration))).toISOString();
}

function working(text: string) {
  return sound(parseWorkingDuration(text));
}

function sound<T extends object>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(value.problem);
  return value;
}

function iso(text: string): string {
  return new Date(text).toISOString();
}

function dayNumber(date: string): number {
  return Date.parse(date) / 86_400_000;
}

function halfHour(halves: number): string {
  const hour = String(Math.floor(halves / 2)).padStart(2, "0");
  return `${hour}:${halves % 2 === 0 ? "00" : "30"}`;
}
