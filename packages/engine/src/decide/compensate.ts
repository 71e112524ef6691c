import type { Json } from "@millrace/expressions";
import type { CompensationStep } from "../definition/definition.ts";
import { defined } from "../assert.ts";
import type { ExecutionRead } from "../state/reads.ts";
import type { Compensation, LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { settle } from "./end.ts";
import { evaluateCondition, evaluateTemplate, everyStep, MissingReads, touchedExecution } from "./scope.ts";
import { note, removeLive, updateExecution } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { clockMs, dispatchTask, expressionError, noteStep, step } from "./walk.ts";

/**
 * Undoing what was done, in reverse order of completion (CONTRACT 1 and 2, PROMISES P9).
 *
 *   begin ──► await what is in flight ──► freeze the plan ──► one step at a time ──► settle
 *
 * Every compensation step is a durable step execution of its own, so that a crash loses nothing.
 */

/** Upper bound of the wait for a step in flight (DESIGN, Cancel, failure and the step in flight). */
const cancelGraceMs = 30_000;

/** Outputs beyond this are left out of the default input's `workflowState` (CONTRACT 1). */
const stateOutputBytes = 65_536;

/** Milliseconds that a step in flight is awaited: its own timeout, at most 30 s. */
export function graceMs(turn: Turn, { stepId }: LiveExecution): number {
  const current = step(turn, stepId);
  if (current.type !== "TASK" || current.timeout === undefined) return cancelGraceMs;
  try {
    return Math.min(clockMs(turn, current.timeout) ?? cancelGraceMs, cancelGraceMs);
  } catch (thrown) {
    expressionError(thrown, stepId, "timeout");
    return cancelGraceMs;
  }
}

export function beginCompensation(turn: Turn): void {
  turn.state.compensation = {
    status: "IN_PROGRESS",
    frozen: false,
    plan: [],
    targets: [],
    next: 0,
    completed: [],
    failed: [],
    uncertain: [],
    startedAt: turn.now.toISOString(),
    completedAt: null,
  };
  note(turn, { type: "workflow.compensation.started" });
  freezeWhenSettled(turn);
}

/** A step in flight at the cancel has settled, or its outcome stays unknown. */
export function settleAwaited(
  turn: Turn,
  execution: LiveExecution,
  outcome: "CANCELLED" | "UNKNOWN",
): void {
  updateExecution(turn, execution, { status: "CANCELLED", completedAt: turn.now });
  removeLive(turn, execution);
  if (outcome === "UNKNOWN") {
    const compensation = progress(turn);
    turn.state.compensation = {
      ...compensation,
      uncertain: [...compensation.uncertain, execution.path],
    };
  }
  noteStep(turn, "workflow.step.cancelled", execution, { outcome });
  freezeWhenSettled(turn);
}

/** Freezes the plan once nothing is in flight any more, and starts its first step. */
export function freezeWhenSettled(turn: Turn): void {
  const inFlight = Object.values(turn.state.live).some(({ phase }) => phase === "AWAITED");
  if (inFlight) return;
  turn.state.compensation = { ...progress(turn), frozen: true, ...freezePlan(turn) };
  startNext(turn);
}

/**
 * The completed executions that have a compensation step whose condition holds, latest completion
 * first. A condition that cannot be evaluated is a failed compensation; the rest still run.
 */
export function freezePlan(turn: Turn): Pick<Compensation, "plan" | "targets" | "failed"> {
  const plan: string[] = [];
  const targets: string[] = [];
  const failed: Compensation["failed"][number][] = [];
  for (const done of completedExecutions(turn)) {
    const compensation = turn.definition.compensationFor.get(done.stepId);
    if (compensation === undefined) continue;
    try {
      if (!conditionHolds(turn, compensation, done)) continue;
    } catch (thrown) {
      const error = expressionError(thrown, compensation.stepId, "condition");
      failed.push({ stepId: compensation.stepId, error, timestamp: turn.now.toISOString() });
      continue;
    }
    plan.push(compensation.stepId);
    targets.push(executionKey(done.path, done.iteration));
  }
  return { plan, targets, failed };
}

function conditionHolds(turn: Turn, { condition }: CompensationStep, pinned: ExecutionRead): boolean {
  return condition === undefined || evaluateCondition(turn, condition, { pinned });
}

/** Latest completion first. @throws MissingReads */
function completedExecutions(turn: Turn): readonly ExecutionRead[] {
  if (!turn.reads.all) throw new MissingReads([{ kind: "all" }]);
  const keys = new Set([
    ...turn.reads.executions.keys(),
    ...turn.inserts.keys(),
    ...turn.updates.keys(),
  ]);
  return [...keys]
    .map((key) => touchedExecution(turn, key) ?? turn.reads.executions.get(key))
    .filter((read) => read?.status === "COMPLETED" && read.completion !== null)
    .map((read) => defined(read, "execution"))
    .toSorted((a, b) => (b.completion ?? 0) - (a.completion ?? 0));
}

/** Starts the next compensation step that can be started; settles when none is left. */
function startNext(turn: Turn): void {
  for (let { next, plan } = progress(turn); next < plan.length; next = progress(turn).next) {
    if (start(turn, next)) return;
  }
  finish(turn);
}

/** False where the step's values failed: it is recorded, and the next one has its turn. */
function start(turn: Turn, index: number): boolean {
  const { plan, targets } = progress(turn);
  const stepId = defined(plan[index], "compensation step");
  const compensation = defined(turn.definition.compensationSteps.get(stepId), stepId);
  const iteration = plan.slice(0, index + 1).filter((id) => id === stepId).length;
  const target = defined(targets[index], "compensation target");
  const execution: LiveExecution = {
    stepId,
    path: stepId,
    iteration,
    phase: "ACTIVE",
    attempt: 1,
    timers: [],
    compensates: target,
  };
  try {
    const pinned = targetExecution(turn, target);
    dispatchTask(turn, compensation, execution, inputOf(turn, compensation, pinned), { pinned });
    return true;
  } catch (thrown) {
    recordFailure(turn, stepId, expressionError(thrown, stepId, "input"));
    return false;
  }
}

function targetExecution(turn: Turn, key: string): ExecutionRead {
  const hash = key.lastIndexOf("#");
  const request = {
    kind: "execution",
    path: key.slice(0, hash),
    iteration: Number(key.slice(hash + 1)),
  } as const;
  const read = touchedExecution(turn, key) ?? turn.reads.executions.get(key);
  if (!read || read.outputLeftOut) throw new MissingReads([request]);
  return read;
}

function inputOf(turn: Turn, { input }: CompensationStep, pinned: ExecutionRead): Json | undefined {
  if (input !== undefined) return evaluateTemplate(turn, input, { pinned });
  const { input: workflowInput, variables, cancellation } = turn.state;
  const steps = Object.fromEntries(
    Object.entries(everyStep(turn, pinned)).map(([id, { output, ...view }]) => [
      id,
      fitsState(output) ? { ...view, output } : view,
    ]),
  );
  return {
    originalOutput: pinned.output ?? null,
    workflowInput,
    workflowState: { input: workflowInput, variables, steps } as Json,
    cancellation: cancellation as unknown as Json,
  };
}

function fitsState(output: Json | undefined): output is Json {
  return output !== undefined && JSON.stringify(output).length <= stateOutputBytes;
}

/** A compensation step succeeded. */
export function completeCompensation(
  turn: Turn,
  execution: LiveExecution,
  output: Json | undefined,
): void {
  updateExecution(turn, execution, { status: "COMPLETED", output, completedAt: turn.now });
  noteStep(turn, "workflow.compensation.step.completed", execution);
  removeLive(turn, execution);
  const compensation = progress(turn);
  turn.state.compensation = {
    ...compensation,
    completed: [...compensation.completed, execution.stepId],
    next: compensation.next + 1,
  };
  startNext(turn);
}

/** A compensation step failed for good: it is recorded, and the rest still run. */
export function failCompensation(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
): void {
  updateExecution(turn, execution, { status: "FAILED", error, completedAt: turn.now });
  noteStep(turn, "workflow.compensation.step.failed", execution, { error: { ...error } });
  removeLive(turn, execution);
  recordFailure(turn, execution.stepId, error);
  startNext(turn);
}

function recordFailure(turn: Turn, stepId: string, error: WorkflowError): void {
  const compensation = progress(turn);
  turn.state.compensation = {
    ...compensation,
    failed: [...compensation.failed, { stepId, error, timestamp: turn.now.toISOString() }],
    next: compensation.next + 1,
  };
}

function finish(turn: Turn): void {
  const compensation = progress(turn);
  const status = compensation.failed.length > 0 ? "COMPLETED_WITH_ERRORS" : "COMPLETED";
  turn.state.compensation = { ...compensation, status, completedAt: turn.now.toISOString() };
  note(turn, { type: "workflow.compensation.completed", data: { status } });
  settle(turn);
}

function progress(turn: Turn): Compensation {
  return defined(turn.state.compensation, "compensation");
}
