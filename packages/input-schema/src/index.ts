export { checkOfStored, compileInputSchema } from "./check-input.ts";
export type { CheckInput } from "./check-input.ts";
export { formats } from "./formats.ts";
export { faultsOfInputSchema } from "./schema-faults.ts";
