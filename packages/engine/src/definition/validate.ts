import type { Problem, WorkflowDefinition } from "@millrace/contract";
import { jsonFaults, parseDocument } from "@millrace/contract";
import { checkGraph } from "./check-graph.ts";
import { checkValues } from "./check-values.ts";
import { checkSchemaFits } from "./schema/fits.ts";
import type { Formats } from "./schema/keywords.ts";
import { checkPatternCost } from "./schema/pattern-cost.ts";
import { checkSchemaSize } from "./schema/size.ts";
import { outlineOf } from "./outline.ts";
import { besides, inDocumentOrder, problemList, valueAt } from "./problem.ts";

export type Validation =
  | {
      readonly document: WorkflowDefinition;
      readonly problems?: undefined;
      readonly warnings: readonly Problem[];
    }
  | {
      readonly document?: undefined;
      readonly problems: readonly Problem[];
      readonly warnings: readonly Problem[];
    };

/**
 * Checks all of a definition document that can be known before it runs: its shape first, then, as far
 * as the shape allows, ids, ways, expressions, durations and patterns. Every problem is reported at
 * once, in the order of the document. Whether its inputSchema is one is left to who compiles it.
 *
 * @param formats Of who compiles schemas (`@millrace/input-schema`).
 */
export function validateDefinition(value: unknown, formats?: Formats): Validation {
  if (value === undefined) return { problems: [nothing], warnings: [] };
  const faults = jsonFaults(value);
  if (!canBeRead(value, faults)) return { problems: faults, warnings: [] };

  const { document, problems: shapeProblems = [] } = parseDocument(value);
  const list = problemList(besides(faults, shapeProblems));
  const { inputSchema } = outlineOf(value).fields;
  // By what takes too long to compile nothing is held.
  const canBeHeld = checkPatternCost(inputSchema, list);
  const outline = outlineOf(canBeHeld ? value : { ...Object(value), inputSchema: undefined });
  checkSchemaSize(inputSchema, list);
  checkSchemaFits(outline.fields["inputSchema"], list, formats);
  checkGraph(outline, checkValues(outline, list), list);

  const warnings = inDocumentOrder(list.warnings, value);
  if (document !== undefined && list.problems.length === 0) return { document, warnings };
  return { problems: inDocumentOrder(list.problems, value), warnings };
}

/** An empty body, or an empty file. */
const nothing = {
  path: "",
  code: "MISSING_FIELD",
  message: 'there is no definition here; give one as JSON, an object with "id" and "steps"',
};

/**
 * Nothing may touch a value that is too deep to walk, or holds what is no JSON at all. Texts and numbers
 * that cannot be stored do no harm.
 */
function canBeRead(value: unknown, faults: readonly Problem[]): boolean {
  return faults.every(({ path, code }) => {
    if (code === "TOO_DEEP") return false;
    return code !== "NOT_JSON" || typeof valueAt(path, value) === "number";
  });
}
