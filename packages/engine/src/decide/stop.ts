import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import { cancelChild } from "./child.ts";
import { graceMs, noteUnknown } from "./compensate.ts";
import { abortAttempt } from "./dispatch.ts";
import { after } from "./evaluate.ts";
import { putLive, removeLive } from "./live-executions.ts";
import { executionOf, observeStatus } from "./read-rows.ts";
import { dropTimer, setTimer } from "./set-timers.ts";
import { attemptsBegun } from "./step-views.ts";
import { noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { updateExecution } from "./write-rows.ts";

/**
 * A running step is told, and a child that it waits for is cancelled. While compensating, one that has a
 * compensation step stays on, AWAITED, for its grace; everything else is CANCELLED at once (CONTRACT 2,
 * "A step in flight at a cancel").
 */
export function stopExecution(
  turn: Turn,
  execution: LiveExecution,
  reason: string,
  compensating: boolean,
): void {
  const { phase, stepId, attempt, timers } = execution;
  if (phase === "READY" || phase === "HELD") {
    removeLive(turn, execution);
    return;
  }
  // It lost its branch before, and has its grace already.
  if (phase === "AWAITED" && compensating) return;
  // What waits, is OPEN, or is between two children has nothing outside that could still succeed.
  const isAtWork = phase === "ACTIVE" || execution.child !== undefined;
  const undoable = compensating && isAtWork && turn.definition.compensationFor.has(stepId);
  if (execution.child !== undefined && phase !== "AWAITED") {
    cancelChild(turn, execution, execution.child, { reason, isAwaited: undoable });
    if (undoable) {
      awaitGrace(turn, execution, "WAITING");
      return;
    }
  }
  // For the grace, and for attempts that never began.
  const status = phase === "ACTIVE" ? observeStatus(turn, execution) : "RUNNING";
  if (undoable && status === "RUNNING") {
    awaitGrace(turn, execution, "RUNNING");
    abortAttempt(turn, execution, reason);
    return;
  }
  if (status === "RETRYING" && hasTimedOut(turn, execution)) noteUnknown(turn, execution);
  const begun = attemptsBegun(timers.includes("retry") ? "RETRYING" : status, attempt);
  const stopped = { ...execution, attempt: begun };
  updateExecution(turn, stopped, { status: "CANCELLED", completedAt: turn.now });
  noteStep(turn, "workflow.step.cancelled", stopped);
  removeLive(turn, execution);
  if (phase === "ACTIVE") abortAttempt(turn, execution, reason);
}

/** Its attempt before may still be at it. */
export function hasTimedOut(turn: Turn, { path, iteration }: LiveExecution): boolean {
  return executionOf(turn, executionKey(path, iteration)).error?.kind === "TIMEOUT";
}

function awaitGrace(turn: Turn, execution: LiveExecution, status: StepStatus): void {
  let awaited: LiveExecution = { ...execution, phase: "AWAITED" };
  for (const timer of execution.timers) awaited = dropTimer(turn, awaited, timer);
  putLive(turn, { ...awaited, timers: ["grace"] });
  setTimer(turn, "grace", execution, after(turn, graceMs(turn, execution)));
  updateExecution(turn, execution, { status, awaited: true });
  noteStep(turn, "workflow.step.awaited", execution);
}
