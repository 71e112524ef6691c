import { BOUNDS, jsonFaults } from "@millrace/contract";
import type { Problem } from "@millrace/contract";
import { exampleInputs } from "@millrace/engine";
import type { CheckInput } from "./check-input.ts";
import { formats } from "./formats.ts";

/** Checks that are given up; of a schema by which each one is, no more are tried. */
const mostCostly = 3;
/** What the body of a start holds beside its input. */
const bytesBeside = 1_024;

/**
 * Looks for an input that a start would take: one of the schema's `examples`, or one that is made up of it.
 *
 * @param check That of the compiled schema.
 * @returns What to tell where none is found; none may be there, or it is too hard to come by.
 */
export function lackOfInput(inputSchema: unknown, check: CheckInput): string | undefined {
  let nearest: readonly Problem[] | undefined;
  let costly = 0;
  for (const input of exampleInputs(inputSchema, formats)) {
    const violations = isTaken(input) ? check(input) : [tooLarge];
    if (violations.length === 0) return undefined;
    if (violations.length < (nearest?.length ?? Infinity)) nearest = violations;
    costly += isCostly(violations) ? 1 : 0;
    if (costly === mostCostly) break;
  }
  const [first] = nearest ?? [];
  const why = first === undefined ? "" : `. The nearest fails at ${first.path}: ${first.message}`;
  return `no input was found that passes it, so that perhaps no instance could start; if there is one, show it in "examples": [ … ] beside the other keywords${why}`;
}

const tooLarge = {
  path: "/input",
  code: "TOO_LARGE",
  message: "it is too large for a start, or cannot be stored",
};

function isTaken(input: unknown): boolean {
  const bytes = Buffer.byteLength(JSON.stringify(input));
  return bytes + bytesBeside <= BOUNDS.bodyBytes && jsonFaults({ input }).length === 0;
}

function isCostly(violations: readonly Problem[]): boolean {
  return violations.some(({ code }) => code === "TOO_COSTLY" || code === "TOO_DEEP");
}
