import type { Json } from "@millrace/expressions";
import type { EndStep } from "../definition/definition.ts";
import type { Cancellation, LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { beginCompensation, graceMs } from "./compensate.ts";
import { evaluateTemplate, MissingReads, storedExecution, touchedExecution } from "./scope.ts";
import {
  changeStatus,
  clearInstanceTimers,
  closeWait,
  dropTimer,
  note,
  putLive,
  removeLive,
  setTimer,
  updateExecution,
} from "./turn.ts";
import type { Turn } from "./turn.ts";
import { closeTriggers } from "./wait.ts";
import { after, expressionError, noteStep } from "./walk.ts";

/** How an instance ends: completion, failure, cancel, and the END step that asks for one of them. */

/** Nothing is live any more: the instance completes. Called at the end of every turn. */
export function completeIfDone(turn: Turn): void {
  const { status, live } = turn.state;
  if (isTerminal(status) || status === "CREATED" || Object.keys(live).length > 0) return;
  let output: Json;
  try {
    output = finalOutput(turn);
  } catch (thrown) {
    failInstance(turn, expressionError(thrown, null, "the definition's output"));
    return;
  }
  complete(turn, output);
}

function finalOutput(turn: Turn): Json {
  const { output } = turn.definition;
  if (output !== undefined) return evaluateTemplate(turn, output) ?? null;
  return lastOutput(turn);
}

/** CONTRACT 1, Default `output`. */
function lastOutput(turn: Turn): Json {
  const key = turn.state.lastOutput;
  if (key === null) return null;
  const hash = key.lastIndexOf("#");
  const [path, iteration] = [key.slice(0, hash), Number(key.slice(hash + 1))];
  const read = touchedExecution(turn, key) ?? storedExecution(turn, path, iteration);
  if (read.outputLeftOut) throw new MissingReads([{ kind: "execution", path, iteration }]);
  return read.output ?? null;
}

function complete(turn: Turn, output: Json): void {
  stopLive(turn, "the instance completed", false);
  if (turn.state.status === "WAITING_FOR_EVENT") changeStatus(turn, "RUNNING");
  changeStatus(turn, "COMPLETED");
  turn.state.output = output;
  note(turn, { type: "workflow.completed" });
  settle(turn);
}

export function failInstance(turn: Turn, error: WorkflowError): void {
  const { compensateOnFailure } = turn.definition;
  const compensating = compensateOnFailure && error.kind !== "POISONED";
  stopLive(turn, `the instance failed: ${error.message}`, compensating);
  changeStatus(turn, "FAILED");
  turn.state.error = error;
  note(turn, { type: "workflow.failed", data: { error: { ...error } } });
  compensateOrSettle(turn, compensating);
}

export function cancelInstance(turn: Turn, cancellation: Cancellation): void {
  turn.state.cancellation = cancellation;
  stopLive(turn, "the instance was cancelled", cancellation.shouldCompensate);
  changeStatus(turn, "CANCELLED");
  note(turn, {
    type: "workflow.cancelled",
    actor: cancellation.requestedBy,
    data: { ...cancellation },
  });
  compensateOrSettle(turn, cancellation.shouldCompensate);
}

/** An END step ends the whole instance, as completion, failure or cancel would (CONTRACT 1.1). */
export function endInstance(
  turn: Turn,
  { stepId, outcome, output: ownOutput }: EndStep,
  values: { output: Json | undefined; error: Json | undefined; reason: Json | undefined },
): void {
  switch (outcome) {
    case "COMPLETED": {
      const output = ownOutput === undefined ? finalOutput(turn) : (values.output ?? null);
      return complete(turn, output);
    }
    case "FAILED":
      return failInstance(turn, endError(stepId, values.error));
    case "CANCELLED":
      return cancelInstance(turn, {
        reason: asText(values.reason) ?? null,
        requestedBy: `step:${stepId}`,
        requestedAt: turn.now.toISOString(),
        source: "END",
        shouldCompensate: true,
      });
  }
}

function endError(stepId: string, value: Json | undefined): WorkflowError {
  const given =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as { readonly [key: string]: Json })
      : {};
  return {
    kind: "END",
    type: asText(given["type"]) ?? "FAILED",
    message: asText(given["message"]) ?? asText(value) ?? `the workflow ended at step "${stepId}"`,
    stepId,
    attempt: null,
    details: given["details"] ?? null,
  };
}

function asText(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "object") return undefined;
  return String(value);
}

/**
 * Stops all that is live (CONTRACT 2, "A step in flight at a cancel"). What waits is CANCELLED; a
 * running step is told. While compensating, a running step that has a compensation step stays on,
 * AWAITED, for its grace.
 */
function stopLive(turn: Turn, reason: string, compensating: boolean): void {
  for (const execution of Object.values(turn.state.live)) {
    stopExecution(turn, execution, reason, compensating);
  }
  closeTriggers(turn);
  clearInstanceTimers(turn);
}

function stopExecution(
  turn: Turn,
  execution: LiveExecution,
  reason: string,
  compensating: boolean,
): void {
  const { path, iteration, phase, stepId } = execution;
  if (phase === "READY") {
    removeLive(turn, execution);
    return;
  }
  if (phase === "WAITING") closeWait(turn, path, iteration);
  const mayHaveEffect =
    phase === "ACTIVE" && compensating && turn.definition.compensationFor.has(stepId);
  if (mayHaveEffect && isRunning(turn, execution)) {
    awaitGrace(turn, execution, reason);
    return;
  }
  updateExecution(turn, execution, { status: "CANCELLED", completedAt: turn.now });
  noteStep(turn, "workflow.step.cancelled", execution);
  removeLive(turn, execution);
  if (phase === "ACTIVE") abort(turn, execution, reason);
}

/** Whether a worker has the step; relies on the row, so the commit checks that it is still so. */
function isRunning(turn: Turn, { path, iteration }: LiveExecution): boolean {
  const key = executionKey(path, iteration);
  if (turn.inserts.has(key)) return false;
  const { status, fence } = storedExecution(turn, path, iteration);
  if (status === "RUNNING") turn.observedRunning.add(key);
  else turn.guards.set(key, { kind: "execution", path, iteration, status, fence });
  return status === "RUNNING";
}

function awaitGrace(turn: Turn, execution: LiveExecution, reason: string): void {
  let waiting = execution;
  for (const timer of execution.timers) waiting = dropTimer(turn, waiting, timer);
  putLive(turn, { ...waiting, phase: "AWAITED", timers: ["grace"] });
  setTimer(turn, "grace", execution, after(turn, graceMs(turn, execution)));
  updateExecution(turn, execution, { status: "RUNNING", awaited: true });
  noteStep(turn, "workflow.step.awaited", execution);
  abort(turn, execution, reason);
}

function abort(turn: Turn, { path, iteration }: LiveExecution, reason: string): void {
  const key = executionKey(path, iteration);
  if (!turn.inserts.has(key)) turn.aborts.set(key, { kind: "abort", path, iteration, reason });
}

function compensateOrSettle(turn: Turn, compensating: boolean): void {
  if (compensating && turn.definition.compensationFor.size > 0) beginCompensation(turn);
  else settle(turn);
}

/** Status and compensation are final: what the instance still had waiting goes in this commit. */
export function settle(turn: Turn): void {
  turn.state.completedAt = turn.now;
  turn.settled = true;
}
