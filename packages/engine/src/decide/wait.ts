import type { Json } from "@millrace/expressions";
import type { Definition, EventMatcher, EventWaitStep } from "../definition/definition.ts";
import { noReads } from "../state/reads.ts";
import type { Needs, Reads } from "../state/reads.ts";
import type { EventFact, Signal } from "../state/signal.ts";
import type { LiveExecution, Snapshot } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { executionOfWait, waitPathOf } from "../definition/paths.ts";
import { isLifecyclePattern } from "../definition/pattern.ts";
import { setVariables } from "./enter.ts";
import { isValueError } from "./evaluate.ts";
import { timeoutError } from "./finish-step.ts";
import { triggerPath, waitKeyOf } from "./listen.ts";
import { liveExecution, putLive, removeLive } from "./live-executions.ts";
import { closeWait, waitPathsOf } from "./open-waits.ts";
import { isPaused } from "./pause.ts";
import { MissingReads, wholeExecutionOf } from "./read-rows.ts";
import { evaluateCondition, eventView } from "./scope.ts";
import { noteStep, openTurn } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { goAstray, goOn, stepOf } from "./walk.ts";
import { updateExecution } from "./write-rows.ts";

/** Event waits: what satisfies them, and what follows when an event or the timeout takes one. */

/** A stored wait, as far as it says what it stands for. */
export interface WaitRef {
  readonly path: string;
  readonly iteration: number;
  readonly stepId: string | null;
}

/** The condition and pattern of a stored wait, a step's or a cancellation trigger's. */
export function matcherOf(definition: Definition, wait: WaitRef): EventMatcher | undefined {
  if (wait.path === triggerPath) return definition.cancellationTriggers[wait.iteration - 1];
  const current = wait.stepId === null ? undefined : definition.steps.get(wait.stepId);
  const { place = 0 } = executionOfWait(wait.path);
  return current?.type === "EVENT_WAIT" ? current.events[place] : undefined;
}

/** Whether it tells of an instance of this workflow, which never hears of its own instances (CONTRACT 3). */
export function tellsOf({ pattern, payload }: EventFact, workflowId: string): boolean {
  if (!isLifecyclePattern(pattern) || typeof payload !== "object" || payload === null) return false;
  return "workflowId" in payload && payload.workflowId === workflowId;
}

/**
 * Whether an event satisfies a wait, by the whole condition and the state as it is now. A condition
 * that cannot be evaluated is not satisfied.
 */
export function eventSatisfies(
  definition: Definition,
  snapshot: Snapshot,
  wait: WaitRef,
  event: EventFact,
  reads: Reads,
  now: Date,
): boolean | Needs {
  if (tellsOf(event, snapshot.workflowId)) return false;
  const condition = matcherOf(definition, wait)?.eventCondition;
  if (condition === undefined) return true;
  try {
    const { within } = liveOf(snapshot, wait) ?? {};
    const context = within === undefined ? { event } : { event, within };
    return evaluateCondition(openTurn(definition, snapshot, reads, now), condition, context);
  } catch (thrown) {
    if (thrown instanceof MissingReads) return { needs: thrown.requests };
    if (isValueError(thrown)) return false;
    throw thrown;
  }
}

export function liveOf({ live }: Snapshot, wait: WaitRef): LiveExecution | undefined {
  return live[executionKey(executionOfWait(wait.path).path, wait.iteration)];
}

/** What an event's payload must hold at this path, of members of objects alone, to satisfy a wait. */
export interface PayloadEquality {
  readonly path: readonly string[];
  readonly value: Json;
}

/**
 * What a wait's key says of the payload, so that past events can be looked up by it. Undefined where
 * no event can satisfy the wait as the instance is now; empty where nothing is known.
 */
export function payloadEqualities(
  definition: Definition,
  snapshot: Snapshot,
  wait: WaitRef,
  now: Date,
): readonly PayloadEquality[] | undefined {
  const matcher = matcherOf(definition, wait);
  if (matcher === undefined) return [];
  try {
    const key = waitKeyOf(
      openTurn(definition, snapshot, noReads, now),
      matcher,
      liveOf(snapshot, wait),
    );
    if (key === "NEVER") return undefined;
    return matcher.conjuncts.flatMap(({ eventPath: [root, ...path] }, index) =>
      root === "payload" && path.length > 0 && !path.some(mayBePlace)
        ? [{ path, value: key[index] ?? null }]
        : [],
    );
  } catch (thrown) {
    if (thrown instanceof MissingReads) return [];
    throw thrown;
  }
}

