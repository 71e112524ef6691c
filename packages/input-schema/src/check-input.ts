import type { Problem } from "@millrace/contract";
import { costsOfSchema } from "@millrace/engine";
import type { ErrorObject, ValidateFunction } from "ajv/dist/2020.js";
import { compileSchema } from "./ajv.ts";
import { withinTime } from "./within-time.ts";

/**
 * What one check may take. A regular expression that backtracks, or references that branch, may take
 * years over a few bytes, and nothing else happens in the process meanwhile.
 */
const checkMs = 200;

/** Of more the number is told. */
export const mostViolations = 1_000;

/** All violations of the schema, none where the input fits. */
export type CheckInput = (input: unknown) => readonly Problem[];

/**
 * Compiles a definition's `inputSchema` (JSON Schema 2020-12; CONTRACT 1). Without one, any input is
 * fine. References to other documents are not followed.
 *
 * @throws Error in words for people when it is no JSON Schema.
 */
export function compileInputSchema({
  inputSchema,
}: {
  readonly inputSchema?: unknown;
}): CheckInput {
  if (inputSchema === undefined || inputSchema === true) return () => [];
  // Stored by a release that did not refuse it, `$async` would have the answer come later.
  const schema = (
    typeof inputSchema === "object" ? { ...inputSchema, $async: false } : inputSchema
  ) as object | boolean;
  const validate = compileSchema(schema);
  const problems = mayTakeLong(inputSchema) ? problemsInTime : problemsOf;
  let first: ValidateFunction | undefined;
  return (input) => {
    try {
      return problems(validate, input);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      // With `allErrors`, Ajv 8.20 writes down what has been evaluated where there is nothing to write it in.
      first ??= compileSchema(schema, { allErrors: false });
      return problems(first, input);
    }
  };
}

/**
 * The check of a definition that an earlier release may have registered. What a registration refuses now is not
 * compiled: it might take for ever. Each input then has the schema's own faults.
 */
export function checkOfStored(definition: { readonly inputSchema?: unknown }): CheckInput {
  const costs = costsOfSchema(definition.inputSchema);
  if (costs.length > 0) return () => costs;
  try {
    return compileInputSchema(definition);
  } catch (error) {
    const message = `cannot be compiled: ${error instanceof Error ? error.message : String(error)}`;
    return () => [{ path: "/inputSchema", code: "BAD_SCHEMA", message }];
  }
}

function problemsInTime(validate: ValidateFunction, input: unknown): readonly Problem[] {
  try {
    return withinTime(checkMs, () => problemsOf(validate, input))?.value ?? [tooCostly];
  } catch (error) {
    // References that go round without an end, or an input that they follow down too far.
    if (error instanceof RangeError) return [tooDeep];
    throw error;
  }
}

const tooCostly = {
  path: "/input",
  code: "TOO_COSTLY",
  message: `its check against the schema takes longer than ${checkMs} ms and was given up, so that nothing is known of whether it matches; simplify the schema's patterns and references, and use uniqueItems only where there are few items`,
};

const tooDeep = {
  path: "/input",
  code: "TOO_DEEP",
  message: "its check against the schema never ends, or goes down too far; see the schema's $ref",
};

/**
 * Whether the work may grow faster than the input: with the quantifiers of a pattern, references, and
 * comparisons of each with each. Other schemas are spared the watch.
 */
function mayTakeLong(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  return Object.entries(schema).some(([key, value]) => {
    if (key === "pattern" && typeof value === "string") return /[*+?{]/.test(value);
    return costly.has(key) || mayTakeLong(value);
  });
}

const costly = new Set(["$ref", "$dynamicRef", "patternProperties", "uniqueItems"]);

function problemsOf(validate: ValidateFunction, input: unknown): readonly Problem[] {
  if (validate(input)) return [];
  const errors = validate.errors ?? [];
  const problems = errors.slice(0, mostViolations).map(problemOf);
  const left = errors.length - problems.length;
  if (left > 0) {
    problems.push({ path: "", code: "TOO_MANY_PROBLEMS", message: `and ${left} more violations` });
  }
  return problems;
}

function problemOf({ instancePath, keyword, message, params }: ErrorObject): Problem {
  const names = Object.entries(params)
    .filter(([, value]) => typeof value === "string" || typeof value === "number")
    .map(([name, value]) => `${name}: ${String(value)}`);
  const detail = names.length > 0 ? ` (${names.join(", ")})` : "";
  return {
    path: `/input${instancePath}`,
    code: keyword,
    message: `${message ?? "does not match the schema"}${detail}`,
  };
}
