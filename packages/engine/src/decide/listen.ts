import type { Json } from "@millrace/expressions";
import { ExpressionError, readPath } from "@millrace/expressions";
import type { EventMatcher } from "../definition/definition.ts";
import { waitPathOf } from "../definition/paths.ts";
import { patternFrom } from "../definition/pattern.ts";
import type { NewWait } from "../state/decision.ts";
import type { EventFact } from "../state/signal.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { putLive } from "./live-executions.ts";
import { closeWait, openWait } from "./open-waits.ts";
import { evaluateTemplate, scopeFor } from "./scope.ts";
import type { Context } from "./standpoint.ts";
import type { Turn } from "./turn.ts";

/**
 * What an instance listens to: the waits of its steps and its cancellation triggers, each stored with
 * a pattern and a key by which an event finds it.
 */

/** The path of cancellation triggers among the waits; their iteration is their index from 1. */
export const triggerPath = "$cancel";

export type WaitKey = readonly Json[] | "NEVER";

/** What steps and triggers store alike. @throws ExpressionError, BadValueError */
export function matcherFields(
  turn: Turn,
  matcher: EventMatcher,
  context?: Context,
): Pick<NewWait, "pattern" | "eventPaths" | "key"> {
  return {
    pattern: patternFrom(evaluateTemplate(turn, matcher.eventPattern, context)),
    eventPaths: matcher.conjuncts.map(({ eventPath }) => pathText(eventPath)),
    key: waitKeyOf(turn, matcher, context),
  };
}

/** A path below the event as one word: names joined by dots, without dots and spaces of their own. */
export function pathText(path: readonly string[]): string {
  return path.map((name) => encodeURIComponent(name).replaceAll(".", "%2E")).join(".");
}

/**
 * The event's values at such paths; undefined where one is missing or no scalar, and so equals nothing.
 * They are read as an expression would read them.
 */
export function eventKeyOf(
  event: EventFact,
  eventPaths: readonly string[],
): readonly Json[] | undefined {
  const key = eventPaths.map((text) => readPath(event, text.split(".").map(decodeURIComponent)));
  return key.every(isScalar) ? key : undefined;
}

/**
 * The instance's values for the equality conjuncts of a condition. A side that is missing, or is no
 * scalar, equals nothing (CONTRACT 1.2).
 */
export function waitKeyOf(turn: Turn, { conjuncts }: EventMatcher, context?: Context): WaitKey {
  const key = conjuncts.map(({ value }) => conjunctValue(turn, value, context));
  return key.every(isScalar) ? key : "NEVER";
}

/** A side that cannot be evaluated equals nothing, as the whole condition would be false. */
function conjunctValue(
  turn: Turn,
  value: EventMatcher["conjuncts"][number]["value"],
  context: Context | undefined,
): unknown {
  try {
    return value.evaluate(scopeFor(turn, value, context));
  } catch (thrown) {
    if (thrown instanceof ExpressionError) return undefined;
    throw thrown;
  }
}

export function isScalar(value: unknown): value is Json {
  if (typeof value === "number") return Number.isFinite(value);
  return value === null || typeof value === "string" || typeof value === "boolean";
}

/** Opens the cancellation triggers of an instance that begins. @throws ExpressionError, BadValueError */
export function openTriggers(turn: Turn): void {
  const triggers = turn.definition.cancellationTriggers.map((trigger, index) => ({
    ...matcherFields(turn, trigger),
    iteration: index + 1,
    keyIsFixed: trigger.keyIsFixed,
  }));
  for (const { keyIsFixed, ...trigger } of triggers) {
    openWait(turn, {
      ...trigger,
      path: triggerPath,
      stepId: null,
      purpose: "CANCEL",
      deliver: "ALL",
      lookbackFrom: null,
    });
    if (!keyIsFixed) putTriggerKey(turn, trigger.iteration, trigger.key);
  }
}

/**
 * Closes them, where they have been opened.
 *
 * @param unheard Only if no event has taken one of them: its publisher was told that it cancels, so
 *   on a conflict the cancel is applied first.
 */
