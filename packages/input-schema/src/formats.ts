import type { HasFormat } from "@millrace/engine";
import type { ValidateFunction } from "ajv";
import { openAjv } from "./ajv.ts";

const checks = new Map<string, ValidateFunction>();
const ajv = openAjv();

/** Whether a text is of a format, as the validator has it; undefined for formats that it does not know. */
export const hasFormat: HasFormat = (format, text) => {
  if (!Object.hasOwn(ajv.formats, format)) return undefined;
  const check = checks.get(format) ?? ajv.compile({ format });
  checks.set(format, check);
  return check(text);
};
