import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { Step, Transitions } from "../definition/definition.ts";
import type { LiveExecution, Place, WorkflowError } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { failInstance, failPoisoned } from "./end.ts";
import { enterStep } from "./enter.ts";
import { expressionError } from "./evaluate.ts";
import {
  insertInstant,
  newExecution,
  nextIteration,
  placeAfter,
  placed,
  settleCompleted,
  settleFailed,
  settleSkipped,
  settleUnleft,
  takeUpAgain,
} from "./execution.ts";
import { endBranch, failBranch, isOpen } from "./join.ts";
import type { Joined } from "./join.ts";
import { putLive, removeLive } from "./live-executions.ts";
import { hold, isPaused } from "./pause.ts";
import { evaluateCondition } from "./scope.ts";
import { setTimer } from "./set-timers.ts";
import { lacksSlot } from "./slot.ts";
import { move, note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * Moving along the graph: choosing transitions, routing errors, entering steps.
 *
 * A walk is a loop and not a recursion: passing a step says which one follows at once, if any does.
 */

/** Steps that one decision walks through before it commits and goes on (DESIGN, The pure core). */
const maxWalk = 1_000;

/** Goes through all that is to be done, until every branch has come to work outside or to its end. */
export function walk(turn: Turn): void {
  for (let next = turn.agenda.shift(); next !== undefined; next = turn.agenda.shift()) {
    if (next.within !== undefined && !isOpen(turn, next.within)) continue;
    switch (next.kind) {
      case "enter":
        walkFrom(turn, next.stepId, next.within);
        break;
      case "ended":
        proceed(turn, endBranch(turn, next.within));
        break;
      case "failed":
        proceed(turn, failBranch(turn, next.within, next.error));
        break;
    }
  }
}

/** Enters `stepId` and whatever follows it without work outside. */
function walkFrom(turn: Turn, stepId: string, within: Place | undefined): void {
  let next: Next = { stepId, within };
  while (next !== undefined) {
    turn.walked += 1;
    const current = stepOf(turn, next.stepId);
    if (turn.walked > maxWalk || (current.type === "TASK" && lacksSlot(turn))) {
      return park(turn, current, next.within);
    }
    next = pass(turn, current, next.within);
  }
}

/** A step to enter; undefined where this walk is over, since the branch waits, has ended or failed. */
type Next = { readonly stepId: string; readonly within: Place | undefined } | undefined;

/** A PARALLEL or MAP whose branches have settled it is left as any other step. */
function proceed(turn: Turn, joined: Joined | undefined): void {
  if (joined === undefined) return;
  if ("error" in joined) goAstray(turn, joined.execution, joined.error);
  else goOn(turn, joined.execution, joined.output);
}

export function stepOf({ definition }: Turn, stepId: string): Step {
  return defined(definition.steps.get(stepId), `step ${stepId}`);
}

/** The execution succeeded: what follows is entered, `to` in place of what its transitions say. */
export function goOn(
  turn: Turn,
  execution: LiveExecution,
  output: Json | undefined,
  to?: string,
): void {
  const current = stepOf(turn, execution.stepId);
  settleCompleted(turn, current, execution, output);
  turn.moving = true;
  if (isPaused(turn)) hold(turn, execution);
  else if (to === undefined) enter(turn, leave(turn, current, execution));
  else enter(turn, { stepId: to, within: placeAfter(current, execution) });
}

/** The pause is over: an execution that settled meanwhile is left as any other. */
export function leaveHeld(turn: Turn, execution: LiveExecution): void {
  const { heldAt: _heldAt, error, ...settled } = execution;
  removeLive(turn, execution);
  turn.moving = true;
  turn.touched.set(settled.path, executionKey(settled.path, settled.iteration));
  const current = stepOf(turn, settled.stepId);
  if (error === undefined) enter(turn, leave(turn, current, settled));
  else if (error.kind === "POISONED") failPoisoned(turn, settled, error);
  else enter(turn, routeError(turn, current, settled.within, error));
}

/** It had completed, and could not be left: should it be now, nothing has failed. */
export function leaveAgain(turn: Turn, current: Step, execution: LiveExecution): void {
  takeUpAgain(turn, execution);
  enter(turn, leave(turn, current, execution));
}

/** It FAILED for good: the walk goes on at `handler`, else by `onError`, else the branch fails. */
export function goAstray(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  handler?: string,
): void {
  settleFailed(turn, execution, error);
  turn.moving = true;
  if (isPaused(turn)) {
    hold(turn, execution, error);
    return;
  }
  const { within } = execution;
  if (handler !== undefined) enter(turn, { stepId: handler, within });
  else enter(turn, routeError(turn, stepOf(turn, execution.stepId), within, error));
}

function enter(turn: Turn, next: Next): void {
  if (next !== undefined) move(turn, { kind: "enter", ...next });
}

/** The step to go to with this error; undefined when it has failed the branch or the instance. */
function routeError(
  turn: Turn,
  current: Step,
  within: Place | undefined,
  error: WorkflowError,
): Next {
  const route = routeOf(current, error);
  if (route !== undefined) return { stepId: route.to, within };
  if (within === undefined) failInstance(turn, error);
  else move(turn, { kind: "failed", within, error });
  return undefined;
}

export function routeOf(
  { onError }: Step,
  { type, kind }: WorkflowError,
): Step["onError"][number] | undefined {
  return onError.find(({ errors }) => [type, kind, "*"].some((name) => errors.includes(name)));
}

/** Goes through one step: enters it, and leaves it where it is done at once. */
function pass(turn: Turn, current: Step, within: Place | undefined): Next {
  const execution = newExecution(turn, current, within);
  turn.walkingAt = execution.path;
  if (execution.iteration > current.maxIterations && current.repeats) {
    return tooOften(turn, current, execution);
  }
  try {
    if (current.condition !== undefined && !evaluateCondition(turn, current.condition, execution)) {
      insertInstant(turn, current.type, execution);
      settleSkipped(turn, execution);
      return nextOf(turn, current.transitions.default, within);
    }
    if (!enterStep(turn, current, execution)) return undefined;
  } catch (thrown) {
    const error = expressionError(thrown, current.stepId, "entering it");
    const failed = isForOthers(current) ? { ...execution, attempt: 0 } : execution;
    insertInstant(turn, current.type, failed);
    settleFailed(turn, failed, error);
    return routeError(turn, current, within, error);
  }
  return leave(turn, current, execution);
}

/** What is tried is done by a worker, or is another instance. */
function isForOthers({ type }: Step): boolean {
  return type === "TASK" || type === "SUB_WORKFLOW";
}

/** Without a way on the branch has ended; an instance ends when nothing of it is live any more. */
function nextOf(turn: Turn, stepId: string | undefined, within: Place | undefined): Next {
  if (stepId !== undefined) return { stepId, within };
  if (within !== undefined) move(turn, { kind: "ended", within });
  return undefined;
}

/**
 * The error goes through `onError` only the first time: two steps that are past their guard could
 * else hand it to each other for ever.
 */
function tooOften(turn: Turn, current: Step, execution: LiveExecution): Next {
  const { stepId, maxIterations } = current;
  const error: WorkflowError = {
    kind: "LIMIT",
    type: "MAX_ITERATIONS",
    message: `step "${stepId}" was entered more than ${maxIterations} times; raise its maxIterations if that is meant`,
    stepId,
    attempt: null,
    details: null,
  };
  const untried = { ...execution, attempt: 0 };
  insertInstant(turn, current.type, untried);
  settleFailed(turn, untried, error);
  if (execution.iteration === maxIterations + 1) {
    return routeError(turn, current, execution.within, error);
  }
  failInstance(turn, error);
  return undefined;
}

/**
 * Chooses the way out of a step that is COMPLETED. Where that fails so has the step (CONTRACT 2), but
 * its work is done and can be undone.
 */
function leave(turn: Turn, current: Step, execution: LiveExecution): Next {
  const within = placeAfter(current, execution);
  try {
    return nextOf(turn, chooseTransition(turn, current.transitions, execution), within);
  } catch (thrown) {
    const error = expressionError(thrown, current.stepId, "transitions");
    settleUnleft(turn, execution, error);
    return routeError(turn, current, within, error);
  }
}

function chooseTransition(
  turn: Turn,
  { conditions, default: otherwise }: Transitions,
  execution: LiveExecution,
): string | undefined {
  return conditions.find(({ when }) => evaluateCondition(turn, when, execution))?.to ?? otherwise;
}

/**
 * A walk that was cut short goes on in a decision of its own, which a timer due now brings about, or
 * the admission where a slot is missing. The step waits under the iteration that it will have, so that
 * a repeated timer is void.
 */
function park(turn: Turn, current: Step, within: Place | undefined): void {
  const parked: LiveExecution = {
    ...placed(current, within, nextIteration(turn, current, within)),
    phase: "READY",
    timers: lacksSlot(turn) ? [] : ["continue"],
  };
  putLive(turn, parked);
  if (parked.timers.length === 0) return;
  setTimer(turn, "continue", parked, turn.now);
  note(turn, { type: "workflow.continued", stepId: current.stepId });
}
