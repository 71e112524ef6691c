/**
 * Random expressions against JavaScript itself. `?.` is written for every access, since a missing
 * value reads as it would with `?.`.
 *
 * Run with another seed: MILLRACE_SEED=7 npx vitest run --project unit packages/expressions
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ExpressionError, parseExpression } from "../src/index.ts";
import type { Scope } from "../src/index.ts";
import { data, expressions } from "./arbitraries.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_260_101);

test(`5,000 random expressions give what JavaScript gives (seed ${seed})`, () => {
  const tally = new Map<string, number>();

  fc.assert(
    fc.property(expressions.expression, (source) => {
      const verdict = compare(source);
      tally.set(verdict, (tally.get(verdict) ?? 0) + 1);
    }),
    { seed, numRuns: 9_000 },
  );

  expect(tally.get("same value") ?? 0).toBeGreaterThan(5_000);
  expect([...tally.keys()].filter((verdict) => !verdicts.has(verdict))).toEqual([]);
}, 60_000);

test.each([
  ["a list or object as text is its JSON", "'a' + input.list", "a[3,1,2]", "a3,1,2"],
  ["an object as text is its JSON", "`${input.nested}`", '{"b":null}', "[object Object]"],
  ["a list or object as a number is NaN", "[5] * 2", Number.NaN, 10],
  ["a list or object has no order", "[5] > 3", false, true],
  ["a list or object equals no primitive", "[5] == 5", false, true],
  [
    "a list or object equals nothing, itself included",
    "input.nested === input.nested",
    false,
    true,
  ],
  ["a list or object is in no list", "[input.nested].includes(input.nested)", false, true],
  ["a list or object is nowhere in a list", "[input.nested].indexOf(input.nested)", -1, 0],
  ["nor from the end", "[input.nested].lastIndexOf(input.nested)", -1, 0],
  ["a list or object is nobody's key", "input?.[['a']]", undefined, 1],
  ["`in` without an object is false", "'a' in 5", false, "TypeError"],
  ["spreading a missing list adds nothing", "[...undefined]", [], "TypeError"],
  ["spreading a text into a list is an error", "[...'ab']", "ExpressionError", ["a", "b"]],
  ["spreading a list into an object is an error", "({ ...[1] })", "ExpressionError", { 0: 1 }],
  ["`$` means nothing in a replacement", "'abc'.replace('b', '$&$&')", "a$&$&c", "abbc"],
  ["an undefined start of a search is none", "[1, 2].lastIndexOf(2, undefined)", 1, -1],
])("differs from JavaScript on purpose: %s", (_name, source, ours, theirs) => {
  const values = [evaluate(source), evaluateAsJavaScript(source).value];

  expect(values.map(nameOfError)).toEqual([ours, theirs]);
});

function nameOfError(value: unknown): unknown {
  return value instanceof Error ? value.name : value;
}

/** What a comparison may find. Anything else is a failure of the test. */
const verdicts = new Set([
  "same value",
  "both fail",
  // The differences that the cases above name.
  "a list or object became a primitive",
  "`in` without an object",
  "spread of another type",
]);

function compare(source: string): string {
  conversions = 0;
  const ours = evaluate(source);
  if (conversions > 0) throw new Error(`${source} asked a value to become a primitive`);
  // As if each value were read from the store where it is named: no list or object is another one.
  const theirs = evaluateAsJavaScript(source.replaceAll(namesOfRoots, "structuredClone($&)"));
  if (ours instanceof Error && theirs.value instanceof Error) return "both fail";
  if (isSame(ours, theirs.value)) return "same value";
  if (theirs.coerced) return "a list or object became a primitive";
  const message = theirs.value instanceof Error ? theirs.value.message : "";
  if (message.includes("'in' operator")) return "`in` without an object";
  if (source.includes("...") && spreadError.test(`${message}${String(ours)}`)) {
    return "spread of another type";
  }
  throw new Error(
    `${source}\n  is ${JSON.stringify(ours)} (${String(ours)})\n  JavaScript: ${JSON.stringify(theirs.value)} (${String(theirs.value)})`,
  );
}

const namesOfRoots = new RegExp(`(?<![.\\w])(?:${Object.keys(data).join("|")})\\b`, "g");

const spreadError = /not iterable|Symbol\.iterator|Spread syntax|\.\.\. in (?:a list|an object)/;

function evaluate(source: string): unknown {
  const scope: Scope = { now: "2026-01-01T00:00:00.000Z", ...data };
  try {
    return parseExpression(source).evaluate(scope);
  } catch (error) {
    if (error instanceof ExpressionError) return error;
    throw error;
  }
}

/** Evaluates as JavaScript; says whether a list or object became a primitive on the way. */
function evaluateAsJavaScript(source: string): { value: unknown; coerced: boolean } {
  // oxlint-disable-next-line typescript/no-implied-eval -- JavaScript is what the test compares with
  const run = new Function(...Object.keys(data), `"use strict"; return (${source});`) as (
    ...values: unknown[]
  ) => unknown;
  conversions = 0;
  try {
    return { value: run(...Object.values(data)), coerced: conversions > 0 };
  } catch (error) {
    return { value: error, coerced: conversions > 0 };
  }
}

/** How often a list or object was asked to become a primitive. */
let conversions = 0;

let restore: (() => void)[] = [];

beforeAll(() => {
  const count = () => conversions++;
  restore = [
    watch(Object.prototype, "valueOf", count),
    watch(Object.prototype, "toString", count),
    watch(Array.prototype, "toString", count),
  ];
});

afterAll(() => {
  for (const undo of restore) undo();
});

function watch(target: object, name: string, onCall: () => void): () => void {
  const original = Object.getOwnPropertyDescriptor(target, name) as PropertyDescriptor;
  const method = original.value as (this: unknown) => unknown;
  Object.defineProperty(target, name, {
    ...original,
    value(this: unknown) {
      onCall();
      return method.call(this);
    },
  });
  return () => Object.defineProperty(target, name, original);
}

function isSame(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object") return false;
  if (left === null || right === null || Array.isArray(left) !== Array.isArray(right)) return false;
  if (left instanceof Error || right instanceof Error) return false;
  const [first, second] = [Object.entries(left), Object.entries(right)];
  return (
    first.length === second.length &&
    first.every(([key, value], at) => key === second[at]?.[0] && isSame(value, second[at][1]))
  );
}
