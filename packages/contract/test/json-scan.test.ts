import fc from "fast-check";
import { expect, test } from "vitest";
import { scanJson } from "@millrace/contract";

test("what JSON.parse takes the scan takes, and what it refuses the scan refuses", () => {
  const text = fc.oneof(
    fc.json(),
    fc.string(),
    // JSON with a few characters changed, taken out or put in.
    fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", '"', "\\", ",", "}", "0", "-", "e", " ", "\n"),
      )
      .map(([json, at, insert]) => {
        const index = at % (json.length + 1);
        return json.slice(0, index) + insert + json.slice(index + (at % 2));
      }),
  );
  fc.assert(
    fc.property(text, (source) => {
      expect("syntax" in scanJson(source)).toBe(!isJson(source));
    }),
    { numRuns: 5_000 },
  );
});

test.each([
  ["hello", { line: 1, column: 1, message: 'expected a value, found "h"' }],
  ['{"a":1,}', { line: 1, column: 8, message: 'expected a member, as "name": value' }],
  ['{"a":\n  }', { line: 2, column: 3, message: 'expected a value, found "}"' }],
  ['{"a":1', { line: 1, column: 7, message: 'expected "," or "}"' }],
  ["[1 2]", { line: 1, column: 4, message: 'expected "," or "]"' }],
  ["[01]", { line: 1, column: 3, message: 'expected "," or "]"' }],
  ['{"a":1} x', { line: 1, column: 9, message: "expected nothing more" }],
  ['["a\nb"]', { line: 1, column: 2 }],
  ["", { line: 1, column: 1, message: "expected a value, found the end" }],
  ["\ufeff{}", { line: 1, column: 1 }],
])("of %j it says where it is malformed", (source, place) => {
  expect(scanJson(source)).toMatchObject({ syntax: place });
});

test.each([
  "9007199254740993",
  "1e400",
  "-1e400",
  "-0",
  "-0.0",
  "0.1000000000000000055",
  "1e-400",
  "123456789012345678",
])("C64: the number %s would change, so it is a fault at its place", (number) => {
  const scan = scanJson(`{"a":[true,{"b/c":${number}}]}`);

  expect(scan).toMatchObject({ faults: [{ path: "/a/1/b~1c", code: "BAD_NUMBER" }] });
});

test.each([
  "0",
  "0.1",
  "-1.5",
  "1.0",
  "1e2",
  "1E+2",
  "100e-2",
  "9007199254740992",
  "1e21",
  "5e-324",
  "1.7976931348623157e308",
  "0.30000000000000004",
  "0e5",
])("C64: the number %s comes back as it was sent", (number) => {
  expect(scanJson(`[${number}]`)).toEqual({ faults: [] });
});

test("every number that JavaScript writes comes back as it was sent", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      fc.pre(!Object.is(value, -0));
      expect(scanJson(JSON.stringify(value))).toEqual({ faults: [] });
    }),
    { numRuns: 5_000 },
  );
});

test("nesting is looked into down to 64 levels, and no further", () => {
  expect(scanJson("[".repeat(64) + "]".repeat(64))).toEqual({ faults: [] });
  expect(scanJson("[".repeat(500_000))).toMatchObject({
    faults: [{ path: "/0".repeat(64), code: "TOO_DEEP" }],
  });
});

function isJson(source: string): boolean {
  try {
    JSON.parse(source);
    return true;
  } catch {
    return false;
  }
}
