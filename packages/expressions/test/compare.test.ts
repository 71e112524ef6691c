import { ok } from "node:assert/strict";
import fc from "fast-check";
import { expect, test } from "vitest";
import { implies, isContradiction, overlapOf, parseExpression } from "../src/index.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_260_103);

const subject = fc.constantFrom("input.x", "input.x", "input.x", "input.y");
const literal = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("1", "2", "3", "2.5", "-1") },
  { weight: 1, arbitrary: fc.constantFrom("'a'", "'2'", "true", "null", "undefined") },
);
const operator = fc.constantFrom("===", "!==", "<", "<=", ">", ">=");
const atom = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(subject, operator, literal).map((parts) => parts.join(" ")) },
  { weight: 2, arbitrary: fc.tuple(literal, operator, subject).map((parts) => parts.join(" ")) },
  { weight: 1, arbitrary: subject },
  { weight: 1, arbitrary: subject.map((each) => `!${each}`) },
);
const all = fc.array(atom, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(" && "));
const condition = fc
  .oneof(
    fc.array(all, { minLength: 1, maxLength: 1 }),
    fc.array(all, { minLength: 1, maxLength: 2 }),
  )
  .map((parts) => parts.join(" || "));

const values = [
  undefined,
  null,
  true,
  false,
  0,
  1,
  2,
  2.5,
  3,
  4,
  -1,
  -2,
  "",
  "a",
  "2",
  "b",
  [],
  [2],
  {},
];
const scopes = values.flatMap((x) => values.map((y) => ({ input: { x, y }, now: "" })));

test(`what is said of random conditions holds for all values (seed ${seed})`, () => {
  const said = { implied: 0, contradicted: 0, overlapping: 0 };
  fc.assert(
    fc.property(condition, condition, (left, right) => {
      const [first, second] = [parseExpression(left), parseExpression(right)];
      const holds = (each: typeof first, scope: (typeof scopes)[number]) =>
        Boolean(each.evaluate(scope));

      if (implies(first, second)) {
        said.implied += 1;
        ok(scopes.every((scope) => !holds(first, scope) || holds(second, scope)));
      }
      if (isContradiction(first)) {
        said.contradicted += 1;
        ok(scopes.every((scope) => !holds(first, scope)));
      }
      const both = overlapOf(first, second);
      if (both === undefined) return;
      said.overlapping += 1;
      const scope = { input: { x: both, y: both }, now: "" };
      expect([holds(first, scope), holds(second, scope)]).toEqual([true, true]);
    }),
    { seed, numRuns: 6_000 },
  );
  for (const times of Object.values(said)) expect(times).toBeGreaterThan(5);
}, 60_000);

test.each([
  ["input.n > 100", "input.n > 10", true],
  ["input.n > 10", "input.n > 100", false],
  ["input.n === 5", "input.n >= 5", true],
  ["input.s === 'a' && input.x", "input.s === 'a'", true],
  ["input.s === 'a'", "input.s === 'a' || input.x", true],
  ["input.s === 'a'", "input.s !== 'b'", true],
  ["input.s !== 'b'", "input.s === 'a'", false],
  ["size(input.list) > 3", "size(input.list) > 2", true],
])("%s implies %s: %s", (first, second, expected) => {
  expect(implies(parseExpression(first), parseExpression(second))).toBe(expected);
});

test.each([
  ["input.n <= 100", "input.n >= 100", 100],
  ["input.n < 100", "input.n >= 100", undefined],
  ["input.n > 5", "input.n < 6", undefined],
  ["input.n > 1000", "input.n > 100", undefined],
  ["input.n >= 0 && input.n < 10", "input.n > 5", 6],
  ["input.n > 5", "input.m < 10", undefined],
])("%s and %s overlap at %s", (first, second, expected) => {
  expect(overlapOf(parseExpression(first), parseExpression(second))).toBe(expected);
});
