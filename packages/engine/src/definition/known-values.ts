import type { Expression, Template } from "@millrace/expressions";
import { ExpressionError } from "@millrace/expressions";

// What expressions that read nothing come to: it is known before anything runs.

/** The value of an expression that reads nothing; undefined for one that does, or that fails. */
export function knownValue(
  expression: Expression | Template,
): { readonly value: unknown } | undefined {
  const outcome = knownOutcome(expression);
  return outcome instanceof ExpressionError ? undefined : outcome;
}

/** Whether a condition that reads nothing holds; undefined as with `knownValue`. */
export function knownTruth(condition: Expression): boolean | undefined {
  const known = knownValue(condition);
  return known && Boolean(known.value);
}

/**
 * What becomes of an expression that reads nothing, each time; undefined for any other, and for one
 * that costs much: a document has room for tens of thousands.
 */
export function knownOutcome(
  expression: Expression | Template,
): { readonly value: unknown } | ExpressionError | undefined {
  const { reads } = expression;
  if (reads.roots.length > 0 || reads.now) return undefined;
  try {
    return { value: expression.evaluate({ now: "" }, workOfKnown) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return error.code === "WORK_LIMIT" ? undefined : error;
  }
}

/** Units that finding out one value may cost: enough for whatever people write. */
export const workOfKnown = 1_000;
