import { childIdOf } from "../child-id.ts";
import type { SubWorkflowStep } from "../definition/definition.ts";
import { LimitError } from "../errors.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { withCalled, workflowCalled } from "./called.ts";
import { after, clockMs } from "./evaluate.ts";
import { insertInstant, settleCompleted } from "./execution.ts";
import { putLive } from "./live-executions.ts";
import { evaluateTemplate } from "./scope.ts";
import { setTimer } from "./set-timers.ts";
import { note, noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { updateExecution } from "./write-rows.ts";

/**
 * SUB_WORKFLOW: an instance that this one starts, and, unless it is detached, waits for.
 *
 *   start ──► the child runs by itself ──► it settles and says so ──► the step goes on or fails
 *                  ▲ cancel, should the step be stopped
 *
 * Start, cancel and end are each a row that the sender commits and the receiver's commit clears
 * (DESIGN, The state is the outbox). While it waits for its child an instance is WAITING_FOR_EVENT, so
 * that it holds no slot that the child may need.
 */

/** Instances below one that nobody started as a child: whoever starts itself comes to an end. */
const maxDepth = 32;

/** @returns Whether the step is done at once. @throws ExpressionError, BadValueError */
export function enterSubWorkflow(
  turn: Turn,
  current: SubWorkflowStep,
  entered: LiveExecution,
): boolean {
  const execution = withCalled(turn, entered, { workflowId: current.workflowId }, entered);
  const depth = (turn.state.parent?.depth ?? 0) + 1;
  if (depth > maxDepth) {
    const message = `workflows start each other at most ${maxDepth} levels deep, and "${workflowCalled(current, execution)}" would be one level more`;
    throw new LimitError("NESTED_TOO_DEEP", message);
  }
  const { input } = current;
  const value =
    input === undefined ? undefined : (evaluateTemplate(turn, input, execution) ?? null);
  const [timeoutMs, totalMs] = [current.timeout, current.totalTimeout].map((clock) =>
    clockMs(turn, clock, execution),
  );
  insertInstant(turn, current.type, execution, value);
  const child = startChild(turn, current, execution);
  if (current.detached) {
    settleCompleted(turn, current, execution, { instanceId: child });
    return true;
  }
  if (totalMs != null) setTimer(turn, "total", execution, after(turn, totalMs));
  const timed: LiveExecution = totalMs == null ? execution : { ...execution, timers: ["total"] };
  awaitChild(turn, timed, child, timeoutMs ?? null);
  return false;
}

/** @returns The child's id: the same for the same execution, attempt and time. */
export function startChild(turn: Turn, current: SubWorkflowStep, execution: LiveExecution): string {
  const { version, detached } = current;
  const { stepId, path, iteration, attempt } = execution;
  const workflowId = workflowCalled(current, execution);
  const name = `${turn.state.id}/${executionKey(path, iteration)}.${attempt}`;
  const childId = childIdOf(name, turn.now);
  turn.children.set(startKey(childId), {
    kind: "startChild",
    path,
    iteration,
    attempt,
    childId,
    workflowId,
    workflowVersion: version ?? null,
    detached,
  });
  const place = { stepId, ...(path !== stepId && { path }), ...(iteration > 1 && { iteration }) };
  note(turn, { type: "workflow.child.started", ...place, data: { childId, workflowId, detached } });
  return childId;
}

/** @param timeoutMs Of this one child; null: it may take as long as it likes. */
export function awaitChild(
  turn: Turn,
  execution: LiveExecution,
  child: string,
  timeoutMs: number | null,
): void {
  updateExecution(turn, execution, { status: "WAITING" });
  const { timers } = execution;
  if (timeoutMs !== null) setTimer(turn, "attempt", execution, after(turn, timeoutMs));
  putLive(turn, {
    ...execution,
    phase: "WAITING",
    timers: timeoutMs === null ? timers : [...timers, "attempt"],
    child,
  });
  noteStep(turn, "workflow.step.waiting", execution, { childId: child });
}

function startKey(childId: string): string {
  return `start ${childId}`;
}

/**
 * Cancels the child of an execution that is stopped. A parent that was not cancelled itself, but stops
 * its child, has the child undo what it did, unless the definition says that failures undo nothing.
 */
export function cancelChild(
  turn: Turn,
  { path, iteration, attempt }: LiveExecution,
  childId: string,
  { reason, isAwaited }: { readonly reason: string; readonly isAwaited: boolean },
): void {
  // Started in this same turn it never comes to be, unless its end is awaited.
  if (!isAwaited && turn.children.delete(startKey(childId))) return;
  const { cancellation } = turn.state;
  turn.children.set(`cancel ${childId}`, {
    kind: "cancelChild",
    path,
    iteration,
    attempt,
    childId,
    reason: cancellation === null ? reason : cancellation.reason,
    shouldCompensate: cancellation?.shouldCompensate ?? turn.definition.childrenCompensate,
  });
}
