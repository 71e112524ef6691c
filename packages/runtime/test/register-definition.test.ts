import { expect, test, vi } from "vitest";
import { InvalidDefinitionError } from "../src/errors.ts";
import { checkDefinition } from "../src/definitions/register-definition.ts";
import { compileInputSchema } from "@millrace/input-schema";

function problemsOf(inputSchema: unknown): readonly { path: string; code: string }[] {
  try {
    checkDefinition({
      id: "a",
      inputSchema,
      steps: [{ stepId: "s", type: "TASK", taskId: "noop" }],
    });
    return [];
  } catch (error) {
    if (!(error instanceof InvalidDefinitionError)) throw error;
    return error.problems.map(({ path, code }) => ({ path, code }));
  }
}

function properties(count: number): object {
  const entries = Array.from({ length: count }, (_, index) => [
    `p${index}`,
    { type: "string", format: "email", minLength: 1, pattern: `^x${index}` },
  ]);
  return { type: "object", properties: Object.fromEntries(entries) as unknown };
}

/** Of this process alone: the machine may be busy with others. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

test("an inputSchema of thousands of properties is refused at once, and not compiled", () => {
  const schema = properties(20_000);
  const started = cpuMs();

  expect(problemsOf(schema)).toEqual([{ path: "/inputSchema", code: "SCHEMA_TOO_LARGE" }]);

  // Compiling it takes minutes.
  expect(cpuMs() - started).toBeLessThan(5_000);
});

test("patterns that take V8 long to compile are refused, each at its place, and neither compiled nor tried", () => {
  const long = `${"a?".repeat(300)}${"a".repeat(300)}`;
  const schema = {
    properties: { pattern: { pattern: long, examples: ["b"] }, b: { pattern: "^(a?b)?c{0,3}$" } },
    patternProperties: { [`(|a)${long}`]: {} },
    examples: [{ pattern: long }],
  };
  const started = cpuMs();

  const problems = problemsOf(schema).toSorted(byPath);

  expect(problems).toEqual([
    { path: `/inputSchema/patternProperties/(|a)${long}`, code: "PATTERN_TOO_COSTLY" },
    { path: "/inputSchema/properties/pattern/pattern", code: "PATTERN_TOO_COSTLY" },
  ]);
  // Compiling one takes longer than the test may.
  expect(cpuMs() - started).toBeLessThan(5_000);
});

test("one of some hundred properties is compiled", () => {
  expect(problemsOf(properties(900))).toEqual([]);
});

test("one whose check would be nested too deep is refused, and nothing is written to the console", () => {
  const written = vi.spyOn(console, "error");
  const alternatives = Array.from({ length: 2_400 }, (_, index) => ({ maxLength: index }));

  expect(problemsOf({ oneOf: alternatives })).toEqual([
    { path: "/inputSchema", code: "BAD_SCHEMA" },
  ]);

  expect(written).not.toHaveBeenCalled();
  written.mockRestore();
});

test.each([
  [{ type: "strnig" }, ["/type"]],
  [
    {
      properties: { "a/b": { type: "strnig", minLength: -1 }, c: { pattern: "(" } },
      required: "c",
    },
    ["/properties/a~1b/type", "/properties/a~1b/minLength", "/required", "/properties/c/pattern"],
  ],
  [{ properties: { pattern: { pattern: "[" } } }, ["/properties/pattern/pattern"]],
  [{ patternProperties: { "^a": true, "(/": {} } }, ["/patternProperties/(~1"]],
  [{ properties: { a: { $ref: "#/$defs/b" } }, $defs: { a: {} } }, ["/properties/a/$ref"]],
  [{ $ref: "other.json" }, ["/$ref"]],
  [{ $schema: "http://json-schema.org/draft-07/schema#" }, ["/$schema"]],
  [{ $schema: 7 }, ["/$schema"]],
  [{ items: [{}], additionalProperties: 5 }, ["/items", "/additionalProperties"]],
  [{ properties: { a: { nullable: true } } }, ["/properties/a/nullable"]],
  [
    { properties: { a: { $anchor: "x" }, b: { $anchor: "x", type: "string" } } },
    ["/properties/a/$anchor", "/properties/b/$anchor"],
  ],
  [{ $defs: { a: { $id: "x" }, b: { $id: "x" } } }, ["/$defs/a/$id", "/$defs/b/$id"]],
  [{ items: { $ref: "#/%zz" }, const: { $ref: "#/%zz" } }, ["/items/$ref"]],
  [{ not: { $dynamicRef: "other" } }, ["/not/$dynamicRef"]],
  [{ properties: { enum: { enum: [] } } }, ["/properties/enum/enum"]],
  [{ properties: { id: { id: "x" } } }, ["/properties/id/id"]],
  [{ items: { formatMinimum: "x" } }, ["/items/formatMinimum"]],
  [{ items: { format: "date", formatMinimum: 5 } }, ["/items/formatMinimum"]],
  [
    { items: { $ref: "#/$defs/a" }, $defs: { a: { $ref: "#/$defs/a" } } },
    ["/items/$ref", "/$defs/a/$ref"],
  ],
])("%j is no JSON Schema, and is refused where it is not", (schema, places) => {
  const expected = places.map((place) => ({ path: `/inputSchema${place}`, code: "BAD_SCHEMA" }));

  expect(problemsOf(schema).toSorted(byPath)).toEqual(expected.toSorted(byPath));
});

function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : 1;
}

/** Some inputs of every kind. */
const inputs = [null, true, 0, 1.5, "", "a", [], [1], {}, { a: 1 }, { a: { a: {} } }];

