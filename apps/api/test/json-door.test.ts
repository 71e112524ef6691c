import { jsonFaults } from "@millrace/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseBody } from "../src/json-door.ts";

const parse = (text: string) => parseBody(Buffer.from(text));

test("a value that JSON can hold passes as it is", () => {
  // fast-check's values have numbers that JavaScript wrote, so none of them changes.
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value);
      const { value: parsed, faults } = parse(text);
      expect(JSON.stringify(parsed)).toBe(text);
      expect(faults.map(({ path }) => path)).toEqual(jsonFaults(parsed).map(({ path }) => path));
    }),
  );
});

test.each([
  ["C61: U+0000 in a value", String.raw`{"a":"x\u0000y"}`, ["/a", "BAD_CHARACTER"]],
  ["C61: U+0000 in a key", String.raw`{"a\u0000":1}`, ["/a\0", "BAD_CHARACTER"]],
  ["half a surrogate pair", String.raw`["\ud800"]`, ["/0", "BAD_CHARACTER"]],
  ["the other half", String.raw`["\uDC00\uD800"]`, ["/0", "BAD_CHARACTER"]],
  ["C66: a key __proto__", '{"a":{"__proto__":{"x":1}}}', ["/a/__proto__", "BAD_VALUE"]],
  ["C66: that key in disguise", String.raw`{"__pr\u006fto__":1}`, ["/__proto__", "BAD_VALUE"]],
  ["C64: an integer beyond 2^53", '{"id": 9007199254740993}', ["/id", "BAD_NUMBER"]],
  ["C64: a number beyond all", "[1e400]", ["/0", "BAD_NUMBER"]],
  ["C64: negative zero", "-0", ["", "BAD_NUMBER"]],
])("%s is a fault", (_, text, [path, code]) => {
  expect(parse(text).faults).toMatchObject([{ path, code }]);
});

test.each([
  ["a pair of surrogates", String.raw`["\ud83d\ude00"]`],
  ["text that looks like a number that changes", '["9007199254740993", "-0", " 1e400", ":-0"]'],
  ["text that speaks of __proto__", '["__proto__"]'],
  ["C66: a key constructor", '{"constructor":{"prototype":{"x":1}}}'],
  ["escapes that are harmless", String.raw`["\u00e9", "\\u0000"]`],
])("%s passes", (_, text) => {
  expect(parse(text)).toEqual({ value: JSON.parse(text), faults: [] });
});

test("C66: nothing that passes changes what every object inherits", () => {
  parse('{"constructor":{"prototype":{"polluted":1}},"__proto__":{"polluted":1}}');

  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

test("all faults are listed at once", () => {
  const { faults } = parse(String.raw`{"a":"\u0000","b":[-0,1e999],"__proto__":1}`);

  expect(faults.map(({ path }) => path)).toEqual(["/a", "/__proto__", "/b/0", "/b/1"]);
});

test("nesting beyond 64 levels is refused before the text is parsed, malformed or not", () => {
  const refusal = expect.objectContaining({
    code: "INVALID_BODY",
    problems: [expect.objectContaining({ code: "TOO_DEEP" })],
  });
  expect(() => parse("[".repeat(65) + "]".repeat(65))).toThrow(refusal);
  expect(() => parse('{"a":'.repeat(200_000))).toThrow(refusal);
  expect(parse("[".repeat(64) + "]".repeat(64)).faults).toEqual([]);
  expect(parse(`["${"[".repeat(1_000)}"]`).faults).toEqual([]);
});

test("malformed JSON is refused with its place", () => {
  expect(() => parse('{\n "a": tru }')).toThrow(
    expect.objectContaining({
      code: "MALFORMED_JSON",
      message: 'line 2, column 7: expected a value, found "t"',
      members: { position: 8, line: 2, column: 7 },
    }),
  );
});

test("bytes that are not UTF-8 are refused", () => {
  expect(() => parseBody(Buffer.from([0x22, 0xff, 0x22]))).toThrow(
    expect.objectContaining({ code: "MALFORMED_JSON" }),
  );
});

test("a megabyte at the worst takes no time that grows with its square", () => {
  const half = "1e1,".repeat(250_000);
  const startedAt = performance.now();

  parse(`[${half}1]`);

  // A third of a second by itself; minutes where each number looks at the text again.
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});
