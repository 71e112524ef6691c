import type { Json } from "@millrace/expressions";
import { ExpressionError } from "@millrace/expressions";
import type { Definition, EventMatcher, EventWaitStep } from "../definition/definition.ts";
import { BadValueError } from "../errors.ts";
import type { Needs, Reads } from "../state/reads.ts";
import type { EventFact } from "../state/signal.ts";
import type { LiveExecution, Snapshot } from "../state/snapshot.ts";
import { evaluateCondition, evaluateTemplate, MissingReads, scopeFor } from "./scope.ts";
import type { Turn } from "./turn.ts";
import { closeWait, openTurn, openWait, putLive } from "./turn.ts";
import { completeStep, patternOf, setVariables, step } from "./walk.ts";

/** Waits for events and cancellation triggers: their keys, their conditions, their matches. */

/** The path of cancellation triggers among the waits; their iteration is their index from 1. */
export const triggerPath = "$cancel";

type WaitKey = readonly Json[] | "NEVER";

/**
 * The instance's values for the equality conjuncts of a condition. A side that is missing, or is no
 * scalar, equals nothing (CONTRACT 1.2).
 */
export function waitKeyOf(turn: Turn, { conjuncts }: EventMatcher): WaitKey {
  const key: Json[] = [];
  for (const { value } of conjuncts) {
    const side = conjunctValue(turn, value);
    if (side === undefined || (typeof side === "object" && side !== null)) return "NEVER";
    key.push(side as Json);
  }
  return key;
}

/** A side that cannot be evaluated equals nothing, as the whole condition would be false. */
function conjunctValue(turn: Turn, value: EventMatcher["conjuncts"][number]["value"]): unknown {
  try {
    return value.evaluate(scopeFor(turn, value));
  } catch (thrown) {
    if (thrown instanceof ExpressionError) return undefined;
    throw thrown;
  }
}

/** Opens the cancellation triggers of an instance that begins. */
export function openTriggers(turn: Turn): void {
  turn.definition.cancellationTriggers.forEach((trigger, index) => {
    const iteration = index + 1;
    const key = waitKeyOf(turn, trigger);
    openWait(turn, {
      path: triggerPath,
      iteration,
      stepId: null,
      purpose: "CANCEL",
      pattern: patternOf(evaluateTemplate(turn, trigger.eventPattern)),
      eventPaths: trigger.conjuncts.map(({ eventPath }) => eventPath.join(".")),
      key,
      deliver: "ALL",
      lookbackFrom: null,
    });
    if (!trigger.keyIsFixed) {
      turn.state.triggerKeys = { ...turn.state.triggerKeys, [iteration]: key };
    }
  });
}

export function closeTriggers(turn: Turn): void {
  turn.definition.cancellationTriggers.forEach((_trigger, index) => {
    closeWait(turn, triggerPath, index + 1);
  });
  turn.state.triggerKeys = {};
}

/**
 * Writes the keys of open waits again where what they read has changed: conditions see the state at
 * delivery (DESIGN, Events).
 */
export function refreshKeys(turn: Turn): void {
  const changed = turn.state.variables !== turn.before.variables || turn.touched.size > 0;
  if (!changed) return;
  for (const execution of Object.values(turn.state.live)) {
    if (execution.waitKey !== undefined) refreshKey(turn, execution, execution.waitKey);
  }
  for (const [iteration, key] of Object.entries(turn.state.triggerKeys)) {
    const trigger = turn.definition.cancellationTriggers[Number(iteration) - 1];
    const fresh = trigger && waitKeyOf(turn, trigger);
    if (fresh === undefined || sameKey(fresh, key)) continue;
    turn.state.triggerKeys = { ...turn.state.triggerKeys, [iteration]: fresh };
    rekey(turn, triggerPath, Number(iteration), fresh);
  }
}

function refreshKey(turn: Turn, execution: LiveExecution, key: WaitKey): void {
  const current = step(turn, execution.stepId);
  if (current.type !== "EVENT_WAIT") return;
  const fresh = waitKeyOf(turn, current);
  if (sameKey(fresh, key)) return;
  putLive(turn, { ...execution, waitKey: fresh });
  rekey(turn, execution.path, execution.iteration, fresh);
}

function rekey(turn: Turn, path: string, iteration: number, key: WaitKey): void {
  const opened = turn.waits.get(`${path}#${iteration}`);
  if (opened?.kind === "openWait") openWait(turn, { ...opened.wait, key });
  else turn.rekeys.set(`${path}#${iteration}`, { kind: "rekeyWait", path, iteration, key });
}

function sameKey(a: WaitKey, b: WaitKey): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** An event took the wait: its payload goes to the variables, the event is the step's output. */
export function applyEvent(
  turn: Turn,
  execution: LiveExecution,
  event: EventFact,
): string | undefined {
  const current = step(turn, execution.stepId) as EventWaitStep;
  setVariables(
    turn,
    current.eventPayloadMapping.map(([name, path]) => [name, valueAt(event.payload, path)]),
  );
  closeWait(turn, execution.path, execution.iteration);
  return completeStep(turn, execution, { ...event });
}

/** Own properties only; undefined where the path leads nowhere. */
function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let current: Json | undefined = value;
  for (const name of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, name)) {
      return undefined;
    }
    current = (current as { readonly [key: string]: Json })[name];
  }
  return current;
}

/** The matcher that a stored wait stands for. */
export function matcherOf(
  definition: Definition,
  wait: { readonly path: string; readonly iteration: number; readonly stepId: string | null },
): EventMatcher | undefined {
  if (wait.path === triggerPath) return definition.cancellationTriggers[wait.iteration - 1];
  const current = wait.stepId === null ? undefined : definition.steps.get(wait.stepId);
  return current?.type === "EVENT_WAIT" ? current : undefined;
}

/**
 * Whether an event satisfies a wait, by the whole condition and the state as it is now. A condition
 * that cannot be evaluated is not satisfied.
 */
export function eventSatisfies(
  definition: Definition,
  snapshot: Snapshot,
  wait: { readonly path: string; readonly iteration: number; readonly stepId: string | null },
  event: EventFact,
  reads: Reads,
  now: Date,
): boolean | Needs {
  const condition = matcherOf(definition, wait)?.eventCondition;
  if (condition === undefined) return true;
  try {
    return evaluateCondition(openTurn(definition, snapshot, reads, now), condition, { event });
  } catch (thrown) {
    if (thrown instanceof MissingReads) return { needs: thrown.requests };
    if (thrown instanceof ExpressionError || thrown instanceof BadValueError) return false;
    throw thrown;
  }
}
