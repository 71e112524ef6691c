import { isInItem, takeApartKey } from "../definition/paths.ts";
import type { ExecutionRead } from "../state/reads.ts";
import type { HeldSignal, Signal } from "../state/signal.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import { resolveDeadLetter } from "./dead-letter.ts";
import { stopLive } from "./end.ts";
import { placed } from "./execution.ts";
import { intervene, resume } from "./pause.ts";
import { unsettledItems } from "./live-executions.ts";
import { everyExecution } from "./read-rows.ts";
import { listen } from "./start.ts";
import { changeStatus, move, note } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { leaveAgain, stepOf } from "./walk.ts";

/**
 * What an operator does with an instance that FAILED, or whose retries are spent: it goes on, from where
 * it failed or from a step that is named. What was completed stays as it is, and so does its output.
 *
 * Whatever runs again is a new execution, with an iteration, attempts and an idempotency key of its own.
 * A PARALLEL or MAP in which a step failed runs again as a whole: what was live in it was stopped.
 */

/** Why it cannot be retried now; undefined where it can. */
export function retryRefusal(snapshot: Snapshot): string | undefined {
  const { status, pause, compensation } = snapshot;
  if (pause?.cause === "EXHAUSTED") return undefined;
  if (status !== "FAILED") return `is ${status}`;
  if (!isSettled(snapshot)) return "is being compensated";
  if (compensation !== null && compensation.completed.length > 0) return "has been compensated";
  return undefined;
}

export function requestRetry(
  turn: Turn,
  {
    intervention,
    actor,
    reason,
    fromStepId,
    held = [],
  }: Extract<Signal, { kind: "retryRequested" }>,
): void {
  if (retryRefusal(turn.state) !== undefined || !intervene(turn, intervention)) return;
  note(turn, { type: "workflow.retried", actor, data: { reason, fromStepId } });
  if (turn.state.status === "PAUSED") retryPaused(turn, fromStepId, held);
  else retryFailed(turn, { actor, reason, fromStepId });
}

/** The step whose retries are spent has another round of them, unless another step is named. */
function retryPaused(turn: Turn, fromStepId: string | null, held: readonly HeldSignal[]): void {
  if (fromStepId !== null) {
    countOn(turn, everyExecution(turn));
    stopLive(turn, `the instance goes on from step "${fromStepId}"`, true);
  }
  resume(turn, held);
  if (fromStepId !== null) move(turn, { kind: "enter", stepId: fromStepId, within: undefined });
}

function retryFailed(
  turn: Turn,
  {
    actor,
    reason,
    fromStepId,
  }: { readonly actor: string; readonly reason: string | null; readonly fromStepId: string | null },
): void {
  const { state } = turn;
  const rows = everyExecution(turn);
  const { failedAt } = state;
  countOn(turn, rows);
  turn.settled = false;
  resolveDeadLetter(turn, "RETRIED", actor, reason);
  changeStatus(turn, "RUNNING");
  state.error = null;
  state.completedAt = null;
  state.compensation = null;
  state.failedAt = null;
  state.reopened += 1;
  if (!listen(turn)) return;
  const hadBegun = state.startedAt !== null;
  state.startedAt ??= turn.now;
  const start = hadBegun ? undefined : turn.definition.start;
  const named = fromStepId ?? start;
  if (named !== undefined) move(turn, { kind: "enter", stepId: named, within: undefined });
  else if (failedAt !== null) goOnAt(turn, failedAt, rows);
}

/**
 * Where it failed. A step that had completed, and whose transitions failed, is left once more; any other
 * runs again. Where it was the definition's output that failed there is no step, and it is worked out
 * once more.
 */
function goOnAt(turn: Turn, failedAt: string, rows: readonly ExecutionRead[]): void {
  const { path: stepId, iteration } = takeApartKey(failedAt);
  const current = stepOf(turn, stepId);
  const row = rows.find((each) => executionKey(each.path, each.iteration) === failedAt);
  if (row !== undefined && row.completion !== null && current.type !== "END") {
    leaveAgain(turn, current, placed(current, undefined, iteration));
  } else {
    move(turn, { kind: "enter", stepId, within: undefined });
  }
}

/** Executions that come are new ones, and steps that have completed count for progress once. */
export function countOn(turn: Turn, rows: readonly ExecutionRead[]): void {
  const { definition, state } = turn;
  const iterations = { ...state.iterations };
  const counted = new Set(state.countedSteps);
  for (const { stepId, path, iteration, completion } of rows) {
    const current = definition.steps.get(stepId);
    // What is inside of a PARALLEL or MAP takes its number from there.
    if (current === undefined || current.repeats || current.lineage.length === 0) {
      iterations[path] = Math.max(iterations[path] ?? 0, iteration);
    }
    if (current !== undefined && completion !== null && !isInItem(path)) counted.add(path);
  }
  state.iterations = iterations;
  state.countedSteps = [...counted];
  // What is neither is an item that has settled; beside it only what is live is still to do.
  turn.lostItems = 0;
  state.begunItems = Object.values(state.live).reduce(
    (items, execution) => items + unsettledItems(execution),
    state.completedSteps - counted.size,
  );
}
