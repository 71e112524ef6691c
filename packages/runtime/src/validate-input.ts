import { Ajv2020 } from "ajv/dist/2020.js";
import type { ErrorObject } from "ajv/dist/2020.js";
import * as formats from "ajv-formats";
import type { Problem } from "./errors.ts";

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
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: true });
  formats.default.default(ajv);
  const validate = ajv.compile(inputSchema as object | boolean);
  return (input) => (validate(input) ? [] : (validate.errors ?? []).map(problemOf));
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
