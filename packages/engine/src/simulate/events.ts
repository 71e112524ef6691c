import type { Json } from "@millrace/expressions";
import { eventSatisfies } from "../decide/wait.ts";
import { executionOfWait } from "../definition/paths.ts";
import { patternMatches } from "../definition/pattern.ts";
import { readsOf } from "../fold.ts";
import type { Command, NewWait } from "../state/decision.ts";
import type { EventFact, Signal } from "../state/signal.ts";
import { executionKey } from "../state/snapshot.ts";
import { inStoredOrder } from "../state/stored-order.ts";
import type { Told } from "./agenda.ts";
import { note } from "./result.ts";
import type { Run } from "./run.ts";

/** An event arrives, and what the instance is told of it; undefined where nothing waits for it. */

/** The n-th event of the scenario. */
export function publish(run: Run, index: number): Told | undefined {
  const given = run.scenario.events?.[index];
  if (given === undefined) return undefined;
  const at = new Date(run.now).toISOString();
  const { pattern, id = `event-${index + 1}` } = given;
  if (given.id !== undefined && run.published.some((event) => event.id === id)) {
    note(run, `event ${pattern} arrives again as ${id}, a duplicate`);
    return undefined;
  }
  const payload = (given.payload ?? {}) as Json;
  const event = { id, pattern, payload, occurredAt: at, receivedAt: at };
  return deliver(run, `event ${pattern} arrives`, event);
}

/** @param deaf Waits that do not hear it, by execution. */
export function deliver(
  run: Run,
  what: string,
  given: EventFact,
  deaf: ReadonlySet<string> = new Set(),
): Told | undefined {
  const event = { ...given, payload: inStoredOrder(given.payload) };
  run.published.push(event);
  const matched = satisfied(run, event, deaf);
  if (matched.length === 0) {
    note(run, `${what}, and nothing waits for it`);
    return undefined;
  }
  noteDelivered(run, event, matched);
  // An event that cancels the instance satisfies nothing else of it (CONTRACT 3).
  const trigger = matched.find(({ purpose }) => purpose === "CANCEL");
  const signals: readonly Signal[] =
    trigger === undefined
      ? matched.toSorted(inInbox).map((wait) => matchedSignal(wait, event))
      : [{ kind: "cancelTriggered", trigger: trigger.iteration, event }];
  return { what, signals };
}

/** Waits of which one event takes all: one, or those for the first of several events. */
type LookbackGroup = readonly NewWait[];

/** The waits that a decision opens, in the order in which they are stored. */
export function openedWaits(commands: readonly Command[]): readonly NewWait[] {
  return commands
    .flatMap((command) => (command.kind === "openWait" ? command.wait : []))
    .toSorted(byPath);
}

function byPath(one: NewWait, other: NewWait): number {
  if (one.path !== other.path) return one.path < other.path ? -1 : 1;
  return one.iteration - other.iteration;
}

/** Those with a lookback. */
export function lookbackGroups(
  { definition }: Run,
  commands: readonly Command[],
): readonly LookbackGroup[] {
  const groups = new Map<string, NewWait[]>();
  for (const wait of openedWaits(commands)) {
    if (wait.lookbackFrom === null) continue;
    const step = wait.stepId === null ? undefined : definition.steps.get(wait.stepId);
    const isForAny = step?.type === "EVENT_WAIT" && step.mode === "ANY";
    const path = isForAny ? executionOfWait(wait.path).path : wait.path;
    const key = executionKey(path, wait.iteration);
    groups.set(key, [...(groups.get(key) ?? []), wait]);
  }
  return [...groups.values()];
}

/**
 * The other half of publishing: waits that have opened take the oldest event that came before them.
 *
 * @param had Events that the instance had had before they opened.
 */
export function lookBack(
  run: Run,
  group: LookbackGroup,
  had: ReadonlySet<string>,
): Told | undefined {
  const keys = new Set(group.map(({ path, iteration }) => executionKey(path, iteration)));
  for (const event of run.published) {
    if (had.has(event.id)) continue;
    const received = new Date(event.receivedAt);
    const wait = satisfied(run, event).find(
      ({ path, iteration, lookbackFrom }) =>
        keys.has(executionKey(path, iteration)) &&
        lookbackFrom !== null &&
        lookbackFrom <= received,
    );
    if (wait === undefined) continue;
    noteDelivered(run, event, [wait]);
    const what = `event ${event.pattern} had come before`;
    return { what, signals: [matchedSignal(wait, event)] };
  }
  return undefined;
}

function satisfied(
  { definition, instance, waits, now, takenAlone }: Run,
  event: EventFact,
  deaf: ReadonlySet<string> = new Set(),
): readonly NewWait[] {
  const reads = readsOf(instance);
  const at = new Date(now);
  let isTaken = takenAlone.has(event.id);
  return [...waits].flatMap(([key, wait]) => {
    if (deaf.has(key) || !patternMatches(wait.pattern, event.pattern)) return [];
    if (wait.deliver === "ONE" && isTaken) return [];
    const { snapshot } = instance;
    if (eventSatisfies(definition, snapshot, wait, event, reads, at) !== true) return [];
    // The one that has waited longest has it for itself.
    if (wait.deliver === "ONE") isTaken = true;
    return wait;
  });
}

/** As a worker finds them: what a wait has for itself is given to it first. */
function inInbox(one: NewWait, other: NewWait): number {
  const isFirst = Number(other.deliver === "ONE") - Number(one.deliver === "ONE");
  return isFirst === 0 ? byPath(one, other) : isFirst;
}

function noteDelivered(
  { delivered, takenAlone }: Run,
  { id }: EventFact,
  to: readonly NewWait[],
): void {
  delivered.add(id);
  if (to.some((wait) => wait.deliver === "ONE")) takenAlone.add(id);
}

function matchedSignal({ path, iteration }: NewWait, event: EventFact): Signal {
  return { kind: "eventMatched", path, iteration, event };
}
