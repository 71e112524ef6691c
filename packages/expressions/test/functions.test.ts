import { expect, test } from "vitest";
import { functions } from "../src/index.ts";
import { evaluate, scope, thrownBy } from "./scope.ts";

test.each(functions)("$name($parameters) does what its example says", ({ example }) => {
  const [source, result] = example;

  expect(evaluate(source)).toEqual(result);
});

test.each(functions)("$name is documented in a sentence", ({ name, summary }) => {
  expect(name).toMatch(/^[a-z][A-Za-z]+$/);
  expect(summary).toMatch(/^[\w[].*\.$/);
});

test("now() is the time of the decision", () => {
  expect(evaluate("now()")).toBe(scope.now);
});

test.each([
  ["size(input.missing)", 0],
  ["size(null)", 0],
  ["size({ a: 1, b: 2 })", 2],
  ["sum(input.missing)", 0],
  ["sum(pluck(input.lines, 'quantity'))", 5],
  ["sum(1, 2, 3)", 6],
  ["max([])", undefined],
  ["avg([])", undefined],
  ["round(2.5)", 3],
  ["round(-2.5)", -2],
  ["round(1234.5678, -2)", 1200],
  ["round(1e300, 15)", 1e300],
  ["round(1e-9, 2)", 0],
  ["floor(-1.5)", -2],
  ["ceil(1e21)", 1e21],
  ["range(3)", [0, 1, 2]],
  ["range(3, 0, -1)", [3, 2, 1]],
  ["range(3, 0)", []],
  ["lower(input.missing)", undefined],
  ["trim(null)", null],
  ["number('')", Number.NaN],
  ["number('12px')", Number.NaN],
  ["number(true)", 1],
  ["number(null)", Number.NaN],
  ["boolean('TRUE')", true],
  ["boolean('0')", true],
  ["boolean('')", false],
  ["string(undefined)", undefined],
  ["string({ a: [1, undefined] })", '{"a":[1,null]}'],
  ["json(undefined)", undefined],
  ["parseJson('{\"a\": [true, null]}').a[0]", true],
  ["type(undefined) + type(null) + type({})", "undefinednullobject"],
  ["isEmpty(0)", false],
  ["isEmpty('')", true],
  ["coalesce(undefined, null)", undefined],
  ["equals(1, '1')", false],
  ["equals({ a: 1, b: undefined }, { a: 1 })", true],
  ["equals([1, 2], [2, 1])", false],
  ["has(input, 'nothing')", true],
  ["has(input, 'toString')", false],
  ["has(input.missing, 'a')", false],
  ["keys(input.missing)", []],
  ["unique([{ a: 1, b: 2 }, { b: 2, a: 1 }, null, null])", [{ a: 1, b: 2 }, null]],
  ["flatten([1, [2, [3]]], 2)", [1, 2, 3]],
  ["first([])", undefined],
  ["last(null)", undefined],
  ["sort(['b', 'a', 'C'])", ["C", "a", "b"]],
  ["sort([10, 9, 1])", [1, 9, 10]],
  ["where(input.lines, 'sku', 'b')", [{ sku: "b", quantity: 3 }]],
  ["find(input.lines, 'sku', 'z')", undefined],
  ["pluck([{ a: 1 }, {}, null], 'a')", [1, null, null]],
  ["pick(input, 'orderId')", { orderId: "o-1" }],
  ["omit({ a: 1, b: 2 }, ['a', 'z'])", { b: 2 }],
  ["merge(null, { a: 1 })", { a: 1 }],
  ["timestamp(input.missing)", undefined],
  ["timestamp('2026-02-28T23:30:00+01:00')", Date.UTC(2026, 1, 28, 22, 30)],
  ["timestamp('2026-01-01 00:00Z')", Date.UTC(2026, 0, 1)],
  ["dateAdd('2024-02-29', 1, 'years')", "2025-02-28T00:00:00.000Z"],
  ["dateAdd('2026-03-31T10:00:00Z', -1, 'months')", "2026-02-28T10:00:00.000Z"],
  ["dateAdd('0000-01-31', 1, 'months')", "0000-02-29T00:00:00.000Z"],
  ["dateAdd(now(), 90, 'minutes')", "2026-03-01T13:30:00.000Z"],
  ["dateDiff('2026-03-02', now(), 'days')", -0.5],
])("%s", (source, value) => {
  expect(evaluate(source)).toEqual(value);
});

test.each([
  ["sum(['a'])", 'sum takes a number, not "a"'],
  ["sum([1, null])", "sum takes a number, not null"],
  ["size(5)", "size takes a text, list or object, not 5"],
  ["lower(5)", "lower takes a text, not 5"],
  ["keys([1])", "keys takes an object, not an array"],
  ["sort([1, 'a'])", "sort takes a list of numbers only, or of texts only"],
  ["sort([1], 'up')", "sort takes 'asc' or 'desc'"],
  ["round(1, 0.5)", "round takes a whole number of digits"],
  ["range(0, 1, 0)", "a step that is not 0"],
  ["parseJson('{')", "parseJson got a text that is not JSON"],
  ["urlEncode('😀'.slice(0, 1))", "half a character"],
  ["fromEntries([1])", "fromEntries takes [key, value] pairs"],
  ["timestamp('2026-02-30')", "timestamp takes an ISO-8601 date"],
  ["timestamp('2026-01-01T10:00:00')", "Z or an offset"],
  ["timestamp('01/02/2026')", "timestamp takes an ISO-8601 date"],
  ["dateAdd(now(), 1, 'fortnight')", "one of the units milliseconds, seconds"],
  ["dateAdd(now(), 0.5, 'months')", "a whole number of months"],
  ["dateAdd(now(), 1e9, 'days')", "outside the years 0 to 9999"],
  ["isoTime(1 / 0)", "outside the years 0 to 9999"],
])("%s is an error that says why", (source, message) => {
  expect(thrownBy(() => evaluate(source))).toMatchObject({
    code: "BAD_ARGUMENT",
    message: expect.stringContaining(message),
  });
});
