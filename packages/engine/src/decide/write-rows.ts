import type { Json } from "@millrace/expressions";
import { isInItem } from "../definition/paths.ts";
import type { ExecutionUpdate, ItemCounts, NewExecution } from "../state/decision.ts";
import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution, OpenItems } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import { wholeExecutionOf } from "./read-rows.ts";
import type { Turn } from "./turn.ts";

export function insertExecution(turn: Turn, row: NewExecution): void {
  const key = executionKey(row.path, row.iteration);
  turn.inserts.set(key, row);
  turn.touched.set(row.path, key);
}

/** What `entry` of a new row is. */
export function nextEntry({ state }: Turn, path: string): number | null {
  if (!isInItem(path)) return null;
  state.entered += 1;
  return state.entered;
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
  const { output = outputSoFar(turn, execution, key) } = change;
  if (inserted !== undefined) {
    const row = { status, attempt, output, error, completion, items, completedAt };
    turn.inserts.set(key, { ...inserted, ...row });
    return;
  }
  turn.updates.set(key, {
    stepId,
    path,
    iteration,
    status,
    attempt,
    output,
    error,
    completion,
    items,
    completedAt,
    retryAt,
    awaited,
  });
}

/**
 * What this turn has written stays, as what an earlier one has; null is an output like any other. Before it
 * has come to its end only a wait for ALL of several events has one: those that have come.
 *
 * @throws MissingReads
 */
function outputSoFar(
  turn: Turn,
  { stepId, awaiting }: LiveExecution,
  key: string,
): Json | undefined {
  const written = turn.inserts.get(key) ?? turn.updates.get(key);
  const step = turn.definition.steps.get(stepId);
  if (written !== undefined || awaiting === undefined || step?.type !== "EVENT_WAIT")
    return written?.output;
  const haveCome = step.events.length - Object.keys(awaiting).length;
  return haveCome > 0 ? wholeExecutionOf(turn, key).output : undefined;
}

function itemCounts({ count, completed, failed }: OpenItems): ItemCounts {
  return { count, completed, failed };
}
