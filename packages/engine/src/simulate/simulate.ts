import type { Scenario } from "@millrace/contract";
import type { Calendar } from "../calendar/calendar.ts";
import { canCancel } from "../decide/cancel.ts";
import type { Definition } from "../definition/definition.ts";
import { advanceInMemory } from "../fold.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import type { Snapshot } from "../state/snapshot.ts";
import type { Happening, Told } from "./agenda.ts";
import { edgesOf } from "./coverage.ts";
import { deliver, lookBack, lookbackGroups, publish } from "./events.ts";
import { entryOf, note, resultOf } from "./result.ts";
import type { SimulationResult } from "./result.ts";
import { openRun } from "./run.ts";
import type { Run } from "./run.ts";
import { msOf } from "./scenario.ts";
import { carryOut, take } from "./world.ts";

/**
 * A whole instance on a virtual clock, with the engine's own decisions and no store. Tasks do not run:
 * the scenario says what they answer. An agenda holds what is still to happen, in order of time; what
 * happens is decided upon, and the commands of the decision put the next things onto the agenda.
 */

/** Decisions and executions of one simulation, which is done in one go and must not take long. */
const maxDecisions = 1_000;
const maxExecutions = 2_000;

const defaultUntil = "P10Y";

/**
 * @param scenario One of which `scenarioProblems` finds nothing.
 * @param calendars By id, those of the scenario among them; any other does not exist.
 */
export function simulate(
  definition: Definition,
  scenario: Scenario,
  calendars: ReadonlyMap<string, Calendar> = new Map(),
): SimulationResult {
  const run = openRun(definition, scenario, calendars);
  planScenario(run);
  send(run, { what: "the instance starts", signals: [{ kind: "started" }] });
  return resultOf(run, goOnToTheEnd(run));
}

/** What the scenario lets happen, whatever the instance does. */
function planScenario({ agenda, scenario, start }: Run): void {
  const atOf = (text: string) => start.getTime() + msOf(text, start);
  scenario.events?.forEach(({ at }, index) => agenda.add(atOf(at), { kind: "event", index }));
  if (scenario.cancel === undefined) return;
  agenda.add(atOf(scenario.cancel.at), { kind: "cancel" });
}

/** What is due after the instance has settled is looked at too: one that FAILED can still be cancelled. */
function goOnToTheEnd(run: Run): SimulationResult["outcome"] {
  const { agenda, scenario, start } = run;
  const until = start.getTime() + msOf(scenario.until ?? defaultUntil, start);
  for (let turn = 0; ; turn++) {
    const next = agenda.peek();
    const isOver = isSettled(run.instance.snapshot);
    if (next === undefined) return isOver ? "SETTLED" : "STUCK";
    if (next.at > until) return isOver ? "SETTLED" : "TIME_LIMIT";
    const isLong = run.decisions >= maxDecisions || run.instance.executions.size >= maxExecutions;
    if (!isOver && (isLong || turn >= 10 * maxDecisions)) return "STEP_LIMIT";
    agenda.remove(next);
    run.now = Math.max(run.now, next.at);
    happen(run, next.happening);
  }
}

function happen(run: Run, happening: Happening): void {
  switch (happening.kind) {
    case "signal":
      return send(run, happening);
    case "cancel":
      return cancel(run);
    case "take":
      return take(run, happening.ref);
    case "event":
      return send(run, publish(run, happening.index));
    case "emitted": {
      const { event, deaf } = happening;
      const what = `event ${event.pattern}, which it has emitted, arrives`;
      return send(run, deliver(run, what, event, deaf));
    }
  }
}

function cancel(run: Run): void {
  const { reason = null, shouldCompensate = true } = run.scenario.cancel ?? {};
  const actor = "simulation";
  const signal = { kind: "cancelRequested", reason, actor, shouldCompensate } as const;
  const { status } = run.instance.snapshot;
  const what = "a cancel is asked for";
  if (!canCancel(run.instance.snapshot)) return note(run, `${what}, and it is ${status} already`);
  send(run, { what, signals: [signal] });
}

/** One decision. Waits that it opens may have events that came before. */
function send(run: Run, told: Told | undefined): void {
  if (told === undefined) return;
  const { definition, instance, now } = run;
  run.decisions++;
  const { decision, instance: next } = advanceInMemory(
    definition,
    instance,
    told.signals,
    new Date(now),
  );
  if (decision.snapshot === instance.snapshot) return;
  run.instance = next;
  carryOut(run, decision);
  run.transcript.push(entryOf(told.what, decision, now));
  for (const row of decision.inserts) run.begun.set(executionKey(row.path, row.iteration), run.now);
  for (const edge of edgesOf(definition, decision)) {
    run.taken.set(edge, (run.taken.get(edge) ?? 0) + 1);
  }
  const had = new Set(run.delivered);
  send(run, admission(next.snapshot));
  for (const group of lookbackGroups(run, decision.commands)) send(run, lookBack(run, group, had));
}

/** It is alone, so that it has its slot as soon as it wants it. */
function admission({ slot, slotRequests: request }: Snapshot): Told | undefined {
  if (slot !== "WANTED") return undefined;
  return { what: "it is admitted", signals: [{ kind: "admitted", request }] };
}
