import type { Scope, Template } from "@millrace/expressions";
import { expect, test } from "vitest";
import { parseTime, resolveTime } from "../../src/definition/time.ts";
import { BadValueError } from "../../src/errors.ts";

test.each([
  ["2026-03-01", "2026-03-01T00:00:00.000Z"],
  ["2026-03-01T09:00Z", "2026-03-01T09:00:00.000Z"],
  ["2026-03-01T09:00:30Z", "2026-03-01T09:00:30.000Z"],
  ["2026-03-01T09:00:00.25+05:30", "2026-03-01T03:30:00.250Z"],
  ["2026-03-01T09:00:00.123456789-01:00", "2026-03-01T10:00:00.123Z"],
  ["2028-02-29", "2028-02-29T00:00:00.000Z"],
  ["0001-01-01", "0001-01-01T00:00:00.000Z"],
  ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
])("the time %s is %s", (text, expected) => {
  expect(parseTime(text)).toEqual(new Date(expected));
});

test.each([
  ["", "no time"],
  ["tomorrow", "no time"],
  ["2026-3-1", "no time"],
  ["2026-03-01 09:00:00Z", "no time"],
  ["2026-03-01T09:00:00", "no offset"],
  ["2026-02-30", "no date"],
  ["2026-02-29T00:00:00Z", "no date"],
  ["2026-13-01T00:00:00Z", "no date"],
  ["2026-03-01T25:00:00Z", "no time of the day"],
  ["1772355600000", "no time"],
  ["0000-06-01", "outside the years"],
  ["0000-06-01T00:00:00Z", "outside the years"],
  ["0001-01-01T00:00:00+14:00", "outside the years"],
  ["9999-12-31T23:59:59-14:00", "outside the years"],
])("the time %j is refused: %s", (text, why) => {
  expect(parseTime(text)).toEqual({ problem: expect.stringContaining(why) });
});

test.each([["soon"], [1_772_355_600_000], [undefined]])(
  "a template that gives %j where a time belongs fails with a BadValueError",
  (value) => {
    const template = { evaluate: () => value } as unknown as Template;

    expect(() => resolveTime(template, {} as Scope)).toThrow(BadValueError);
  },
);
