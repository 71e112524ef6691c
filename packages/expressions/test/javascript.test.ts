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

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_260_101);

test(`20,000 random expressions give what JavaScript gives (seed ${seed})`, () => {
  const tally = new Map<string, number>();

  fc.assert(
    fc.property(expressions.expression, (source) => {
      const verdict = compare(source);
      tally.set(verdict, (tally.get(verdict) ?? 0) + 1);
    }),
    { seed, numRuns: 36_000 },
  );

  expect(tally.get("same value") ?? 0).toBeGreaterThan(20_000);
  expect([...tally.keys()].filter((verdict) => !verdicts.has(verdict))).toEqual([]);
}, 60_000);

test.each([
  ["a list or object as text is its JSON", "'a' + input.list", "a[3,1,2]", "a3,1,2"],
  ["an object as text is its JSON", "`${input.nested}`", '{"b":null}', "[object Object]"],
  ["a list or object as a number is NaN", "[5] * 2", Number.NaN, 10],
  ["a list or object has no order", "[5] > 3", false, true],
  ["a list or object equals no primitive", "[5] == 5", false, true],
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
  const theirs = evaluateAsJavaScript(source);
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

const spreadError = /not iterable|Symbol\.iterator|Spread syntax|\.\.\. in (?:a list|an object)/;

const data = deepFreeze({
  workflow: { input: { a: 1, name: "Order 66" }, instance: { state: { variables: { n: -2 } } } },
  input: { a: 1, b: 0, name: "ab,c", list: [3, 1, 2], nested: { b: null }, "": 7, 0: "zero" },
  variables: { n: 2.5, t: true, f: false, text: "  x ", digits: "12", list: ["a", "b", null] },
  steps: { first: { output: { rows: [{ id: 1 }, { id: 2 }] }, status: "COMPLETED" } },
});

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

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}

/** Sources, rather than trees, so that shrinking ends at something one can read. */
const expressions = fc.letrec<{
  expression: string;
  primitive: string;
  textual: string;
  list: string;
  any: string;
}>((tie) => {
  const { expression, primitive, textual, list, any } = {
    expression: tie("expression"),
    primitive: tie("primitive"),
    textual: tie("textual"),
    list: tie("list"),
    any: tie("any"),
  };
  const join = (...parts: (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> =>
    fc
      .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
      .map((texts) => texts.join(""));
  const position = fc.constantFrom("0", "1", "2", "-1", "-2", "1.5", "99", "undefined", "null");
  const key = fc.constantFrom("a", "b", "n", "name", "list", "nested", "missing", "length", "id");

  const literal = fc.constantFrom(
    "0", "1", "-1", "2.5", "1e21", "0.1", "-0", "42", "1_000", "0x1f", "''", "'a'", "'b'", "' '",
    "'12'", "'1e2'", "'ab,c'", "'é😀'", "true", "false", "null", "undefined", "`x`",
  ); // oxfmt-ignore
  const path = fc.constantFrom(
    "input?.a", "input?.b", "input?.name", "input?.missing", "input?.missing?.deeper",
    "input?.nested?.b", "variables?.n", "variables?.t", "variables?.f", "variables?.text",
    "variables?.digits", "workflow?.input?.a", "workflow?.instance?.state?.variables?.n",
    "steps?.first?.status", "steps?.first?.output?.rows?.[1]?.id", "steps?.['first']?.error",
    "input?.['']", "input?.[0]",
  ); // oxfmt-ignore
  // Mostly of the type that has the methods, sometimes of another.
  const word = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("''", "'a'", "' b '", "'a-b-a'", "'é😀'") },
    { weight: 3, arbitrary: fc.constantFrom("input?.name", "variables?.text", "input?.missing") },
    { weight: 3, arbitrary: textual },
    { weight: 1, arbitrary: any },
  );
  const number = fc.constantFrom("1", "2.5", "variables?.n", "input?.a", "(1 / 3)", "1e21", "''");
  const arithmetic = fc.constantFrom("+", "-", "*", "/", "%");
  const comparison = fc.constantFrom("===", "!==", "==", "!=", "<", "<=", ">", ">=");
  const logical = fc.constantFrom("&&", "||", "??");

  return {
    expression: fc.oneof({ maxDepth: 4, depthSize: "small" }, primitive, any, list),
    any: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      { weight: 4, arbitrary: primitive },
      list,
      fc.constantFrom("input", "input?.nested", "steps?.first", "variables"),
      join("({ a: ", expression, ", 'b': ", expression, ", 3: ", primitive, " })"),
      join("({ ...", any, ", [", primitive, "]: ", expression, " })"),
      join("(", any, ")?.", key),
      join("(", any, ")?.[", primitive, "]"),
    ),
    primitive: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      { weight: 3, arbitrary: literal },
      { weight: 3, arbitrary: path },
      join("(", primitive, " ", arithmetic, " ", primitive, ")"),
      join("(", primitive, " ", comparison, " ", primitive, ")"),
      join("(", any, " ", comparison, " ", any, ")"),
      join("(", any, " ", arithmetic, " ", primitive, ")"),
      join("((", primitive, ") ", logical, " (", primitive, "))"),
      join("((", any, ") ", logical, " (", any, "))"),
      join("(", any, " ? ", primitive, " : ", primitive, ")"),
      join("(", primitive, " in ", any, ")"),
      join("(!", any, ")"),
      join("(-(", primitive, "))"),
      join("(+(", primitive, "))"),
      join("`<${", primitive, "}-${", primitive, "}>`"),
      textual,
      join(list, "?.", fc.constantFrom("includes", "indexOf"), "(", any, ")"),
      join(list, "?.", fc.constantFrom("lastIndexOf", "includes"), "(", primitive, ", 1)"),
      join(list, "?.join(", primitive, ")"),
      join("(", list, ")?.length"),
    ),
    textual: fc.oneof(
      join("(", word, ")?.", fc.constantFrom("toLowerCase", "toUpperCase", "trim"), "()"),
      join("(", word, ")?.", fc.constantFrom("trimStart", "trimEnd"), "()"),
      join("(", word, ")?.", fc.constantFrom("at", "charAt", "charCodeAt"), "(", position, ")"),
      join("(", word, ")?.codePointAt(", position, ")"),
      join("(", word, ")?.", fc.constantFrom("slice", "substring"), "(", position, ")"),
      join("(", word, ")?.slice(", position, ", ", position, ")"),
      join("(", word, ")?.substring(", position, ", ", position, ")"),
      join("(", word, ")?.", fc.constantFrom("includes", "indexOf"), "(", primitive, ")"),
      join("(", word, ")?.", fc.constantFrom("startsWith", "endsWith"), "(", primitive, ")"),
      join("(", word, ")?.startsWith(", primitive, ", ", position, ")"),
      join("(", word, ")?.endsWith(", primitive, ", ", position, ")"),
      join("(", word, ")?.includes(", primitive, ", ", position, ")"),
      join("(", word, ")?.lastIndexOf(", primitive, ")"),
      join("(", textual, ")?.lastIndexOf('a', ", position, ")"),
      join("(", word, ")?.", fc.constantFrom("padStart", "padEnd"), "(", position, ")"),
      join("(", word, ")?.padStart(5, ", primitive, ")"),
      join("(", word, ")?.repeat(", position, ")"),
      join("(", word, ")?.replaceAll(", primitive, ", ", primitive, ")"),
      join("(", word, ")?.replace(", primitive, ", ", primitive, ")"),
      join("(", word, ")?.concat(", primitive, ", ", primitive, ")"),
      join("(", number, ")?.toFixed(", position, ")"),
    ),
    list: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      { weight: 2, arbitrary: fc.constantFrom("input?.list", "variables?.list", "[]") },
      join("[", any, ", ", any, "]"),
      join("[...", list, ", ", any, "]"),
      join("[...", any, "]"),
      join("(", list, ")?.slice(", position, ", ", position, ")"),
      join("(", list, ")?.concat(", any, ", ", any, ")"),
      join("(", list, ")?.flat(", position, ")"),
      join("(", list, ")?.toReversed()"),
      join("(", word, ")?.split(", primitive, ")"),
      join("(", textual, ")?.split(", primitive, ", ", position, ")"),
    ),
  };
});
