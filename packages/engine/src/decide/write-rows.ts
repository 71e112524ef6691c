import type { ExecutionUpdate, ItemCounts, NewExecution } from "../state/decision.ts";
import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution, OpenItems } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import type { Turn } from "./turn.ts";

export function insertExecution(turn: Turn, execution: NewExecution): void {
  const key = executionKey(execution.path, execution.iteration);
  turn.inserts.set(key, execution);
  turn.touched.set(execution.path, key);
}

/** What a row becomes. What is not named is as it is at a step that has just begun. */
export interface RowChange extends Partial<
  Pick<
    ExecutionUpdate,
    "attempt" | "output" | "error" | "completion" | "completedAt" | "retryAt" | "awaited"
  >
> {
  readonly status: StepStatus;
}

/** Changes a row; one that this same turn inserts simply begins that way. */
export function updateExecution(turn: Turn, execution: LiveExecution, change: RowChange): void {
  const { stepId, path, iteration } = execution;
  const {
    status,
    attempt = execution.attempt,
    error = null,
    completion = null,
    completedAt = null,
    retryAt = null,
    awaited = false,
  } = change;
  const items = execution.items && itemCounts(execution.items);
  const key = executionKey(path, iteration);
  turn.touched.set(path, key);
  const inserted = turn.inserts.get(key);
  // What this turn has written stays, as what an earlier one has; null is an output like any other.
  const { output = (inserted ?? turn.updates.get(key))?.output } = change;
  const row = { status, attempt, output, error, completion, items, completedAt };
  if (inserted !== undefined) turn.inserts.set(key, { ...inserted, ...row });
  else turn.updates.set(key, { stepId, path, iteration, ...row, retryAt, awaited });
}

function itemCounts({ count, completed, failed }: OpenItems): ItemCounts {
  return { count, completed, failed };
}
