import { expect, test } from "vitest";
import { methods } from "../src/index.ts";
import { evaluate, thrownBy } from "./scope.ts";

test.each(methods)("$on.$name($parameters) does what its example says", ({ example }) => {
  const [source, result] = example;

  expect(evaluate(source)).toEqual(result);
});

test.each([
  ["'a.b.c'.replaceAll('.', '$&')", "a$&b$&c"],
  ["'abc'.replaceAll('', '-')", "-a-b-c-"],
  ["''.replaceAll('', 'x')", "x"],
  ["'abc'.replace('z', 'x')", "abc"],
  ["'a'.padStart(3, '')", "a"],
  ["'abc'.padEnd(2)", "abc"],
  ["'ab'.padStart(7, 'xyz')", "xyzxyab"],
  ["[1, [2]].join()", "1,[2]"],
  ["[[1, [2, [3, [4]]]]].flat(99)", [1, 2, 3, 4]],
  ["[0 / 0].includes(0 / 0)", true],
  ["[0 / 0].indexOf(0 / 0)", -1],
  ["[1, 2, 3].slice(-2, -1)", [2]],
  ["(1.005).toFixed(1)", "1.0"],
])("%s", (source, value) => {
  expect(evaluate(source)).toEqual(value);
});

test("a method is taken from the type of the value, whatever the value holds", () => {
  const traps = {
    item: Object.assign([1, 2], {
      includes: () => "taken from the value",
      slice: () => "taken from the value",
      constructor: () => "taken from the value",
    }),
    input: { includes: () => "taken from the value", toString: () => "taken from the value" },
  };

  expect(evaluate("item.includes(2)", traps)).toBe(true);
  expect(evaluate("item.slice(0, 1)", traps)).toEqual([1]);
  expect(thrownBy(() => evaluate("input.includes(2)", traps))).toMatchObject({
    code: "NO_SUCH_METHOD",
  });
  expect(thrownBy(() => evaluate("'a' + input", traps))).toMatchObject({ code: "NOT_JSON" });
});

test("arguments of a method on a missing value are not evaluated", () => {
  expect(evaluate("input.missing.includes('a'.repeat(1e9))")).toBeUndefined();
});
