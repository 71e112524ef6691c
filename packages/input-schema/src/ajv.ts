import { Ajv2020 } from "ajv/dist/2020.js";
import * as formats from "ajv-formats";

/** The validator of all inputs (JSON Schema 2020-12). */
export function openAjv({ allErrors = true } = {}): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
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
