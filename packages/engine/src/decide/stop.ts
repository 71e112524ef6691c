import type { LiveExecution } from "../state/snapshot.ts";
import { graceMs } from "./compensate.ts";
import { abortAttempt } from "./dispatch.ts";
import { after } from "./evaluate.ts";
import { attemptsMade, observeStatus } from "./scope.ts";
import { dropTimer, noteStep, putLive, removeLive, setTimer, updateExecution } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * A running step is told. While compensating, one that has a compensation step stays on, AWAITED, for
 * its grace; everything else is CANCELLED at once (CONTRACT 2, "A step in flight at a cancel").
 */
export function stopExecution(
  turn: Turn,
  execution: LiveExecution,
  reason: string,
  compensating: boolean,
): void {
  const { phase, stepId, attempt } = execution;
  if (phase === "READY") {
    removeLive(turn, execution);
    return;
  }
  // It lost its branch before, and has its grace already.
  if (phase === "AWAITED" && compensating) return;
  const undoable = compensating && turn.definition.compensationFor.has(stepId);
  // A row is looked at only where it matters: for the grace, and for attempts that never began.
  const status = phase === "ACTIVE" && (undoable || attempt > 1) && observeStatus(turn, execution);
  if (undoable && status === "RUNNING") {
    awaitGrace(turn, execution, reason);
    return;
  }
  updateExecution(turn, execution, {
    status: "CANCELLED",
    attempt: attemptsMade(status || "RUNNING", attempt),
    completedAt: turn.now,
  });
  noteStep(turn, "workflow.step.cancelled", execution);
  removeLive(turn, execution);
  if (phase === "ACTIVE") abortAttempt(turn, execution, reason);
}

function awaitGrace(turn: Turn, execution: LiveExecution, reason: string): void {
  let awaited: LiveExecution = { ...execution, phase: "AWAITED" };
  for (const timer of execution.timers) awaited = dropTimer(turn, awaited, timer);
  putLive(turn, { ...awaited, timers: ["grace"] });
  setTimer(turn, "grace", execution, after(turn, graceMs(turn, execution)));
  updateExecution(turn, execution, { status: "RUNNING", awaited: true });
  noteStep(turn, "workflow.step.awaited", execution);
  abortAttempt(turn, execution, reason);
}