/** A list or text has no members of these names, and expressions read it by them all the same. */
function mayBePlace(name: string): boolean {
  return name === "length" || /^\d+$/.test(name);
}

/** An event took a wait. The only one, or the first of several, completes the step. */
export function takeEvent(
  turn: Turn,
  { path, iteration, event }: Extract<Signal, { kind: "eventMatched" }>,
): void {
  const { path: at, place } = executionOfWait(path);
  const execution = liveExecution(turn, at, iteration);
  if (execution?.phase !== "WAITING" || isPaused(turn)) return;
  const current = stepOf(turn, execution.stepId);
  if (current.type !== "EVENT_WAIT" || !waitPathsOf(execution).includes(path)) return;
  if (current.mode === "ALL" && place !== undefined) {
    collect(turn, current, execution, place, event);
    return;
  }
  closeWait(turn, path, iteration);
  removeLive(turn, execution);
  mapPayload(turn, current, event.payload);
  goOn(turn, execution, eventView(event), current.events[place ?? 0]?.to);
}

/**
 * Each event that comes is kept in the output, at its place; the last one completes the step. Payloads
 * are mapped then, in the order of the definition, whatever came first.
 */
function collect(
  turn: Turn,
  current: EventWaitStep,
  before: LiveExecution,
  place: number,
  event: EventFact,
): void {
  closeWait(turn, waitPathOf(before.path, place), before.iteration);
  const { [place]: _come, ...awaiting } = before.awaiting ?? {};
  const execution = { ...before, awaiting };
  const { output } = wholeExecutionOf(turn, executionKey(before.path, before.iteration));
  const come = (output ?? []) as readonly (EventView | null)[];
  const events = current.events.map((_event, index) =>
    index === place ? eventView(event) : (come[index] ?? null),
  );
  if (Object.keys(awaiting).length > 0) {
    putLive(turn, execution);
    updateExecution(turn, execution, { status: "WAITING", output: events });
    const { id: eventId, pattern } = event;
    noteStep(turn, "workflow.step.event", execution, { eventId, pattern });
    return;
  }
  removeLive(turn, execution);
  for (const each of events) mapPayload(turn, current, each?.payload ?? null);
  goOn(turn, execution, events);
}

type EventView = ReturnType<typeof eventView>;

function mapPayload(turn: Turn, { eventPayloadMapping }: EventWaitStep, payload: Json): void {
  setVariables(
    turn,
    eventPayloadMapping.map(([name, keys]) => [name, valueAt(payload, keys)]),
  );
}

/** Own properties only; undefined where the path leads nowhere. */
function valueAt(payload: Json, keys: readonly string[]): Json | undefined {
  let value: Json | undefined = payload;
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as { readonly [key: string]: Json })[key];
  }
  return value;
}

/** FAILED by TIMEOUT, with or without handler. */
export function timeOutWait(turn: Turn, execution: LiveExecution): void {
  const { stepId } = execution;
  const { eventTimeout } = stepOf(turn, stepId) as EventWaitStep;
  leaveWait(turn, execution);
  const error = timeoutError(execution, null, `no event came in time for step "${stepId}"`);
  goAstray(turn, execution, error, eventTimeout?.timeoutHandlerStepId);
}

/** What waits, for an event or for a time, waits no longer. */
export function leaveWait(turn: Turn, execution: LiveExecution): void {
  relyOnNoEvent(turn, [execution]);
  removeLive(turn, execution);
}

/**
 * A wait that an event has taken is not timed out, by whichever clock: the commit checks, and on a
 * conflict the event is applied first (DESIGN, Events). One that this turn opens cannot have been taken.
 */
export function relyOnNoEvent(turn: Turn, executions: readonly LiveExecution[]): void {
  for (const execution of executions) {
    const { stepId, iteration, phase } = execution;
    if (phase !== "WAITING" || stepOf(turn, stepId).type !== "EVENT_WAIT") continue;
    for (const path of waitPathsOf(execution)) {
      const key = executionKey(path, iteration);
      if (turn.waits.get(key)?.kind === "openWait") continue;
      turn.guards.set(`wait:${key}`, { kind: "waitUnmatched", path, iteration });
    }
  }
}
