import type { Scope, Template } from "@millrace/expressions";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  durationMs,
  durationToMs,
  formatDuration,
  isRefusal,
  parseDuration,
} from "../../src/definition/duration.ts";
import { BadValueError } from "../../src/errors.ts";

const day = 86_400_000;
const january31 = new Date("2026-01-31T10:00:00Z");

function msOf(text: string, from = january31): number {
  const duration = parseDuration(text);
  if (isRefusal(duration)) throw new Error(`${text} ${duration.problem}`);
  return durationToMs(duration, from);
}

function problemOf(text: string): string {
  const duration = parseDuration(text);
  if (!isRefusal(duration)) throw new Error(`${text} was accepted`);
  return duration.problem;
}

describe("a duration", () => {
  test.each([
    ["PT0.2S", 200],
    ["PT0.5S", 500],
    ["PT1.1S", 1_100],
    ["PT2.345S", 2_345],
    ["PT0.0001S", 1],
    ["PT0S", 0],
    ["P0D", 0],
    ["PT90M", 5_400_000],
    ["PT1H1M1S", 3_661_000],
    ["PT0.5H", 1_800_000],
    ["P1W", 7 * day],
    ["P1.5W", 10.5 * day],
    ["P3W3D", 24 * day],
    ["P24D", 24 * day],
    ["P25D", 25 * day],
    ["P30D", 30 * day],
    ["P400D", 400 * day],
    ["P1DT12H", 1.5 * day],
    ["PT86400S", day],
  ])("%s lasts %d ms", (text, ms) => {
    expect(msOf(text)).toBe(ms);
  });

  test.each([
    ["P1M", "2026-01-31T10:00:00Z", "2026-02-28T10:00:00Z"],
    ["P1M", "2028-01-31T10:00:00Z", "2028-02-29T10:00:00Z"],
    ["P1M", "2026-03-31T23:59:59.999Z", "2026-04-30T23:59:59.999Z"],
    ["P1Y", "2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z"],
    ["P12M", "2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z"],
    ["P4Y", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
    ["P1M1D", "2026-01-31T10:00:00Z", "2026-03-01T10:00:00Z"],
    ["P1Y2M10DT2H30M", "2026-01-31T10:00:00Z", "2027-04-10T12:30:00Z"],
    ["P11M", "2026-01-31T10:00:00Z", "2026-12-31T10:00:00Z"],
    ["P1000Y", "2026-01-31T10:00:00Z", "3026-01-31T10:00:00Z"],
  ])("%s from %s ends at %s", (text, from, end) => {
    const begin = new Date(from);

    expect(new Date(begin.getTime() + msOf(text, begin))).toEqual(new Date(end));
  });

  test.each([
    ["", "empty"],
    ["P", "names no amount"],
    ["PT", "nothing after its T"],
    ["P1DT", "nothing after its T"],
    ["-P1D", "sign"],
    ["P-1D", "sign"],
    ["+P1D", "sign"],
    ["pt5s", 'write "PT5S"'],
    ["PT5s", 'write "PT5S"'],
    [" PT5S", "space"],
    ["PT5S\n", "space"],
    ["PT 5S", "space"],
    ["P1S", 'write "PT1S"'],
    ["P5H", 'write "PT5H"'],
    ["PT0,5S", "comma"],
    ["P99999999Y", "1,000 years"],
    ["P1001Y", "1,000 years"],
    ["P365243D", "1,000 years"],
    ["PT99999999999999S", "1,000 years"],
    ["PT9999999999999999S", "too long"],
    ["P0.5Y", "not fixed"],
    ["P1.5M", "not fixed"],
    ["PT1.5H30M", "before its last unit"],
    ["PT.5S", "no duration"],
    ["PT5.S", "no duration"],
    ["P1D1W", "no duration"],
    ["PT1S1M", "no duration"],
    ["P1D1D", "no duration"],
    ["3 days", "space"],
    ["3d", "no duration"],
    ["5000", "no duration"],
    ["P１D", "no duration"],
    ["P0003-06-04T12:30:05", "sign"],
    ["2026-01-31T12:00:00Z", "is a time"],
    [`P${"0".repeat(70)}D`, "64 characters"],
  ])("%j is refused: %s", (text, why) => {
    expect(problemOf(text)).toContain(why);
  });

  test("is read back from the text that it is formatted as", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 31_556_952_000_000 }), (ms) => {
        expect(msOf(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  test("is the sum of its parts", () => {
    const part = fc.nat(500);
    fc.assert(
      fc.property(part, part, part, part, part, (weeks, days, hours, minutes, millis) => {
        const text = `P${weeks}W${days}DT${hours}H${minutes}M${millis / 1_000}S`;

        const expected = (weeks * 7 + days) * day + hours * 3_600_000 + minutes * 60_000 + millis;
        expect(msOf(text)).toBe(expected);
      }),
    );
  });

  test("of months ends on the same day of the month or on its last one", () => {
    const from = fc.date({
      min: new Date("1900-01-01T00:00:00Z"),
      max: new Date("2200-01-01T00:00:00Z"),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(from, fc.nat(600), (begin, months) => {
        const end = new Date(begin.getTime() + msOf(`P${months}M`, begin));

        const passed =
          (end.getUTCFullYear() - begin.getUTCFullYear()) * 12 +
          end.getUTCMonth() -
          begin.getUTCMonth();
        expect(passed).toBe(months);
        expect(end.toISOString().slice(10)).toBe(begin.toISOString().slice(10));
        const isLastDay = new Date(end.getTime() + day).getUTCDate() === 1;
        expect(end.getUTCDate() === begin.getUTCDate() || isLastDay).toBe(true);
        expect(end.getUTCDate()).toBeLessThanOrEqual(begin.getUTCDate());
      }),
    );
  });

  test("is never read from arbitrary text without a finite, whole, non-negative length", () => {
    const texts = fc.oneof(
      fc.string(),
      fc
        .string({ unit: fc.constantFrom(...Array.from("PTYMWDHS0123456789.")) })
        .map((tail) => `P${tail}`),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const duration = parseDuration(text);
        if (isRefusal(duration)) return;
        const ms = durationToMs(duration, january31);
        expect(Number.isSafeInteger(ms) && ms >= 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a duration whose value is known only at run time", () => {
  const scope = {} as Scope;
  const giving = (value: unknown) => ({
    template: { evaluate: () => value } as unknown as Template,
  });

  test("lasts what its template gives", () => {
    expect(durationMs(giving("P1M"), scope, january31)).toBe(28 * day);
  });

  test.each([
    ["soon", 'the duration "soon" is no duration'],
    ["-P1D", "sign"],
    [undefined, "not undefined"],
    [5_000, "not 5000"],
    [null, "not null"],
    ["x".repeat(1_000), "…"],
  ])("fails with a BadValueError for %j", (value, message) => {
    const evaluate = () => durationMs(giving(value), scope, january31);

    expect(evaluate).toThrow(BadValueError);
    expect(evaluate).toThrow(message);
  });
});
