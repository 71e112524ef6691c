import type { Json } from "@millrace/expressions";
import type { Step } from "../definition/definition.ts";
import type { LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { insertExecution, noteStep, updateExecution } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** How one execution of a step begins and settles. None of this moves the instance on. */

/** Steps whose output can become the instance's (CONTRACT 1, Default `output`). */
const outputTypes: ReadonlySet<Step["type"]> = new Set(["TASK", "EVENT_WAIT"]);

/** The next execution of a step, counted as begun. */
export function newExecution(turn: Turn, current: Step): LiveExecution {
  const { stepId, repeats } = current;
  const iteration = nextIteration(turn, current);
  if (repeats) turn.state.iterations = { ...turn.state.iterations, [stepId]: iteration };
  return { stepId, path: stepId, iteration, phase: "ACTIVE", attempt: 1, timers: [] };
}

/** Only steps on a cycle are counted: any other is entered once. */
export function nextIteration({ state }: Turn, { stepId, repeats }: Step): number {
  const { iterations } = state;
  if (!repeats || !Object.hasOwn(iterations, stepId)) return 1;
  return (iterations[stepId] ?? 0) + 1;
}

/** The row of an execution that no worker runs; the status that it begins with is set next. */
export function insertInstant(
  turn: Turn,
  type: string,
  { stepId, path, iteration, attempt, compensates }: LiveExecution,
): void {
  insertExecution(turn, {
    stepId,
    path,
    iteration,
    type,
    status: "PENDING",
    attempt,
    taskId: null,
    queue: null,
    priority: 0,
    input: undefined,
    output: undefined,
    error: null,
    completion: null,
    timeoutMs: null,
    heartbeatTimeoutMs: null,
    startedAt: turn.now,
    completedAt: null,
    compensates: compensates ?? null,
  });
}

/** COMPLETED, with the next completion number. */
export function settleCompleted(
  turn: Turn,
  { type }: Step,
  execution: LiveExecution,
  output: Json | undefined,
): void {
  const { state, now } = turn;
  state.completions += 1;
  if (execution.iteration === 1) state.completedSteps += 1;
  if (outputTypes.has(type)) state.lastOutput = executionKey(execution.path, execution.iteration);
  updateExecution(turn, execution, {
    status: "COMPLETED",
    output,
    error: null,
    completion: state.completions,
    completedAt: now,
  });
  noteStep(turn, "workflow.step.completed", execution);
}

export function settleFailed(turn: Turn, execution: LiveExecution, error: WorkflowError): void {
  updateExecution(turn, execution, { status: "FAILED", error, completedAt: turn.now });
  noteStep(turn, "workflow.step.failed", execution, { error: { ...error } });
}

export function settleSkipped(turn: Turn, execution: LiveExecution): void {
  updateExecution(turn, execution, { status: "SKIPPED", completedAt: turn.now });
  noteStep(turn, "workflow.step.skipped", execution);
}
