import { defined } from "../assert.ts";
import type { RetryTemplates } from "../definition/definition.ts";
import { intervalMs } from "../definition/duration.ts";
import type { EvaluatedPolicy, RetryInterval, RetryPolicy } from "../retry.ts";
import type { LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { expressionError } from "./evaluate.ts";
import { scopeFor } from "./scope.ts";
import type { Turn } from "./turn.ts";

/**
 * The policy with the values that its expressions have now that the attempt has failed; an error of
 * kind EXPRESSION where one has no good value, which no further attempt would mend (CONTRACT 1.2).
 */
export function evaluatedPolicy(
  turn: Turn,
  execution: LiveExecution,
  { retryIntervals }: { readonly retryIntervals: RetryTemplates },
  policy: RetryPolicy,
): EvaluatedPolicy | WorkflowError {
  const ms = (key: keyof RetryTemplates, interval: RetryInterval): number => {
    if (typeof interval === "number") return interval;
    const layer = interval === "STEP" ? retryIntervals : turn.definition.retryIntervals;
    const template = defined(layer[key], `expression for ${key}`);
    return intervalMs(template, scopeFor(turn, template, execution));
  };
  try {
    return {
      ...policy,
      initialIntervalMs: ms("initialIntervalMs", policy.initialIntervalMs),
      maxIntervalMs: ms("maxIntervalMs", policy.maxIntervalMs),
    };
  } catch (thrown) {
    const { attempt, stepId } = execution;
    return { ...expressionError(thrown, stepId, "a retry interval"), attempt };
  }
}
