import { defined } from "../assert.ts";
import type { RetryTemplates } from "../definition/definition.ts";
import { intervalMs } from "../definition/duration.ts";
import type { EvaluatedPolicy, RetryInterval, RetryPolicy } from "../retry.ts";
import type { LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { expressionError } from "./evaluate.ts";
import { scopeFor } from "./scope.ts";
import type { Turn } from "./turn.ts";
import { updateExecution } from "./write-rows.ts";

/**
 * The policy with the values that its expressions have now that the attempt has failed with `error`,
 * which they see as `steps.<id>.error`. Where one has no good value, an error of kind EXPRESSION,
 * which no further attempt would mend (CONTRACT 1.2, 2); its `details.cause` is the attempt's own.
 */
export function evaluatedPolicy(
  turn: Turn,
  execution: LiveExecution,
  { retryIntervals }: { readonly retryIntervals: RetryTemplates },
  policy: RetryPolicy,
  error: WorkflowError,
): EvaluatedPolicy | WorkflowError {
  const { initialIntervalMs, maxIntervalMs } = policy;
  if (typeof initialIntervalMs === "number" && typeof maxIntervalMs === "number")
    return { ...policy, initialIntervalMs, maxIntervalMs };
  updateExecution(turn, execution, { status: "FAILED", error });
  const ms = (key: keyof RetryTemplates, interval: RetryInterval): number => {
    if (typeof interval === "number") return interval;
    const layer = interval === "STEP" ? retryIntervals : turn.definition.retryIntervals;
    const template = defined(layer[key], `expression for ${key}`);
    return intervalMs(template, scopeFor(turn, template, execution));
  };
  try {
    return {
      ...policy,
      initialIntervalMs: ms("initialIntervalMs", initialIntervalMs),
      maxIntervalMs: ms("maxIntervalMs", maxIntervalMs),
    };
  } catch (thrown) {
    const { attempt, stepId } = execution;
    const failed = expressionError(thrown, stepId, "a retry interval");
    return { ...failed, attempt, details: { cause: { ...error } } };
  }
}
