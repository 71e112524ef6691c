import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { problemList } from "../../engine/src/definition/problem.ts";
import { checkSchemaFits } from "../../engine/src/definition/schema-fits.ts";
import { compileInputSchema } from "../src/input-schema.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_261_128);

/** An overflow of the stack takes its time. */
const runs = Number(process.env["MODEL_RUNS"] ?? 60);

function refusalsOf(schema: unknown): readonly string[] {
  const list = problemList([]);
  checkSchemaFits(schema, list);
  return list.problems.map(({ path }) => path.slice("/inputSchema".length));
}

const references = ["#", "#/$defs/a", "#/$defs/b"];
const types = ["null", "boolean", "number", "integer", "string", "array", "object"];
const named = fc.constantFrom<unknown>(1, "x", null, { k: 1 });
/** Of each type one that no schema names, and those that they do. */
const probes = [null, true, false, 0, 1, 1.5, "", "x", [], [0], {}, { k: 1 }, { m: 0 }];

/** Schemas of the keywords that apply schemas to the same value: what else there is only depends on its type. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const some = fc.array(tie("schema"), { minLength: 1, maxLength: 3 });
  const of = (key: string, value: fc.Arbitrary<unknown>) =>
    value.map((each) => [key, each] as const);
  const keyword = fc.oneof(
    { weight: 4, arbitrary: of("$ref", fc.constantFrom(...references)) },
    { weight: 2, arbitrary: of("type", fc.constantFrom(...types)) },
    of("const", named),
    of("enum", fc.uniqueArray(named, { minLength: 1, maxLength: 2, selector: JSON.stringify })),
    of("anyOf", some),
    of("oneOf", some),
    of("allOf", some),
    of("not", tie("schema")),
    of("if", tie("schema")),
    of("then", tie("schema")),
    of("else", tie("schema")),
  );
  return {
    schema: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      fc.constantFrom<unknown>(true, {}, { type: "string" }, { $ref: "#" }, false),
      {
        weight: 6,
        arbitrary: fc.array(keyword, { minLength: 1, maxLength: 4 }).map(Object.fromEntries),
      },
    ),
  };
});

/** Schemas of the keywords that say more of a value than its type, of which not all is worked out. */
const { narrow } = fc.letrec<{ narrow: unknown }>((tie) => {
  const number = fc.constantFrom(-1, 0, 0.5, 1, 1.4, 1.5, 2, 3);
  const size = fc.constantFrom(0, 1, 2);
  const some = fc.array(tie("narrow"), { minLength: 1, maxLength: 2 });
  const values = fc.subarray<unknown>([1, 1.5, "x", "xy", null], { minLength: 1, maxLength: 3 });
  const of = (key: string, value: fc.Arbitrary<unknown>) =>
    value.map((each) => [key, each] as const);
  const keyword = fc.oneof(
    { weight: 2, arbitrary: of("type", fc.constantFrom(...types)) },
    { weight: 2, arbitrary: of("enum", values) },
    { weight: 2, arbitrary: of("required", fc.subarray(["m", "k"], { minLength: 1 })) },
    of("properties", fc.record({ m: tie("narrow"), k: tie("narrow") }, { requiredKeys: [] })),
    of("additionalProperties", tie("narrow")),
    of("pattern", fc.constantFrom("^x$", "y", "^(x|z)", "^[a-w]+$", String.raw`\d|x*`, "(x+)+y")),
    of("multipleOf", fc.constantFrom(0.5, 0.1, 2, 3)),
    ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((key) => of(key, number)),
    ...["minItems", "maxItems", "minContains"].map((key) => of(key, size)),
    of("items", tie("narrow")),
    of("prefixItems", some),
    of("contains", tie("narrow")),
    of("anyOf", some),
    of("not", tie("narrow")),
  );
  return {
    narrow: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      fc.constantFrom<unknown>(true, false, { $ref: "#" }, { $ref: "#/$defs/a" }),
      {
        weight: 6,
        arbitrary: fc.array(keyword, { minLength: 1, maxLength: 4 }).map(Object.fromEntries),
      },
    ),
  };
});

const whole = fc.tuple(schema, schema, schema).map(([root, a, b]) => ({
  ...(typeof root === "object" ? root : { not: root === false ? {} : false }),
  $defs: { a, b },
}));

