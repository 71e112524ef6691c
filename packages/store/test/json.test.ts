import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson, checkJson, jsonText, keyHashOf, maxJsonDepth } from "../src/json.ts";

test("JSON that comes back as it went in has no faults", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5, stringUnit: "grapheme" }), (value) => {
      const hasNul = JSON.stringify(value).includes("\\u0000");
      expect(checkJson(value).length > 0).toBe(hasNul);
    }),
  );
});

test("each fault is told with its place", () => {
  const value = {
    nul: "a\0b",
    half: ["ok", "\ud800"],
    pair: "\ud83d\ude00",
    number: Number.NaN,
    "a/b": { "~": 1n },
    made: new Map(),
    "\udc00": 1,
    hole: [undefined],
    gone: undefined,
  };

  expect(
    checkJson(value)
      .map(({ path }) => path)
      .toSorted(),
  ).toEqual(["", "/a~1b/~0", "/half/1", "/hole/0", "/made", "/nul", "/number"]);
});

test("a value nested ten thousand deep is refused, and does not exhaust the stack", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 10_000; level++) deep = [deep];
  let fits: unknown = 1;
  for (let level = 0; level < maxJsonDepth; level++) fits = { a: fits };

  expect(checkJson(deep)).toHaveLength(1);
  expect(checkJson(fits)).toEqual([]);
  expect(checkJson([fits])).toHaveLength(1);
});

test("text is refused where Postgres would choke on it, and only there", () => {
  for (const value of ["\0", { a: ["x\ud800"] }, { "\0": 1 }, "\\\0", "\\\\\ud83d"]) {
    expect(() => jsonText(value)).toThrow(RangeError);
  }
  for (const value of ["\\u0000", "\\\\u0000", "\ud83d\ude00", "\\ud800", null, undefined, 0]) {
    expect(() => jsonText(value)).not.toThrow();
  }
});

test("equal values have one canonical text, different ones have others", () => {
  const shuffled = fc.jsonValue().map((value) => [value, reversed(value)] as const);
  fc.assert(
    fc.property(shuffled, ([value, other]) => {
      expect(canonicalJson(value)).toBe(canonicalJson(other));
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  expect(canonicalJson({ b: 1, a: [undefined, -0], c: undefined })).toBe('{"a":[null,0],"b":1}');
  expect(canonicalJson(1.0)).toBe(canonicalJson(1));
});

test("keys are typed, fit 64 bits, and are none for objects", () => {
  const keys = [[42], ["42"], [null], [true], ["true"], [42, "a"], ["a", 42], [""]];
  const hashes = keys.map(keyHashOf);

  expect(new Set(hashes).size).toBe(keys.length);
  for (const hash of hashes) {
    expect(BigInt.asIntN(64, BigInt(hash ?? "x"))).toBe(BigInt(hash ?? "x"));
  }
  expect(keyHashOf([])).toBe("0");
  expect(keyHashOf(["x".repeat(100_000)])).not.toBeNull();
  expect(keyHashOf([{ a: 1 }])).toBeNull();
  expect(keyHashOf([[1]])).toBeNull();
});

/** The same value with the keys of its objects the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  );
}