test.each([
  [false, ""],
  [{ not: {} }, ""],
  [{ not: true }, ""],
  [{ type: "string", enum: [1, null] }, ""],
  [{ type: "object", allOf: [{ type: ["array", "string"] }] }, ""],
  [{ const: 1, allOf: [{ enum: [2, 3] }] }, ""],
  [{ $ref: "#" }, "/$ref"],
  [{ type: "object", allOf: [{}, { $ref: "#" }] }, "/allOf/1/$ref"],
  [{ anyOf: [{ $ref: "#" }, { type: "object" }] }, "/anyOf/0/$ref"],
  [
    { $ref: "#/$defs/a~1b", $defs: { "a/b": { not: { $ref: "#/$defs/c" } }, c: { $ref: "#" } } },
    "/$defs/c/$ref",
  ],
  [
    {
      anyOf: [{ type: "string" }, { $ref: "#/$defs/a" }],
      $defs: { a: { anyOf: [{ type: "number" }, { $ref: "#" }] } },
    },
    "/$defs/a/anyOf/1/$ref",
  ],
  [{ type: "number", oneOf: [{ type: "string" }, { $ref: "#" }] }, "/oneOf/1/$ref"],
  [{ not: { anyOf: [{ type: "string" }, { $ref: "#" }] } }, "/not/anyOf/1/$ref"],
  [{ type: "string", minLength: 5, maxLength: 3 }, "/minLength"],
  [{ type: "array", minItems: 2, maxItems: 1 }, "/minItems"],
  [{ type: "object", minProperties: 2, maxProperties: 1 }, "/minProperties"],
  [{ type: "number", minimum: 2, maximum: 1.5 }, "/minimum"],
  [{ type: "integer", exclusiveMinimum: 1, maximum: 1 }, "/exclusiveMinimum"],
  [{ type: "number", minimum: 1, exclusiveMaximum: 1 }, "/minimum"],
  [{ type: "string", enum: ["a", "bc"], minLength: 3 }, ""],
  [{ type: "object", required: ["a"], properties: { a: false } }, "/properties/a"],
  [
    { type: "object", required: ["a"], properties: { b: {} }, additionalProperties: false },
    "/required",
  ],
  [
    {
      type: "object",
      required: ["a"],
      properties: {
        a: {
          allOf: [{ $ref: "#/$defs/a" }],
          type: "object",
          required: ["b"],
        },
      },
      $defs: {
        a: { required: ["b"], properties: { b: { type: "string", minLength: 1, maxLength: 0 } } },
      },
    },
    "/$defs/a/properties/b/minLength",
  ],
])("no input fits %j, and it is refused", (inputSchema, place) => {
  const expected = [{ path: `/inputSchema${place}`, code: "NOTHING_FITS" }];

  expect(problemsOf(inputSchema)).toEqual(expected);
  const check = compileInputSchema({ inputSchema });
  for (const input of inputs) expect(check(input)).not.toEqual([]);
});

test.each([
  {},
  true,
  { type: "object", properties: { a: { $ref: "#" } } },
  { anyOf: [{ type: "object" }, { items: { $ref: "#" } }] },
  { not: { type: "string" } },
  { not: false },
  { if: { $ref: "#" } },
  { if: { type: "string" }, else: { $ref: "#" } },
  { minLength: 5, maxLength: 3 },
  { type: ["string", "array"], minLength: 5, maxLength: 3 },
  { type: "object", minLength: 5, maxLength: 3 },
  { type: "number", minimum: 1.5, maximum: 1.5 },
  { type: "object", properties: { a: { type: "string", minLength: 5, maxLength: 3 } } },
  { type: "object", required: ["a"], patternProperties: { "^a": {} }, additionalProperties: false },
  { type: "object", required: ["a"], additionalProperties: { type: ["number", "object"] } },
  { anyOf: [{ required: ["b"], properties: { b: false } }, { type: "object" }] },
  { anyOf: [false, { $ref: "#/$defs/a" }], $defs: { a: { items: { $ref: "#" } } } },
])("an input fits %j, and it is registered", (inputSchema) => {
  expect(problemsOf(inputSchema)).toEqual([]);
  const check = compileInputSchema({ inputSchema });
  expect(inputs.some((input) => check(input).length === 0)).toBe(true);
});