function compiled(inputSchema: unknown) {
  try {
    return compileInputSchema({ inputSchema });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

test(`a random schema is refused where no value passes it, and only there (seed ${seed})`, () => {
  let refused = 0;
  let endless = 0;
  fc.assert(
    fc.property(whole, (inputSchema) => {
      const check = compiled(inputSchema);
      // A reference to itself alone is no schema.
      if (check === undefined) return;
      const answers = probes.map((probe) => check(probe));
      const passes = answers.some((problems) => problems.length === 0);
      const isRefused = refusalsOf(inputSchema).length > 0;
      if (isRefused) refused += 1;
      if (answers.every(([first]) => first?.code === "TOO_DEEP")) endless += 1;
      expect(isRefused).toBe(!passes);
    }),
    { seed, numRuns: runs },
  );
  expect(refused).toBeGreaterThan(runs / 10);
  expect(endless).toBeGreaterThan(runs / 20);
}, 300_000);

test(`of a random schema that is refused for more than its types no value passes (seed ${seed})`, () => {
  const inner = [null, true, "x", "xy", "z", "y7", -1, 0, 0.5, 1, 1.4, 1.5, 2, 3, 6, [], {}];
  const inside = [
    ...inner,
    ...inner.flatMap((value) => [[value], { m: value }, { k: value, m: value }]),
  ];
  const values = [
    ...inside,
    ...inside.flatMap((value) => [[value], [value, value], { m: value }, { k: value }]),
  ];
  let refused = 0;
  fc.assert(
    fc.property(fc.tuple(narrow, narrow), ([root, a]) => {
      const inputSchema = { allOf: [root], $defs: { a } };
      if (refusalsOf(inputSchema).length === 0) return;
      const check = compiled(inputSchema);
      // What has no end is the other test's.
      if (check === undefined || check(null)[0]?.code === "TOO_DEEP") return;
      refused += 1;
      expect(values.filter((value) => check(value).length === 0)).toEqual([]);
    }),
    { seed, numRuns: runs * 3 },
  );
  expect(refused).toBeGreaterThan(runs / 10);
}, 300_000);

describe("a schema that no input passes for", () => {
  test.for<[string, object]>([
    ["a pattern that its constant does not match", { const: "x", pattern: "^y" }],
    ["a pattern that no choice matches", { enum: ["a", "b"], pattern: "^(c|d)$" }],
    ["a factor of none of its choices", { enum: [1, 2], multipleOf: 3 }],
    [
      "a factor of none between its bounds",
      { type: "number", minimum: 4, maximum: 5, multipleOf: 3 },
    ],
    ["a factor of no whole number", { type: "integer", minimum: 1, maximum: 2, multipleOf: 1.5 }],
    ["bounds with no whole number between", { type: "integer", exclusiveMinimum: 1, maximum: 1.9 }],
    ["an element that must be, and cannot", { type: "array", minItems: 1, items: false }],
    ["a first element that cannot be", { type: "array", minItems: 1, prefixItems: [{ enum: [] }] }],
    ["an element that it must contain", { type: "array", contains: { type: "null", const: 1 } }],
    [
      "a member like the whole",
      { type: "object", required: ["a"], properties: { a: { $ref: "#" } } },
    ],
    ["an element like the whole", { type: "array", minItems: 1, items: { $ref: "#" } }],
  ])("%s is refused", ([, inputSchema]) => {
    expect(refusalsOf(inputSchema)).toHaveLength(1);
  });

  test.for<[string, object]>([
    ["a pattern of a text that is not named", { type: "string", pattern: "^x" }],
    ["a pattern that takes long", { const: "x".repeat(90), pattern: "^(x+)+y$" }],
    ["a factor within the precision of the check", { const: 19.99, multipleOf: 0.01 }],
    ["elements that need not be", { type: "array", items: false }],
    ["an element that it need not contain", { type: "array", contains: false, minContains: 0 }],
    [
      "a member like the whole, or null",
      { type: ["object", "null"], required: ["a"], properties: { a: { $ref: "#" } } },
    ],
  ])("%s is not", ([, inputSchema]) => {
    expect(refusalsOf(inputSchema)).toEqual([]);
  });
});
