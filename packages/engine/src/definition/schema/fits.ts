import type { ProblemList } from "../problem.ts";
import { noFormats } from "./keywords.ts";
import type { Formats } from "./keywords.ts";
import { openLook } from "./look.ts";
import { openOutcomes } from "./of-kind.ts";
import { openTogether } from "./together.ts";

/**
 * A schema that no input fits would register a workflow that can never be started: its keywords rule each other
 * out, or its check never ends.
 *
 * Whether any input fits is worked out for every kind of value that there is: those of each type, and each one
 * that the schema names itself. Where it is not known what a keyword makes of a kind, both count as possible, so
 * that nothing is refused that some input passes.
 *
 * @param formats Of who compiles the schema.
 */
export function checkSchemaFits(
  schema: unknown,
  list: ProblemList,
  formats: Formats = noFormats,
): void {
  if (schema === undefined) return;
  const look = openLook(schema, formats);
  const outcomes = openOutcomes(look);
  const { rootFits, faults } = openTogether(look, outcomes);
  if (rootFits()) return;
  const back = outcomes.back();
  const add = (path: string, message: string) =>
    list.add(`/inputSchema${path}`, "NOTHING_FITS", message);
  if (back !== undefined) {
    const message =
      "it refers back to itself before any part of the input is looked at, so that its check never ends and no instance could start";
    add(back, message);
  } else if (faults.size > 0) {
    for (const [path, fault] of faults) add(path, `${fault}; no instance could ever start`);
  } else {
    const message =
      "no input fits it, so that no instance could ever start; leave it out where any input is fine";
    add("", message);
  }
}