export function closeTriggers(turn: Turn, { unheard }: { readonly unheard: boolean }): void {
  turn.definition.cancellationTriggers.forEach((_trigger, index) => {
    const iteration = index + 1;
    const key = executionKey(triggerPath, iteration);
    const isStored = turn.before.version > 0;
    if (!isStored && !turn.waits.has(key)) return;
    if (isStored && unheard) {
      const guard = { kind: "waitUnmatched", path: triggerPath, iteration } as const;
      turn.guards.set(`wait:${key}`, guard);
    }
    closeWait(turn, triggerPath, iteration);
  });
  turn.state.triggerKeys = {};
}

function putTriggerKey(turn: Turn, iteration: number, key: WaitKey): void {
  turn.state.triggerKeys = { ...turn.state.triggerKeys, [iteration]: key };
}

/**
 * Writes the keys of open waits again where what they read has changed: conditions see the state at
 * delivery (DESIGN, Events).
 */
export function refreshKeys(turn: Turn): void {
  const changed =
    turn.state.variables !== turn.before.variables ||
    turn.state.status !== turn.before.status ||
    turn.touched.size > 0;
  if (!changed) return;
  for (const execution of Object.values(turn.state.live)) {
    const { waitKey, awaiting } = execution;
    if (waitKey !== undefined) refreshWait(turn, execution, waitKey);
    if (awaiting !== undefined) refreshWaits(turn, execution, awaiting);
  }
  for (const [index, key] of Object.entries(turn.state.triggerKeys)) {
    refreshTrigger(turn, Number(index), key);
  }
}

function refreshWait(turn: Turn, execution: LiveExecution, key: WaitKey): void {
  const { path, iteration } = execution;
  const fresh = freshKey(turn, execution, 0);
  if (fresh === undefined || sameKey(fresh, key)) return;
  putLive(turn, { ...execution, waitKey: fresh });
  rekey(turn, path, iteration, fresh);
}

function refreshWaits(
  turn: Turn,
  execution: LiveExecution,
  awaiting: NonNullable<LiveExecution["awaiting"]>,
): void {
  const { path, iteration } = execution;
  const changed: Record<string, WaitKey> = {};
  for (const [place, key] of Object.entries(awaiting)) {
    const fresh = key === null ? undefined : freshKey(turn, execution, Number(place));
    if (key === null || fresh === undefined || sameKey(fresh, key)) continue;
    changed[place] = fresh;
    rekey(turn, waitPathOf(path, Number(place)), iteration, fresh);
  }
  if (Object.keys(changed).length === 0) return;
  putLive(turn, { ...execution, awaiting: { ...awaiting, ...changed } });
}

function freshKey(turn: Turn, execution: LiveExecution, place: number): WaitKey | undefined {
  const current = turn.definition.steps.get(execution.stepId);
  const event = current?.type === "EVENT_WAIT" ? current.events[place] : undefined;
  return event && waitKeyOf(turn, event, execution);
}

function refreshTrigger(turn: Turn, iteration: number, key: WaitKey): void {
  const trigger = turn.definition.cancellationTriggers[iteration - 1];
  if (trigger === undefined) return;
  const fresh = waitKeyOf(turn, trigger);
  if (sameKey(fresh, key)) return;
  putTriggerKey(turn, iteration, fresh);
  rekey(turn, triggerPath, iteration, fresh);
}

function rekey(turn: Turn, path: string, iteration: number, key: WaitKey): void {
  const execution = executionKey(path, iteration);
  const opened = turn.waits.get(execution);
  if (opened?.kind === "openWait") openWait(turn, { ...opened.wait, key });
  else turn.rekeys.set(execution, { kind: "rekeyWait", path, iteration, key });
}

function sameKey(one: WaitKey, other: WaitKey): boolean {
  if (one === "NEVER" || other === "NEVER") return one === other;
  return one.every((value, index) => value === other[index]);
}
