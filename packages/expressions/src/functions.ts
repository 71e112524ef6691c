/** The table of pure functions (CONTRACT 1.2): what a name before a parenthesis may mean. */
import { listFunctions } from "./functions/lists.ts";
import { numberFunctions } from "./functions/numbers.ts";
import { objectFunctions } from "./functions/objects.ts";
import { timeFunctions } from "./functions/times.ts";
import { valueFunctions } from "./functions/values.ts";
import type { Documented, FunctionSpec } from "./spec.ts";

const table: readonly FunctionSpec[] = [
  ...valueFunctions,
  ...numberFunctions,
  ...listFunctions,
  ...objectFunctions,
  ...timeFunctions,
];

const byName: ReadonlyMap<string, FunctionSpec> = new Map(
  table.map((specification) => [specification.name, specification]),
);

export function findFunction(name: string): FunctionSpec | undefined {
  return byName.get(name);
}

export const functionNames: readonly string[] = [...byName.keys()].toSorted();

/** All functions, as documentation shows them. */
export const functions: readonly Documented[] = table.map(
  ({ name, parameters, summary, example }) => ({ name, parameters, summary, example }),
);
