import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { problemList } from "../../engine/src/definition/problem.ts";
import { checkSchemaFits } from "../../engine/src/definition/schema/fits.ts";
import { compileInputSchema, formats } from "../src/index.ts";
import { lackOfInput } from "../src/known-input.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_261_128);

/** An overflow of the stack takes its time. */
const runs = Number(process.env["MODEL_RUNS"] ?? 30);

function refusalsOf(schema: unknown): readonly string[] {
  const list = problemList([]);
  checkSchemaFits(schema, list, formats);
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
  const values = fc.subarray<unknown>(
    [
      1,
      1.5,
      "x",
      "xy",
      null,
      "2026-11-29",
      {},
      { m: "x" },
      { k: 1, m: null },
      [],
      [1, "x"],
      ["x", "x"],
    ],
    { minLength: 1, maxLength: 3 },
  );
  const names = fc.constantFrom("m", "k");
  const of = (key: string, value: fc.Arbitrary<unknown>) =>
    value.map((each) => [key, each] as const);
  const keyword = fc.oneof(
    { weight: 2, arbitrary: of("type", fc.constantFrom(...types)) },
    { weight: 2, arbitrary: of("enum", values) },
    { weight: 2, arbitrary: of("required", fc.subarray(["m", "k"], { minLength: 1 })) },
    of("properties", fc.record({ m: tie("narrow"), k: tie("narrow") }, { requiredKeys: [] })),
    of("additionalProperties", tie("narrow")),
    of("pattern", fc.constantFrom("^x$", "y", "^(x|z)", "^[a-w]+$", String.raw`\d|x*`, "(x+)+y")),
    of("format", fc.constantFrom("date", "uuid", "ipv4", "int32", "int64", "float", "unheard-of")),
    of("multipleOf", fc.constantFrom(0.5, 0.1, 2, 3)),
    ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((key) => of(key, number)),
    ...["minItems", "maxItems", "minContains", "maxContains"].map((key) => of(key, size)),
    ...["minProperties", "maxProperties", "minLength", "maxLength"].map((key) => of(key, size)),
    of("uniqueItems", fc.boolean()),
    of("propertyNames", tie("narrow")),
    of(
      "patternProperties",
      fc.dictionary(fc.constantFrom("^m", "k$", "(a+)+"), tie("narrow"), { maxKeys: 2 }),
    ),
    of("dependentRequired", fc.dictionary(names, fc.subarray(["m", "k"]), { maxKeys: 1 })),
    of("dependentSchemas", fc.dictionary(names, tie("narrow"), { maxKeys: 1 })),
    of("allOf", some),
    of("items", tie("narrow")),
    of("prefixItems", some),
    of("contains", tie("narrow")),
    { weight: 2, arbitrary: of("anyOf", some) },
    { weight: 2, arbitrary: of("not", tie("narrow")) },
    of("oneOf", some),
    of("if", tie("narrow")),
    of("then", tie("narrow")),
    of("else", tie("narrow")),
    of("unevaluatedProperties", tie("narrow")),
    of("unevaluatedItems", tie("narrow")),
    of("dependencies", fc.dictionary(names, fc.oneof(tie("narrow"), fc.subarray(["m", "k"])))),
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

test(`of a random schema no value passes where it is refused, and where one does an input is found (seed ${seed})`, () => {
  const inner = [
    null,
    true,
    false,
    "",
    "x",
    "xy",
    "z",
    "y7",
    "2026-11-29",
    -1,
    0,
    0.5,
    1,
    1.4,
    1.5,
    2,
    3,
    6,
    [],
    {},
  ];
  const inside = [
    ...inner,
    ...inner.flatMap((value) => [
      [value],
      [value, "x"],
      [1, value],
      { m: value },
      { k: 1, m: value },
      { k: value, m: value },
    ]),
  ];
  const values = [
    ...inside,
    ...inside.flatMap((value) => [[value], [value, value], { m: value }, { k: value }]),
  ];
  let refused = 0;
  let passed = 0;
  let missed = 0;
  fc.assert(
    fc.property(fc.tuple(narrow, narrow), ([root, a]) => {
      const inputSchema = { allOf: [root], $defs: { a } };
      const check = compiled(inputSchema);
      // What has no end is the other test's.
      if (check === undefined || check(null)[0]?.code === "TOO_DEEP") return;
      const passing = values.find((value) => check(value).length === 0);
      const isRefused = refusalsOf(inputSchema).length > 0;
      if (isRefused) refused += 1;
      expect(isRefused ? passing : undefined).toBeUndefined();
      if (isRefused || passing === undefined) return;
      passed += 1;
      missed += lackOfInput(inputSchema, check) === undefined ? 0 : 1;
    }),
    { seed, numRuns: runs * 6 },
  );
  expect(refused).toBeGreaterThan(runs / 10);
  expect(passed).toBeGreaterThan(runs);
  expect(missed).toBeLessThanOrEqual(passed / 200);
}, 300_000);

test.for([
  ["date", "2024-02-29", "2000-02-29", "0000-02-29", "9999-12-31"],
  ["time", "23:59:60Z", "00:59:60+01:00", "24:59:30+01:00", "10:00:00.123-0530", "10:00:00+01"],
  ["iso-time", "23:59:60", "10:00:00"],
  ["date-time", "2024-02-29T10:00:00Z", "2024-02-29 10:00:00z", "2016-12-31t23:59:60.5Z"],
  ["iso-date-time", "2024-02-29T10:00:00", "2024-02-29\u00a010:00:00+02:00"],
  ["duration", "P1Y2M3DT4H5M6S", "P3W", "PT1S"],
  ["uri", "a:b:c", "http://[::1]:80/x?y#z", "URN:x"],
  ["uri-reference", "", "#a", "//x/%20"],
  ["url", "https://example.org/a?b", "ftp://a.bc", "http://\u00e4.de"],
  ["uri-template", "", "/{a,b*}/{+c}", "\u00e4\ud83d\ude00{a:3}"],
  ["email", "A.b+c@x.Y"],
  ["hostname", "a", "A-1.b.", `${"a".repeat(63)}.x`],
  ["ipv4", "0.0.0.0", "255.255.255.255"],
  ["ipv6", "::", "::FFFF:1.2.3.4", "1:2:3:4:5:6:7:8"],
  ["uuid", "urn:uuid:00000000-0000-0000-0000-00000000ABCD"],
  ["json-pointer", "", "/a~0/\ud83d\ude00"],
  ["relative-json-pointer", "0#", "1/a"],
  ["json-pointer-uri-fragment", "#", "#/A%20"],
  ["byte", "", "YQ==", "\n "],
  ["regex", "^a"],
] as const)(
  "what is taken for a text of the format %s includes those that are",
  ([format, ...texts]) => {
    const found = formats.patternOf(format);
    const all = new RegExp(found?.pattern ?? "", found?.ignoreCase === true ? "iu" : "u");

    expect(texts.filter((text) => formats.has({ format, limits: {} }, text) !== true)).toEqual([]);
    expect(texts.filter((text) => !all.test(text))).toEqual([]);
  },
);

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
    [
      "more members than there are names",
      { type: "object", minProperties: 2, propertyNames: { enum: ["a"] } },
    ],
    [
      "a member that must be two things",
      {
        type: "object",
        required: ["a"],
        properties: { a: { type: "string" } },
        patternProperties: { "^a": { type: "number" } },
      },
    ],
    [
      "an element that must be two things",
      { type: "array", items: { type: "string" }, contains: { type: "number" } },
    ],
    [
      "a member where the only one cannot be",
      { type: "object", minProperties: 1, additionalProperties: false, properties: { a: false } },
    ],
    ["a format that its constant has not", { const: "x", format: "date" }],
    ["a format that no choice has", { enum: ["x", "2026-02-30"], type: "string", format: "date" }],
    ["a format that is longer", { type: "string", format: "date", maxLength: 9 }],
    ["a format of whole numbers alone", { enum: [0.5, 2 ** 31], format: "int32" }],
    ["a format that ends before", { type: "number", format: "int32", minimum: 2 ** 31 }],
    [
      "a constant with a member of another type",
      { const: { a: 1 }, properties: { a: { type: "string" } } },
    ],
    ["a constant without a member", { const: { a: 1 }, required: ["b"] }],
    ["a constant with a member too many", { const: { a: 1 }, additionalProperties: false }],
    ["a constant with an element of another type", { const: [1], items: { type: "string" } }],
    ["a constant that does not contain it", { const: [1, 2], contains: { const: 3 } }],
    ["a constant with the same twice", { const: [1, { a: 1 }, { a: 1 }], uniqueItems: true }],
    ["more members than there may be", { type: "object", required: ["a", "b"], maxProperties: 1 }],
    [
      "fewer members than there must be",
      { type: "object", properties: { a: {} }, additionalProperties: false, minProperties: 2 },
    ],
    [
      "a member whose name may not be",
      { type: "object", required: ["a"], propertyNames: { minLength: 2 } },
    ],
    [
      "a member that another one asks for, and cannot be",
      {
        type: "object",
        required: ["a"],
        dependentRequired: { a: ["b"] },
        properties: { b: false },
      },
    ],
    [
      "a member that asks for what cannot be",
      { type: "object", required: ["a"], dependentSchemas: { a: { type: "array" } } },
    ],
    [
      "a member that a pattern rules out",
      { type: "object", required: ["ab"], patternProperties: { "^a": false } },
    ],
    [
      "more of a kind than there may be",
      { type: "array", contains: {}, minContains: 2, maxItems: 1 },
    ],
    [
      "more of a kind than there may be of it",
      { type: "array", contains: { type: "null" }, minContains: 2, maxContains: 1 },
    ],
    [
      "more different elements than there are",
      { type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 3 },
    ],
    [
      "a constant before the first of its format",
      { const: "2026-01-01", format: "date", formatMinimum: "2026-01-02" },
    ],
    [
      "no day between",
      {
        type: "string",
        format: "date",
        formatExclusiveMinimum: "2026-02-28",
        formatMaximum: "2026-02-29",
      },
    ],
    [
      "a member that must be two things, by schemas of the whole",
      {
        allOf: [
          { type: "object", required: ["a"], properties: { a: { type: "string" } } },
          { properties: { a: { type: "number" } } },
        ],
      },
    ],
    [
      "a member that a reference has otherwise",
      {
        type: "object",
        required: ["a"],
        properties: { a: { maxLength: 3, type: "string" } },
        $ref: "#/$defs/b",
        $defs: { b: { properties: { a: { minLength: 4 } } } },
      },
    ],
    [
      "elements that must be two things",
      {
        type: "array",
        minItems: 1,
        allOf: [{ items: { type: "string" } }, { items: { type: "number" } }],
      },
    ],
    [
      "bounds of two schemas",
      { type: "number", allOf: [{ minimum: 3 }, { anyOf: [{ maximum: 1 }, { maximum: 2 }] }] },
    ],
    [
      "what follows from what it is",
      {
        type: "object",
        required: ["a"],
        properties: { a: { type: "string", minLength: 2 } },
        if: { properties: { a: { minLength: 1 } } },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword
        then: { required: ["b"], properties: { b: false } },
      },
    ],
    [
      "what it is said not to be",
      {
        type: "object",
        required: ["a"],
        properties: { a: { type: "number", minimum: 3 } },
        not: { required: ["a"], properties: { a: { minimum: 2 } } },
      },
    ],
    [
      "one of two that both fit",
      { type: "string", minLength: 3, oneOf: [{ minLength: 1 }, { minLength: 2 }] },
    ],
    [
      "a member that nothing evaluates",
      {
        type: "object",
        required: ["a"],
        anyOf: [{ properties: { b: {} } }, { required: ["b"] }],
        unevaluatedProperties: false,
      },
    ],
    [
      "an element that nothing evaluates",
      { type: "array", minItems: 2, prefixItems: [{}], unevaluatedItems: false },
    ],
    [
      "a constant with a member that nothing evaluates",
      { const: { a: 1 }, unevaluatedProperties: { type: "string" } },
    ],
    [
      "a member that another one depends on, and cannot be",
      { type: "object", required: ["a"], dependencies: { a: ["b"] }, properties: { b: false } },
    ],
    [
      "a member on which something depends that cannot be",
      { type: "object", required: ["a"], dependencies: { a: { maxProperties: 0 } } },
    ],
    [
      "a member beside another that it rules out",
      {
        type: "object",
        required: ["a", "b"],
        dependentSchemas: { a: { properties: { b: false } } },
      },
    ],
    [
      "all the same, and different",
      {
        type: "array",
        minItems: 2,
        uniqueItems: true,
        prefixItems: [{ const: 1 }, { const: 1 }, {}],
      },
    ],
    [
      "more of a kind than it may contain",
      {
        type: "array",
        minItems: 2,
        items: { minimum: 3, type: "number" },
        contains: { minimum: 1 },
        maxContains: 1,
      },
    ],
    [
      "more whole numbers than there are",
      {
        type: "array",
        uniqueItems: true,
        minItems: 4,
        items: { type: "integer", minimum: 1, maximum: 3 },
      },
    ],
    [
      "factors with nothing common between the bounds",
      {
        type: "number",
        minimum: 1,
        maximum: 5,
        allOf: [{ multipleOf: 2 }, { multipleOf: 3 }],
      },
    ],
    [
      "members for which there are no names",
      {
        type: "object",
        minProperties: 1,
        allOf: [
          { additionalProperties: { type: "string" } },
          { additionalProperties: { type: "number" } },
        ],
      },
    ],
    [
      "the empty one alone, which it must not be",
      { type: "array", maxItems: 0, not: { const: [] } },
    ],
    [
      "none of many choices",
      { enum: Array.from({ length: 200 }, (_, index) => index), minimum: 200 },
    ],
    ["a pattern that no text of its format has", { type: "string", format: "date", pattern: "^x" }],
    [
      "a day that no month has, by a pattern",
      { type: "string", format: "date", pattern: "^....-02-30" },
    ],
    ["patterns of two schemas", { type: "string", allOf: [{ pattern: "^a" }, { pattern: "^b" }] }],
    ["a pattern that is longer", { type: "string", pattern: "^abc$", maxLength: 2 }],
    ["a pattern that is shorter", { type: "string", pattern: "^a{0,3}$", minLength: 4 }],
    [
      "a pattern within one that it must not have",
      { type: "string", pattern: "^ab", not: { pattern: "a" } },
    ],
    [
      "a pattern that asks for what it leaves out",
      { type: "string", pattern: "^(?=.*[A-Z])[a-z]*$" },
    ],
    [
      "two formats",
      { type: "string", format: "ipv4", anyOf: [{ format: "email" }, { format: "uuid" }] },
    ],
    [
      "a member whose name has no such pattern",
      { type: "object", required: ["a"], propertyNames: { pattern: "^b" } },
    ],
    [
      "more members than there are names of a pattern",
      { type: "object", minProperties: 3, propertyNames: { pattern: "^[ab]$" } },
    ],
    [
      "members by one pattern with names of another",
      {
        type: "object",
        minProperties: 1,
        propertyNames: { pattern: "^a" },
        patternProperties: { "^b": {} },
        additionalProperties: false,
      },
    ],
    [
      "names of which none may be",
      {
        type: "object",
        minProperties: 1,
        propertyNames: { pattern: "^a" },
        patternProperties: { a: false },
      },
    ],
    [
      "more different texts than there are",
      {
        type: "array",
        uniqueItems: true,
        minItems: 4,
        items: { type: "string", pattern: "^[abc]$" },
      },
    ],
    [
      "all texts of a pattern, none of which may be",
      { type: "string", pattern: "^[ab]$", not: { enum: ["a", "b"] } },
    ],
    ["what it must not be", { type: "string", format: "date", not: { format: "date" } }],
    ["what nothing fails", { not: { minLength: 0 } }],
    ["members of which it must not have any", { maxProperties: 0, not: { propertyNames: false } }],
    [
      "no day within the limits of two schemas",
      {
        type: "string",
        allOf: [
          { format: "date", formatMinimum: "2026-01-02" },
          { format: "date", formatMaximum: "2026-01-01" },
        ],
      },
    ],
    [
      "what must not be one of two, and is",
      { type: "string", maxLength: 1, not: { oneOf: [{ minLength: 2 }, { minLength: 0 }] } },
    ],
    ["the same twice, of one", { type: "array", maxItems: 1, not: { uniqueItems: true } }],
    [
      "what several schemas say, and it must not be",
      {
        type: "string",
        format: "date",
        not: { type: "string", format: "date", minLength: 10 },
      },
    ],
    [
      "a member that nothing evaluates but what it must not be",
      {
        type: "object",
        not: { properties: { a: { type: "number" } } },
        unevaluatedProperties: false,
      },
    ],
    [
      "a day within its limits of no such pattern",
      { type: "string", format: "date", formatMinimum: "2026-01-01", pattern: "^2025" },
    ],
    [
      "a pattern within one that no text must have",
      { type: "string", pattern: "^ab", not: { type: "string", pattern: "a" } },
    ],
    ["a whole number that is no multiple of 1", { type: "integer", not: { multipleOf: 1 } }],
    [
      "two kinds, and room for one",
      {
        type: "array",
        maxItems: 1,
        allOf: [{ contains: { type: "string" } }, { contains: { type: "number" } }],
      },
    ],
  ])("%s is refused", ([, inputSchema]) => {
    expect(refusalsOf(inputSchema)).toHaveLength(1);
  });

  test.for<[string, object]>([
    ["a pattern of a text that is not named", { type: "string", pattern: "^x" }],
    ["a pattern that takes long", { const: "x".repeat(90), pattern: "^(x+)+y$" }],
    ["a factor within the precision of the check", { const: 19.99, multipleOf: 0.01 }],
    ["elements that need not be", { type: "array", items: false }],
    ["an element that it need not contain", { type: "array", contains: false, minContains: 0 }],
    ["a format that is not known", { const: "x", format: "unheard-of" }],
    ["a format of texts for a number", { const: 1, format: "date" }],
    ["a format that only its length allows", { type: "string", format: "date", maxLength: 10 }],
    [
      "a constant that fits inside",
      { const: { a: [1] }, properties: { a: { items: { const: 1 } } } },
    ],
    [
      "as many different elements as there are",
      { type: "array", items: { type: ["boolean", "null"] }, uniqueItems: true, minItems: 3 },
    ],
    [
      "a member that would ask for what cannot be, and need not be",
      { type: "object", dependentSchemas: { a: false } },
    ],
    [
      "a member that a pattern does not rule out",
      { type: "object", required: ["b"], patternProperties: { "^a": false } },
    ],
    [
      "a member like the whole, or null",
      { type: ["object", "null"], required: ["a"], properties: { a: { $ref: "#" } } },
    ],
    [
      "a leap second, which is beyond no limit",
      {
        type: "string",
        format: "time",
        formatMinimum: "10:00:00Z",
        formatMaximum: "09:00:00Z",
      },
    ],
    [
      "a day alone",
      {
        type: "string",
        format: "date",
        formatMinimum: "2026-02-28",
        formatExclusiveMaximum: "2026-02-29",
      },
    ],
    [
      "a member that one of several evaluates",
      {
        type: "object",
        required: ["a"],
        anyOf: [{ properties: { a: {} } }, { required: ["b"] }],
        unevaluatedProperties: false,
      },
    ],
    [
      "what one of its choices leaves",
      {
        type: "object",
        required: ["a"],
        properties: { a: { type: "number" } },
        anyOf: [{ properties: { a: { type: "string" } } }, { properties: { a: { minimum: 1 } } }],
      },
    ],
    ["the shortest address", { type: "string", format: "email", maxLength: 5 }],
    [
      "a text that two patterns leave",
      { type: "string", pattern: "^[ab]$", not: { pattern: "^a" }, maxLength: 1 },
    ],
    ["a leap day", { type: "string", format: "date", pattern: "^2024-02-29$" }],
    [
      "what goes back to what it had",
      { type: "string", pattern: String.raw`^(a|b)\1$`, maxLength: 2 },
    ],
    [
      "patterns that are too much to follow",
      {
        type: "string",
        allOf: [{ pattern: "a.{20}$" }, { pattern: "b.{25}$" }, { pattern: "^[ab]{9}c*$" }],
      },
    ],
    [
      "an element far behind that is of the kind that must be",
      {
        type: "array",
        prefixItems: Array.from({ length: 60 }, (_, index) => ({
          type: index === 55 ? "string" : "number",
        })),
        contains: { type: "string" },
        items: false,
      },
    ],
    [
      "one of two kinds",
      {
        type: "array",
        maxItems: 1,
        allOf: [{ contains: { type: "integer" } }, { contains: { type: "number" } }],
      },
    ],
    ["limits that nothing is held against", { format: "date", formatMinimum: "", type: "string" }],
  ])("%s is not", ([, inputSchema]) => {
    expect(refusalsOf(inputSchema)).toEqual([]);
  });
});
