import { expect, test } from "vitest";
import { faultsOfInputSchema } from "../src/index.ts";

const s = (extra: object) => ({ type: "string", ...extra });
/** An object with a member for each. */
function ofEach(schemas: readonly object[]): object {
  const properties = Object.fromEntries(schemas.map((schema, index) => [`at${index}`, schema]));
  return { type: "object", required: Object.keys(properties), properties };
}

/** None shows an input of its own. */
const possible: readonly unknown[] = [
  true,
  {},
  { type: "object" },
  s({ pattern: "^(?=.*[A-Z])(?=.*\\d)(?=.*[a-z]).{8,}$" }),
  s({ pattern: "^(?=.*[A-Z])(?=.*\\d)(?=.*[^\\w\\s]).{12,64}$", minLength: 12, maxLength: 64 }),
  s({ pattern: "^\\p{Lu}\\p{L}+(?: \\p{L}+)*$" }),
  s({ pattern: "\\bfoo\\b" }),
  s({ pattern: "^(\\w+)-\\1$" }),
  s({ pattern: "^(?<y>\\d{4})-(?<m>\\d\\d)$" }),
  s({ pattern: "^(['\"])[a-z]+\\1$" }),
  s({ pattern: "(?<=@)example" }),
  s({ pattern: "(?<!a)b$", minLength: 4 }),
  s({ format: "email", pattern: "@example\\.com$" }),
  s({ format: "email", maxLength: 20, minLength: 10 }),
  s({ format: "uri", pattern: "^https://" }),
  s({ format: "uri", pattern: "^https://", minLength: 30 }),
  s({ format: "date-time", formatMinimum: "2026-01-01T00:00:00Z" }),
  s({ format: "date-time", formatExclusiveMinimum: "2026-01-01T00:00:00Z" }),
  s({
    format: "date-time",
    formatExclusiveMinimum: "2026-01-01T00:00:00Z",
    formatMaximum: "2026-12-31T00:00:00Z",
  }),
  s({ format: "iso-time", formatMinimum: "22:00:00Z", formatMaximum: "23:00:00Z" }),
  s({ format: "date", formatMinimum: "2026-01-01", formatExclusiveMaximum: "2026-01-02" }),
  ofEach([
    ..."date time date-time iso-time iso-date-time duration uri uri-reference uri-template url email hostname ipv4 ipv6"
      .split(" ")
      .map((format) => s({ format })),
    ..."regex uuid json-pointer json-pointer-uri-fragment relative-json-pointer byte password binary"
      .split(" ")
      .map((format) => s({ format })),
    ..."int32 int64 float double".split(" ").map((format) => ({ type: "number", format })),
  ]),
  s({ minLength: 5000, pattern: "^[a-z]+$" }),
  s({ minLength: 500_000 }),
  s({ pattern: "^[A-Z]{3}-\\d{10}$" }),
  s({ pattern: "^0x[0-9a-fA-F]{40}$" }),
  s({ pattern: "^[0-9a-f]{64}$" }),
  s({ pattern: "^[0-9a-f]{500}$" }),
  s({ pattern: "^(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)(?:\\.(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)){3}$" }),
  s({ pattern: "^\\+[1-9]\\d{1,14}$" }),
  s({ pattern: "^[A-Z]{2}\\d{2}[A-Z0-9]{11,30}$" }),
  s({ pattern: "^\\S+@\\S+\\.\\S+$" }),
  s({ pattern: "^(?!.*--)[a-z0-9-]{3,63}$" }),
  s({ pattern: "^(?!(?:CON|PRN)$)[^<>]+$" }),
  s({ not: { pattern: "^a" } }),
  s({ not: { enum: ["", "a"] } }),
  s({ not: { const: "" } }),
  s({ pattern: "^[^\\x00-\\x7f]+$" }),
  ofEach([
    { type: "integer", multipleOf: 7, minimum: 100, maximum: 110 },
    { type: "number", multipleOf: 0.01, exclusiveMinimum: 0, maximum: 0.05 },
    { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.001 },
    { type: "integer", exclusiveMinimum: 0 },
    { type: "integer", maximum: -5 },
    { type: "integer", exclusiveMaximum: -5 },
    { type: "number", multipleOf: 0.1, minimum: 5.05, maximum: 5.15 },
    { type: "integer", multipleOf: 6, not: { multipleOf: 4 } },
    { type: "integer", minimum: 1e15 },
    { type: "integer", multipleOf: 2.5 },
    { allOf: [{ multipleOf: 4 }, { multipleOf: 6 }], type: "integer", minimum: 1 },
  ]),
  { type: "array", uniqueItems: true, minItems: 10, items: { type: "integer" } },
  { type: "array", uniqueItems: true, minItems: 3, items: { enum: ["a", "b", "c"] } },
  { type: "array", uniqueItems: true, minItems: 8, items: { type: "string", pattern: "^[a-h]$" } },
  {
    type: "array",
    uniqueItems: true,
    minItems: 4,
    items: { type: "array", items: { enum: [0, 1] }, maxItems: 2 },
  },
  {
    type: "array",
    uniqueItems: true,
    minItems: 4,
    items: {
      type: "object",
      required: ["a"],
      properties: { a: { type: "boolean" }, b: { type: "boolean" } },
      additionalProperties: false,
    },
  },
  {
    type: "array",
    minItems: 1000,
    items: {
      type: "object",
      required: ["id"],
      properties: { id: { type: "string", format: "uuid" } },
    },
  },
  {
    type: "array",
    contains: { const: 5 },
    minContains: 2,
    maxContains: 3,
    minItems: 6,
    items: { type: "integer" },
  },
  {
    type: "array",
    prefixItems: [{ type: "string" }, { const: 5 }],
    contains: { type: "number", minimum: 10 },
    minItems: 3,
  },
  {
    type: "array",
    allOf: [{ contains: { const: 1 } }, { contains: { const: 2 } }],
    uniqueItems: true,
    maxItems: 2,
  },
  { type: "array", prefixItems: [{ type: "string" }], items: false, minItems: 1 },
  {
    type: "array",
    prefixItems: [{ type: "string" }],
    unevaluatedItems: false,
    contains: { type: "string" },
  },
  {
    type: "object",
    minProperties: 3,
    propertyNames: { pattern: "^[a-z]{2}$" },
    additionalProperties: { type: "integer" },
  },
  {
    type: "object",
    minProperties: 2,
    patternProperties: { "^x-": { type: "string" } },
    additionalProperties: false,
  },
  {
    type: "object",
    minProperties: 4,
    maxProperties: 4,
    required: ["a"],
    properties: { a: {}, b: {}, c: {}, d: {} },
    additionalProperties: false,
  },
  {
    type: "object",
    required: ["kind"],
    oneOf: [
      { properties: { kind: { const: "a" }, a: { type: "string" } }, required: ["a"] },
      { properties: { kind: { const: "b" }, b: { type: "number" } }, required: ["b"] },
    ],
  },
  {
    type: "object",
    required: ["kind"],
    properties: { kind: { enum: ["a", "b"] } },
    if: { properties: { kind: { const: "a" } } },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { required: ["x"], properties: { x: { type: "integer", minimum: 3 } } },
    else: { required: ["y"] },
  },
  {
    type: "object",
    dependentRequired: { a: ["b"] },
    dependentSchemas: { b: { properties: { c: { const: 1 } }, required: ["c"] } },
    required: ["a"],
  },
  {
    allOf: [
      { type: "object", required: ["a"], properties: { a: { type: "string" } } },
      { required: ["b"], properties: { b: { type: "integer" } } },
    ],
    unevaluatedProperties: false,
  },
  {
    $defs: {
      n: {
        type: "object",
        required: ["v"],
        properties: { v: { type: "integer" }, next: { $ref: "#/$defs/n" } },
      },
    },
    $ref: "#/$defs/n",
  },
  {
    $defs: {
      t: {
        anyOf: [
          {
            type: "object",
            required: ["l", "r"],
            properties: { l: { $ref: "#/$defs/t" }, r: { $ref: "#/$defs/t" } },
          },
          { type: "integer" },
        ],
      },
    },
    $ref: "#/$defs/t",
  },
  {
    $defs: {
      a: {
        $anchor: "addr",
        type: "object",
        required: ["zip"],
        properties: { zip: { type: "string", pattern: "^\\d{5}$" } },
      },
    },
    properties: { to: { $ref: "#addr" } },
    required: ["to"],
  },
  {
    $id: "https://example.com/tree",
    $dynamicAnchor: "node",
    type: "object",
    required: ["data"],
    properties: { data: true, children: { type: "array", items: { $dynamicRef: "#node" } } },
  },
  {
    $id: "https://example.com/root",
    $defs: {
      item: {
        $id: "item",
        type: "object",
        required: ["n"],
        properties: { n: { type: "integer" } },
      },
    },
    type: "array",
    minItems: 1,
    items: { $ref: "item" },
  },
  {
    $id: "https://example.com/root",
    type: "array",
    minItems: 1,
    items: { $ref: "https://example.com/root#/$defs/i" },
    $defs: { i: { const: 3 } },
  },
  { enum: [{ a: 1 }, [2]] },
  { const: null },
  { type: ["string", "null"] },
  { type: "string", nullable: true },
  { not: { type: "object" } },
  { not: { type: ["object", "string", "array"] } },
  { not: { required: ["a"] }, type: "object", required: ["b"] },
  {
    type: "object",
    not: { anyOf: [{ required: ["a", "b"] }, { required: ["a", "c"] }] },
    required: ["b", "c"],
  },
  { oneOf: [{ type: "integer" }, { type: "number", minimum: 5 }] },
  { oneOf: [{ multipleOf: 3 }, { multipleOf: 5 }], type: "integer", minimum: 1 },
  {
    anyOf: [
      { type: "string", format: "uuid" },
      { type: "string", format: "email" },
    ],
  },
  {
    type: "object",
    required: Array.from({ length: 60 }, (_, i) => `f${i}`),
    properties: Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [
        `f${i}`,
        { type: "string", pattern: `^${i}[a-z]{3}$` },
      ]),
    ),
  },
  { type: "object", propertyNames: { enum: ["a", "b"] }, minProperties: 2 },
  {
    type: "object",
    propertyNames: { format: "email" },
    minProperties: 2,
    additionalProperties: {
      type: "array",
      items: { format: "date", type: "string" },
      minItems: 2,
      uniqueItems: true,
    },
  },
];
/** An object with its cases: of each country another form of what is beside it. */
const ofCountries = Array.from({ length: 25 }, (_, at) => ({
  if: { properties: { country: { const: `C${at}` } }, required: ["country"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { properties: { zip: { pattern: `^\\d{${at + 1}}$` } }, required: ["zip"] },
}));
/** Nor do these, in which more than one thing hangs on another. */
const entangled: readonly unknown[] = [
  {
    type: "object",
    properties: { country: { enum: ofCountries.map((_, at) => `C${at}`) } },
    required: ["country"],
    allOf: ofCountries,
  },
  // Alternatives whose members may all be missing.
  {
    oneOf: ["a", "b", "c"].map((name) => ({
      type: "object",
      properties: { [name]: { type: "integer" } },
    })),
  },
  {
    type: "object",
    properties: { a: s({}), b: s({}), c: s({}), d: s({}) },
    not: {
      anyOf: ["a b", "a c", "a d", "b c", "b d", "c d"].map((two) => ({
        required: two.split(" "),
      })),
    },
    minProperties: 1,
    additionalProperties: false,
  },
  // Names that a group repeats in.
  {
    type: "object",
    patternProperties: { "^[a-z]{2}(-[A-Z]{2})?$": s({ minLength: 1 }) },
    additionalProperties: false,
    minProperties: 3,
  },
  {
    type: "object",
    patternProperties: { "^[a-z]+(?:-[a-z]+)*$": s({ minLength: 1 }) },
    additionalProperties: false,
    minProperties: 3,
  },
  { type: "object", propertyNames: { minLength: 5, maxLength: 5 }, minProperties: 5 },
  { type: "array", uniqueItems: true, minItems: 3, items: s({ minLength: 3, maxLength: 3 }) },
  { type: "array", uniqueItems: true, minItems: 1500, items: s({}) },
  s({ pattern: "^(?=.*foo)(?=.*bar)(?!.*baz).*$", minLength: 40, maxLength: 40 }),
  { type: "array", uniqueItems: true, minItems: 5, items: s({ format: "url" }) },
  s({ format: "url", pattern: "/callback$" }),
  s({ format: "ipv6", pattern: "^fe80:" }),
  s({ format: "uri-template", pattern: "^https://", minLength: 40 }),
  s({ pattern: "^\\p{Lt}\\cA[\\b]$" }),
  { type: "number", exclusiveMinimum: 1e300 },
  Array.from({ length: 60 }).reduce((inner: object) => ofEach([inner]), { type: "integer" }),
  // Names that are meant below the id around them.
  {
    $id: "https://example.com/schemas/order.json",
    ...ofEach([{ $ref: "line.json" }, { $ref: "/schemas/customer.json" }]),
    $defs: {
      line: { $id: "line.json", ...ofEach([s({ pattern: "^[A-Z0-9-]{4,}$" })]) },
      customer: {
        $id: "/schemas/customer.json",
        ...ofEach([{ $ref: "#/$defs/id" }]),
        $defs: { id: s({ format: "uuid" }) },
      },
    },
  },
  {
    $id: "https://example.com/strict-tree",
    $dynamicAnchor: "node",
    $ref: "tree",
    unevaluatedProperties: false,
    $defs: {
      tree: {
        $id: "https://example.com/tree",
        $dynamicAnchor: "node",
        type: "object",
        required: ["data"],
        properties: { data: true, children: { type: "array", items: { $dynamicRef: "#node" } } },
      },
    },
  },
];
/** Of these it is not worked out that nothing fits them. */
const impossible: readonly unknown[] = [
  s({ pattern: "^\\bx\\B$" }),
  s({ format: "iso-time", formatMinimum: "23:00:00Z", formatMaximum: "22:00:00Z" }),
  s({ pattern: "^(a|b)\\1c$", maxLength: 2 }),
  s({ pattern: "^\\u0000$" }),
  // Of thousands of millions of characters.
  s({ pattern: "^(?:[a-z]{50000}){50000}\\b$" }),
  s({ minLength: 2_000_000 }),
  { type: "array", minItems: 1e9 },
  { $defs: { a: { $anchor: "x", type: "string" } }, allOf: [{ $ref: "#x" }, { type: "integer" }] },
  {
    type: "array",
    uniqueItems: true,
    minItems: 8,
    items: { type: "array", items: { enum: [0, 1] }, maxItems: 2 },
  },
];

function codesOf(inputSchema: unknown): readonly string[] {
  return faultsOfInputSchema({ inputSchema }, []).map(({ code }) => code);
}

test("an input is found for schemas as people write them", () => {
  const all = [...possible, ...entangled];
  expect(all.filter((schema) => codesOf(schema).length > 0)).toEqual([]);
});

test("a schema of which no input is found is refused", () => {
  expect(impossible.filter((schema) => codesOf(schema).join() !== "NO_KNOWN_INPUT")).toEqual([]);
});

test("an input that is hard to come by is taken from the examples", () => {
  // Its last digit follows from the others.
  const rare = s({ pattern: "^(?:(?=.*(.)\\1{6}$)(?<=^)zebra-[0-9]{4}-7{7})$" });
  const schema = { ...rare, examples: ["no", "zebra-2026-7777777"] };

  expect(codesOf({ ...rare, examples: ["no"] })).toEqual(codesOf(rare));
  expect(codesOf(schema)).toEqual([]);
});

test("what is told of it says how far the nearest input came", () => {
  const place = {
    type: "object",
    required: ["at"],
    properties: { at: s({ pattern: "^\\bx\\B$" }) },
  };
  const [problem] = faultsOfInputSchema({ inputSchema: place }, []);

  expect(problem).toMatchObject({ path: "/inputSchema", code: "NO_KNOWN_INPUT" });
  expect(problem?.message).toContain("examples");
  expect(problem?.message).toContain("/input/at");
});
