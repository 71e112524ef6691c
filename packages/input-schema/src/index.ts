export { compileInputSchema, faultsOfInputSchema } from "./input-schema.ts";
export type { CheckInput } from "./input-schema.ts";
