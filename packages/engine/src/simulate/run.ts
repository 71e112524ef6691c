import type { Scenario, SimulationView } from "@millrace/contract";
import type { Calendar } from "../calendar/calendar.ts";
import { createSnapshot } from "../decide/start.ts";
import type { Definition } from "../definition/definition.ts";
import { memoryInstance } from "../fold.ts";
import type { MemoryInstance } from "../fold.ts";
import type { NewExecution, NewWait } from "../state/decision.ts";
import type { EventFact } from "../state/signal.ts";
import type { Agenda } from "./agenda.ts";
import { openAgenda } from "./agenda.ts";
import { startOfScenario } from "./scenario.ts";

/** Milliseconds. */
export type AttemptClocks = Pick<NewExecution, "timeoutMs" | "heartbeatTimeoutMs">;

/** One simulation under way: the instance, its world, and what is told of both in the end. */
export interface Run {
  readonly definition: Definition;
  readonly scenario: Scenario;
  /** When the virtual clock began. */
  readonly start: Date;
  readonly agenda: Agenda;
  /** The virtual clock, in milliseconds. */
  now: number;
  instance: MemoryInstance;
  decisions: number;
  /** Those that are open, by execution. */
  readonly waits: Map<string, NewWait>;
  /** Of one attempt, by execution. */
  readonly clocks: Map<string, AttemptClocks>;
  readonly published: EventFact[];
  /** Ids of events that something has waited for. */
  readonly delivered: Set<string>;
  /** Those of them that a wait has for itself (`deliver: "ONE"`). */
  readonly takenAlone: Set<string>;
  /** Steps for which the scenario has no result. */
  readonly unmocked: Set<string>;
  readonly transcript: SimulationView["transcript"];
  /** By execution, in the order in which they were entered, the virtual clock at that time. */
  readonly begun: Map<string, number>;
  /** By transition, how often. */
  readonly taken: Map<string, number>;
}

export function openRun(
  definition: Definition,
  scenario: Scenario,
  calendars: ReadonlyMap<string, Calendar>,
): Run {
  const start = startOfScenario(scenario);
  const snapshot = createSnapshot(definition, {
    id: "01900000-0000-7000-8000-000000000000",
    tenantId: "default",
    input: scenario.input ?? {},
    correlationId: scenario.correlationId ?? null,
    userId: null,
    priority: null,
    startEventId: null,
    createdAt: start,
  });
  return {
    definition,
    scenario,
    start,
    agenda: openAgenda(),
    now: start.getTime(),
    instance: memoryInstance(snapshot, calendarsOf(definition, calendars)),
    decisions: 0,
    waits: new Map(),
    clocks: new Map(),
    published: [],
    delivered: new Set(),
    takenAlone: new Set(),
    unmocked: new Set(),
    transcript: [],
    begun: new Map(),
    taken: new Map(),
  };
}

/** Nothing can be loaded: those that are not there are known not to be. */
function calendarsOf(
  { steps }: Definition,
  calendars: ReadonlyMap<string, Calendar>,
): ReadonlyMap<string, Calendar | null> {
  const ids = [...steps.values()].flatMap((step) =>
    step.type === "DELAY" && step.calendar !== undefined ? step.calendar.id : [],
  );
  return new Map(ids.map((id) => [id, calendars.get(id) ?? null]));
}
