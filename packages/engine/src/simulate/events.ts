import type { Json } from "@millrace/expressions";
import { eventSatisfies } from "../decide/wait.ts";
import { patternMatches } from "../definition/pattern.ts";
import { readsOf } from "../fold.ts";
import type { NewWait } from "../state/decision.ts";
import type { EventFact, Signal } from "../state/signal.ts";
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
  run.delivered.add(event.id);
  // An event that cancels the instance satisfies nothing else of it (CONTRACT 3).
  const trigger = matched.find(({ purpose }) => purpose === "CANCEL");
  const signals: readonly Signal[] =
    trigger === undefined
      ? matched.map((wait) => matchedSignal(wait, event))
      : [{ kind: "cancelTriggered", trigger: trigger.iteration, event }];
  return { what, signals };
}

/** The other half of publishing: an open wait looks for events that came before it, oldest first. */
export function lookBack(run: Run): Told | undefined {
  for (const event of run.published) {
    if (run.delivered.has(event.id)) continue;
    const received = new Date(event.receivedAt);
    const wait = satisfied(run, event).find(
      ({ purpose, lookbackFrom }) =>
        purpose === "STEP" && lookbackFrom !== null && lookbackFrom <= received,
    );
    if (wait === undefined) continue;
    run.delivered.add(event.id);
    const what = `event ${event.pattern} had come before`;
    return { what, signals: [matchedSignal(wait, event)] };
  }
  return undefined;
}

function satisfied(
  { definition, instance, waits, now }: Run,
  event: EventFact,
  deaf: ReadonlySet<string> = new Set(),
): readonly NewWait[] {
  const reads = readsOf(instance);
  const at = new Date(now);
  return [...waits].flatMap(([key, wait]) => {
    if (deaf.has(key) || !patternMatches(wait.pattern, event.pattern)) return [];
    const { snapshot } = instance;
    return eventSatisfies(definition, snapshot, wait, event, reads, at) === true ? wait : [];
  });
}

function matchedSignal({ path, iteration }: NewWait, event: EventFact): Signal {
  return { kind: "eventMatched", path, iteration, event };
}
