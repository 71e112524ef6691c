import { ok } from "node:assert/strict";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ExpressionError,
  failuresOf,
  limits,
  parseExpression,
  parseTemplate,
} from "../src/index.ts";
import type { Json } from "../src/index.ts";
import { data, expressions } from "./arbitraries.ts";

function failures(source: string, work = 1_000) {
  return failuresOf(parseExpression(source), work).map(({ code, offset }) => [code, offset]);
}

test.each([
  ["parseJson('oops') === input.x", 0],
  ["input.x + parseJson('oops')", 10],
  ["[input.x, parseJson('oops')]", 10],
  ["({ a: input.x, b: parseJson('oops') })", 18],
  ["`${ input.x } ${ parseJson('oops') }`", 17],
  ["merge(input.x, parseJson('oops'))", 15],
  ["parseJson('oops') ? input.x : 1", 0],
  ["parseJson('oops') && input.x", 0],
  ["(parseJson('oops')).a[input.x]", 1],
  ["!parseJson('oops') || input.x", 1],
])("%s fails each time", (source, offset) => {
  expect(failures(source)).toEqual([["BAD_ARGUMENT", offset]]);
});

test.each([
  "input.x && parseJson('oops')",
  "input.x || parseJson('oops')",
  "input.x ?? parseJson('oops')",
  "input.x ? parseJson('oops') : 1",
  "input.x ? 1 : parseJson('oops')",
  "input.list[parseJson('oops')]",
  "input.list.includes(parseJson('oops'))",
  "false && parseJson('oops') || input.x",
  "parseJson(input.x)",
  "parseJson(now())",
  "'fine' + input.x",
])("%s may do well", (source) => {
  expect(failures(source)).toEqual([]);
});

test("of a template each expression that fails is found, and what its value becomes counts", () => {
  const value: Json = {
    text: "a ${ parseJson('oops') } ${ input.x }",
    list: ["${ 1 / 0 }", "${ input.x }"],
    fine: "${ 1 / 0 } is text",
    "$l/": { $literal: "${ 1 / 0 }" },
  };

  const found = failuresOf(parseTemplate(value), 1_000);

  expect(found.map(({ pointer, code }) => [pointer, code])).toEqual([
    ["/text", "BAD_ARGUMENT"],
    ["/list/0", "NOT_JSON"],
  ]);
});

test("what would cost much is not found out", () => {
  const source = "input.x + size(range(90000)) + parseJson('oops')";

  expect(failures(source)).toEqual([]);
  expect(failures(source, limits.work)).toHaveLength(1);
});

/** Places in which a part that fails is evaluated, or is at times. */
const around = fc.constantFrom(
  (one: string, other: string) => `(${one}) ? (${other}) : parseJson('oops')`,
  (one: string, other: string) => `[${one}, parseJson('oops') && (${other})]`,
  (one: string, other: string) => `(${one}) && parseJson('oops') || (${other})`,
  (one: string, other: string) => `(${one}) === (${other} ? 1 : parseJson('oops'))`,
);

test("whatever is said to fail each time fails with any values", () => {
  let seen = 0;
  fc.assert(
    fc.property(expressions.any, expressions.any, around, (one, other, place) => {
      const source = place(one, other);
      const expression = parseExpression(source);
      if (failuresOf(expression, limits.work).length === 0) return;
      seen += 1;
      for (const scope of [data, {}]) {
        let thrown: unknown;
        try {
          expression.evaluate({ now: "2026-01-01T00:00:00.000Z", ...scope });
        } catch (error) {
          thrown = error;
        }
        ok(thrown instanceof ExpressionError, source);
      }
    }),
    { numRuns: 300 },
  );
  expect(seen).toBeGreaterThan(0);
});
