import { inspect, parseExpression } from "@millrace/expressions";
import type { Json, Shape } from "@millrace/expressions";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkStartInput } from "../../engine/src/definition/check-start-input.ts";
import { problemList } from "../../engine/src/definition/problem.ts";
import { shapeOfSchema } from "../../engine/src/definition/schema/shape.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_260_104);

const names = ["a", "b", "c"];
const types = ["null", "boolean", "number", "integer", "string", "array", "object"];
const plain = fc.constantFrom<unknown>(null, true, 1, 2.5, "x", "y");

const { schema } = fc.letrec<{ schema: object | boolean }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    { weight: 1, arbitrary: fc.constantFrom<object | boolean>(true, {}, false) },
    {
      weight: 8,
      arbitrary: fc
        .record(
          {
            type: fc.oneof(
              fc.constantFrom(...types),
              fc.constant("object"),
              fc.uniqueArray(fc.constantFrom(...types), { minLength: 1, maxLength: 3 }),
            ),
            enum: fc.uniqueArray(plain, { minLength: 1, maxLength: 3 }),
            properties: fc.dictionary(fc.constantFrom(...names), tie("schema"), { maxKeys: 3 }),
            required: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 2 }),
            additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
            patternProperties: fc.constantFrom({ "^c": {} }, {}),
            items: tie("schema"),
            prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
            anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
            oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
            allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
            not: tie("schema"),
            $ref: fc.constantFrom("#/$defs/d", "#"),
          },
          { requiredKeys: [], noNullPrototype: true },
        )
        .map(thinned),
    },
  ),
}));

/** Most of the keywords left out: all of them together hardly ever let a value through. */
function thinned(full: object): object {
  const entries = Object.entries(full);
  return Object.fromEntries(entries.filter((_, index) => (index + entries.length) % 4 === 0));
}

const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    plain,
    fc.array(tie("value"), { maxLength: 2 }),
    {
      weight: 3,
      arbitrary: fc.dictionary(fc.constantFrom(...names), tie("value"), { noNullPrototype: true }),
    },
  ),
}));

/** Reads with which the shapes of members and elements are compared with what is there. */
const reads = [
  "input",
  "input.a",
  "input.b",
  "input.c",
  "input.a.b",
  "input[0]",
  "input.a[0].b",
  "input.b.c.a",
  "input[0].a",
];

function fits(shape: Shape, found: unknown): boolean {
  const type = found === null ? "null" : Array.isArray(found) ? "array" : (typeof found as never);
  return (
    shape.types.includes(type) &&
    (!shape.values ||
      (typeof found === "object" && found !== null) ||
      shape.values.includes(found as never))
  );
}

test(`what a random schema lets through has the shape that is made of it (seed ${seed})`, () => {
  let passed = 0;
  const ajv = new Ajv2020({ strict: false, ownProperties: true });
  fc.assert(
    fc.property(
      schema,
      schema,
      fc.array(value, { minLength: 12, maxLength: 12 }),
      (main, other, samples) => {
        const whole = typeof main === "boolean" ? main : { ...main, $defs: { d: other } };
        let validate;
        try {
          validate = ajv.compile(whole);
        } catch {
          return; // no schema
        }
        const roots = { input: shapeOfSchema(whole) };
        for (const sample of samples) {
          if (!isValid(validate, sample)) continue;
          passed += 1;
          const list = problemList([]);
          checkStartInput({ $literal: sample as Json }, "", roots, list);
          expect(list.problems, `${JSON.stringify(sample)} under ${JSON.stringify(whole)}`).toEqual(
            [],
          );
          for (const read of reads) {
            const expression = parseExpression(read);
            const { shape, mismatches } = inspect(expression, roots);
            const found = expression.evaluate({ input: sample, now: "" });
            if (!fits(shape, found) || (mismatches.length > 0 && found !== undefined)) {
              throw new Error(
                `${read} of ${JSON.stringify(sample)} under ${JSON.stringify(whole)} is ${JSON.stringify(found)}, and its shape ${shape.types.join(" | ")}`,
              );
            }
          }
        }
      },
    ),
    { seed, numRuns: 300 },
  );
  expect(passed).toBeGreaterThan(200);
}, 60_000);

/**
 * A reference to itself may go round without an end, and of some schemas (patternProperties below a
 * oneOf with a `not`) Ajv makes a function that throws.
 */
function isValid(validate: (value: unknown) => unknown, sample: unknown): boolean {
  try {
    return validate(sample) === true;
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) return false;
    throw error;
  }
}
