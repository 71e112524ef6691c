import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { Step, Transitions } from "../definition/definition.ts";
import type { LiveExecution, WorkflowError } from "../state/snapshot.ts";
import { failInstance } from "./end.ts";
import { enterStep } from "./enter.ts";
import { expressionError } from "./evaluate.ts";
import {
  insertInstant,
  newExecution,
  nextIteration,
  settleCompleted,
  settleFailed,
  settleSkipped,
} from "./execution.ts";
import { evaluateCondition } from "./scope.ts";
import { note, noteError, putLive, setTimer } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * Moving along the graph: choosing transitions, routing errors, entering steps.
 *
 * A walk is a loop and not a recursion: passing a step says which one follows at once, if any does.
 */

/** Steps that one decision walks through before it commits and goes on (DESIGN, The pure core). */
const maxWalk = 1_000;

/** Enters `stepId` and whatever follows it without work outside. */
export function walk(turn: Turn, stepId: string | undefined): void {
  for (let next = stepId; next !== undefined; next = pass(turn, stepOf(turn, next))) {
    turn.walked += 1;
    if (turn.walked > maxWalk) return park(turn, stepOf(turn, next));
  }
}

export function stepOf({ definition }: Turn, stepId: string): Step {
  return defined(definition.steps.get(stepId), `step ${stepId}`);
}

/** The execution succeeded: what follows is entered. */
export function goOn(turn: Turn, execution: LiveExecution, output: Json | undefined): void {
  const current = stepOf(turn, execution.stepId);
  settleCompleted(turn, current, execution, output);
  walk(turn, leave(turn, current, execution));
}

/** It FAILED for good: the walk goes on at `handler`, else by `onError`, else the instance ends. */
export function goAstray(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  handler?: string,
): void {
  settleFailed(turn, execution, error);
  walk(turn, handler ?? routeError(turn, stepOf(turn, execution.stepId), error));
}

/** The step to go to with this error; undefined when it has ended the instance. */
function routeError(turn: Turn, { onError }: Step, error: WorkflowError): string | undefined {
  const route = onError.find(({ errors }) => errors.includes(error.type) || errors.includes("*"));
  if (route === undefined) failInstance(turn, error);
  return route?.to;
}

/** Goes through one step: enters it, and leaves it where it is done at once. */
function pass(turn: Turn, current: Step): string | undefined {
  const execution = newExecution(turn, current);
  if (execution.iteration > current.maxIterations) return tooOften(turn, current, execution);
  try {
    if (current.condition !== undefined && !evaluateCondition(turn, current.condition)) {
      insertInstant(turn, current.type, execution);
      settleSkipped(turn, execution);
      return current.transitions.default;
    }
    if (!enterStep(turn, current, execution)) return undefined;
  } catch (thrown) {
    const error = expressionError(thrown, current.stepId, "entering it");
    insertInstant(turn, current.type, execution);
    settleFailed(turn, execution, error);
    return routeError(turn, current, error);
  }
  return leave(turn, current, execution);
}

/**
 * The error goes through `onError` only the first time: two steps that are past their guard could
 * else hand it to each other for ever.
 */
function tooOften(turn: Turn, current: Step, execution: LiveExecution): string | undefined {
  const { stepId, maxIterations } = current;
  const error: WorkflowError = {
    kind: "LIMIT",
    type: "MAX_ITERATIONS",
    message: `step "${stepId}" was entered more than ${maxIterations} times; raise its maxIterations if that is meant`,
    stepId,
    attempt: null,
    details: null,
  };
  insertInstant(turn, current.type, execution);
  settleFailed(turn, execution, error);
  if (execution.iteration === maxIterations + 1) return routeError(turn, current, error);
  failInstance(turn, error);
  return undefined;
}

/**
 * Chooses the way out of a step that is COMPLETED. Where that fails the step has still done its work,
 * and can be undone: the error is noted beside its output.
 */
function leave(turn: Turn, current: Step, execution: LiveExecution): string | undefined {
  try {
    return chooseTransition(turn, current.transitions);
  } catch (thrown) {
    const error = expressionError(thrown, current.stepId, "transitions");
    noteError(turn, execution, error);
    return routeError(turn, current, error);
  }
}

function chooseTransition(
  turn: Turn,
  { conditions, default: otherwise }: Transitions,
): string | undefined {
  return conditions.find(({ when }) => evaluateCondition(turn, when))?.to ?? otherwise;
}

/**
 * A walk that was cut short goes on in a decision of its own, which a timer due now brings about. The
 * step waits under the iteration that it will have, so that a repeated timer is void.
 */
function park(turn: Turn, current: Step): void {
  const { stepId } = current;
  const parked: LiveExecution = {
    stepId,
    path: stepId,
    iteration: nextIteration(turn, current),
    phase: "READY",
    attempt: 1,
    timers: ["continue"],
  };
  putLive(turn, parked);
  setTimer(turn, "continue", parked, turn.now);
  note(turn, { type: "workflow.continued", stepId });
}
