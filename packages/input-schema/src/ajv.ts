import { Ajv2020 } from "ajv/dist/2020.js";
import type { ValidateFunction } from "ajv/dist/2020.js";
import * as formats from "ajv-formats";

/** @throws Error where it is no schema, or one that cannot be compiled. */
export function compileSchema(
  schema: object | boolean,
  { allErrors = true } = {},
): ValidateFunction {
  void ajvForSchema(schema).validateSchema(schema, true);
  return openAjv({ allErrors, validateSchema: false }).compile(schema);
}

let shared: Ajv2020 | undefined;

/**
 * For `validateSchema`. To compile what JSON Schema says of itself takes longer than most schemas do, so
 * that is done once; not for schemas of dialects that they name themselves, which it would have to keep.
 */
export function ajvForSchema(schema: object | boolean): Ajv2020 {
  const isUsual =
    typeof schema === "boolean" ||
    !("$schema" in schema) ||
    schema.$schema === "https://json-schema.org/draft/2020-12/schema";
  return isUsual ? (shared ??= openAjv()) : openAjv();
}

/** The validator of all inputs (JSON Schema 2020-12). */
export function openAjv({ allErrors = true, validateSchema = true } = {}): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
    validateSchema,
    strict: false,
    validateFormats: true,
    // It would write all the code that it could not compile to the console.
    logger: false,
    // `toString` is a member of no input; 19.99 is a multiple of 0.01.
    ownProperties: true,
    multipleOfPrecision: 9,
    // It takes longer than it ever saves.
    code: { optimize: false },
  });
  formats.default.default(ajv);
  return ajv;
}
