import type { Problem } from "@millrace/contract";
import { problemList } from "../problem.ts";
import { checkPatternCost } from "./pattern-cost.ts";
import { checkSchemaSize } from "./size.ts";

/**
 * What of a schema, with a pointer below `/inputSchema`, takes too long to be compiled. Registration refuses it, but
 * earlier releases did not.
 */
export function costsOfSchema(schema: unknown): readonly Problem[] {
  const list = problemList([]);
  checkPatternCost(schema, list);
  checkSchemaSize(schema, list);
  return list.problems;
}
