import { expect, test } from "vitest";
import { ExpressionError, parseExpression } from "../src/index.ts";
import { allRoots, evaluate, scope, thrownBy } from "./scope.ts";

test.each([
  ["input.orderId", "o-1"],
  ["workflow.input.lines[1].sku", "b"],
  ["workflow.instance.state.steps.reserve.output.id", "r-1"],
  ["steps['my-step'].output", 7],
  ["event.payload.attempts > 3 && event.id === 'e-1'", true],
  ["item.sku + index", "a0"],
  ["input.lines.length", 2],
  ["'héllo'[1]", "é"],
  ["'abc'.length", 3],
  ["input.lines[input.lines.length - 1].quantity", 3],
  ["{ ...variables, attempts: variables.attempts + 1 }", { attempts: 3, name: "Ada" }],
  ["{ [variables.name]: input.orderId, variables }.Ada", "o-1"],
  ["[...input.lines, 1].length", 3],
  ["`${variables.name} has ${size(input.lines)}`", "Ada has 2"],
  ["'sku' in item ? 'yes' : 'no'", "yes"],
  ["0 in input.lines", true],
  ["variables.missing ?? 'default'", "default"],
  ["-variables.attempts % 2", -0],
])("%s", (source, value) => {
  expect(evaluate(source)).toEqual(value);
});

test.each([
  "input.missing",
  "input.missing.deeper[0].still",
  "input.nothing.deeper",
  "input.missing[input.alsoMissing]",
  "input.missing.includes('a')",
  "input.missing.trim().length",
  "input.orderId.missing",
  "variables.attempts.missing",
  "input.lines['01']",
  "input.lines[-1]",
  "input.lines[0.5]",
  "undefined",
])("%s is undefined, not an error", (source) => {
  expect(evaluate(source)).toBeUndefined();
});

test("a root that the scope lacks is undefined", () => {
  expect(parseExpression("steps.a.output").evaluate({ now: scope.now })).toBeUndefined();
});

test.each([
  "toString",
  "valueOf",
  "hasOwnProperty",
  "isPrototypeOf",
  "__defineGetter__",
  "map",
  "trim",
])("what values inherit is not a property: %s", (name) => {
  for (const value of ["input", "input.lines", "input.orderId", "variables.attempts", "true"]) {
    expect(evaluate(`${value}.${name}`)).toBeUndefined();
    expect(evaluate(`${value}[item]`, { item: name })).toBeUndefined();
    expect(evaluate(`item in ${value}`, { item: name })).toBe(false);
  }
});

test("a root of another name is read from the scope", () => {
  const expression = parseExpression("line.sku + item.sku", { roots: ["line", "item"] });

  expect(expression.evaluate({ ...scope, line: { sku: "x" } })).toBe("xa");
  expect(expression.reads).toMatchObject({ roots: ["item", "line"], item: true });
});

test("the scope is never changed, and parts of it are given by identity", () => {
  const before = structuredClone(scope);

  expect(evaluate("input.lines")).toBe((scope.input as { lines: unknown }).lines);
  evaluate("reverse(input.lines)");
  evaluate("sort(pluck(input.lines, 'quantity'), 'desc')");
  evaluate("merge(input, variables)");
  evaluate("input.lines.concat(1).toReversed()");

  expect(scope).toEqual(before);
});

test("lists and objects equal nothing, wherever they were read; equals() compares content", () => {
  expect(evaluate("[1] === [1]")).toBe(false);
  expect(evaluate("input.lines === workflow.input.lines")).toBe(false);
  expect(evaluate("input.lines != input.lines")).toBe(true);
  expect(evaluate("equals([1, { a: 2 }], [1, { a: 2 }])")).toBe(true);
});

test.each([
  ["a missing side of ===", "event.payload.x === input.y", false],
  ["a missing left side of ===", "event.payload.x === input.orderId", false],
  ["a missing right side of ==", "input.orderId == input.y", false],
  ["null, which is a value", "input.nothing === null", true],
  ["null against a missing side of ==", "input.missing == null", false],
  ["an equality inside a negation", "!(event.payload.x === input.y)", true],
  ["an equality inside a list", "[event.payload.x === input.y][0]", false],
  ["an equality inside a call", "string(event.payload.x === input.y)", "false"],
  ["an equality with the word undefined", "input.missing === undefined", false],
  ["sides that are there", "event.payload.orderId === workflow.input.orderId", true],
  ["sides that are there, loosely", "'4' == event.payload.attempts", true],
  ["!==, which stays as it is", "event.payload.x !== input.y", false],
])("with undefinedNeverEqual: %s", (_name, source, value) => {
  expect(evaluate(source, {}, { undefinedNeverEqual: true })).toBe(value);
});

test("without undefinedNeverEqual two missing sides are equal, as in JavaScript", () => {
  expect(evaluate("event.payload.x === input.y")).toBe(true);
});

test("an error says what failed, where, and with which code", () => {
  const error = thrownBy(() => evaluate("1 + variables.attempts.trim()"));

  expect(error).toBeInstanceOf(ExpressionError);
  expect(error).toMatchObject({
    code: "NO_SUCH_METHOD",
    offset: 4,
    source: "1 + variables.attempts.trim()",
    message: 'a value of type number has no method trim (at 4 in "1 + variables.attempts.trim()")',
  });
});

test("one expression serves many scopes", () => {
  const expression = parseExpression("event.payload.n * 2", { roots: allRoots });

  const values = [1, 2, 3].map((n) =>
    expression.evaluate({ now: scope.now, event: { payload: { n } } }),
  );

  expect(values).toEqual([2, 4, 6]);
});
