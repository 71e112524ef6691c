import { expect, test } from "vitest";
import { checkOfStored, compileInputSchema, faultsOfInputSchema } from "../src/index.ts";

const fork = (level: number) => ({ $ref: `#/$defs/d${level}` });
const forks = Object.fromEntries(
  Array.from({ length: 40 }, (_, level) => [
    `d${level + 1}`,
    { anyOf: [fork(level), fork(level)] },
  ]),
);

test.each<[string, object, unknown, string]>([
  ["a pattern that backtracks", { pattern: "^(a+)+$" }, `${"a".repeat(50)}b`, "TOO_COSTLY"],
  [
    "a pattern of much that may be missing",
    { pattern: `^${"(a?)?".repeat(40)}bbb$` },
    "a".repeat(50),
    "TOO_COSTLY",
  ],
  [
    "a pattern of names that backtracks",
    { patternProperties: { "^(a|a)*$": {} } },
    { [`${"a".repeat(50)}b`]: 1 },
    "TOO_COSTLY",
  ],
  [
    "references that branch",
    { $defs: { d0: { type: "string" }, ...forks }, ...fork(40) },
    1,
    "TOO_COSTLY",
  ],
  ["a reference to itself", { $ref: "#" }, 1, "TOO_DEEP"],
])("a check with %s ends", (_, inputSchema, input, code) => {
  const check = compileInputSchema({ inputSchema });

  expect(check(input)).toMatchObject([{ path: "/input", code }]);
});

test("schemas with patterns and references still say what is wrong", () => {
  const check = compileInputSchema({
    inputSchema: {
      type: "object",
      properties: { id: { pattern: "^[a-z]+$" }, next: { $ref: "#" } },
      required: ["id"],
    },
  });

  expect(check({ id: "a", next: { id: "b" } })).toEqual([]);
  expect(check({ id: "A", next: {} }).map(({ path, code }) => [path, code])).toEqual([
    ["/input/id", "pattern"],
    ["/input/next", "required"],
  ]);
});

test("a decimal amount is a multiple of a cent, and inherited members are none of the input", () => {
  const check = compileInputSchema({
    inputSchema: { required: ["toString"], properties: { amount: { multipleOf: 0.01 } } },
  });

  expect(check({ amount: 19.99 }).map(({ code }) => code)).toEqual(["required"]);
  expect(check({ amount: 19.995, toString: 1 }).map(({ code }) => code)).toEqual(["multipleOf"]);
});

test("of very many violations the first are listed, and how many there are besides", () => {
  const check = compileInputSchema({ inputSchema: { items: { type: "string" } } });

  const problems = check(Array(5_000).fill(1));

  expect(problems).toHaveLength(1_001);
  expect(problems.at(-1)?.message).toBe("and 4000 more violations");
});

test("where Ajv itself breaks while it gathers all errors, the first one is told", () => {
  const check = compileInputSchema({
    inputSchema: {
      anyOf: [{ additionalProperties: false }, false],
      patternProperties: { "^m": {} },
    },
  });

  expect(check({})).toEqual([]);
  expect(check({ m: 1 })[0]).toMatchObject({ path: "/input", code: "additionalProperties" });
});

test("a schema with $async is refused, and one that is stored is checked like any other", () => {
  const inputSchema = { $async: true, type: "object", required: ["a"] };

  expect(faultsOfInputSchema({ inputSchema }, [])).toMatchObject([
    { path: "/inputSchema/$async", code: "BAD_SCHEMA" },
  ]);
  const check = compileInputSchema({ inputSchema });
  expect(check({ b: 1 })).toMatchObject([{ path: "/input", code: "required" }]);
  expect(check({ a: 1 })).toEqual([]);
});

test.each<[string, object, string, string]>([
  ["a pattern", { pattern: "a?".repeat(300) }, "/inputSchema/pattern", "PATTERN_TOO_COSTLY"],
  ["its size", { enum: Array.from({ length: 6_000 }).fill(1) }, "/inputSchema", "SCHEMA_TOO_LARGE"],
  ["what is no schema", { $ref: "#/none" }, "/inputSchema", "BAD_SCHEMA"],
])("one that is stored, and refused now for %s, is not compiled", (_, inputSchema, path, code) => {
  const check = checkOfStored({ inputSchema });

  // Compiling the first takes longer than the test may.
  expect(check("a")).toMatchObject([{ path, code }]);
});
