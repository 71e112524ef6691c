export { compileInputSchema } from "./check-input.ts";
export type { CheckInput } from "./check-input.ts";
export { hasFormat } from "./formats.ts";
export { faultsOfInputSchema } from "./schema-faults.ts";
