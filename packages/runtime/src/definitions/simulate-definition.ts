import { compileDefinition, scenarioProblems, simulate, usedCalendars } from "@millrace/engine";
import type { Calendar, SimulationResult } from "@millrace/engine";
import { openCalendars } from "@millrace/holidays";
import { compileInputSchema, withinTime } from "@millrace/input-schema";
import { getDefinition } from "@millrace/store";
import type { Db, DefinitionDocument } from "@millrace/store";
import { loadCalendars } from "../calendars/load-calendars.ts";
import { InvalidInputError, InvalidScenarioError, WorkflowNotFoundError } from "../errors.ts";
import type { Problem } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { checkDefinition } from "./register-definition.ts";

export interface SimulationRequest {
  /** Default: the latest version. */
  readonly version?: number | undefined;
  /** A document to be used instead of the registered one. */
  readonly definition?: unknown;
  readonly scenario: Parameters<typeof simulate>[1];
}

/**
 * Runs a scenario on a virtual clock. No task runs, and nothing is stored.
 *
 * @throws InvalidDefinitionError, InvalidInputError, InvalidScenarioError, WorkflowNotFoundError
 */
export async function simulateDefinition(
  { database: { db } }: Services,
  { tenantId }: Caller,
  workflowId: string,
  { version, definition: given, scenario }: SimulationRequest,
): Promise<{ readonly version: number | null; readonly result: SimulationResult }> {
  const stored = given === undefined && (await getDefinition(db, tenantId, workflowId, version));
  if (stored === undefined) throw new WorkflowNotFoundError(workflowId, version);
  const document = stored
    ? stored.document
    : checkDefinition(given, { pathId: workflowId }).document;
  const definition = compileDefinition(document, stored ? stored.version : 1);
  const problems = scenarioProblems(definition, scenario);
  if (problems.length > 0) {
    throw new InvalidScenarioError(problems.map(ofScenario));
  }
  const calendars = await calendarsFor(db, tenantId, document, scenario);
  const violations = compileInputSchema(document)(scenario.input ?? {});
  if (violations.length > 0) throw new InvalidInputError(workflowId, violations);
  const done = withinTime(simulationMs, () => simulate(definition, scenario, calendars));
  if (done === undefined) throw new InvalidScenarioError([tooCostly]);
  return { version: stored ? stored.version : null, result: done.value };
}

/** The stored ones that the document names, and those of the scenario in their place. */
async function calendarsFor(
  db: Db,
  tenantId: string,
  document: DefinitionDocument,
  scenario: SimulationRequest["scenario"],
): Promise<ReadonlyMap<string, Calendar>> {
  const ids = new Set(usedCalendars(document).map(({ calendarId }) => calendarId));
  const stored = await loadCalendars(db, tenantId, [...ids]);
  const given = await openCalendars(scenario);
  if ("problems" in given) throw new InvalidScenarioError(given.problems.map(ofScenario));
  const known = [...stored].flatMap(([id, calendar]) =>
    calendar === null ? [] : [[id, calendar] as const],
  );
  return new Map([...known, ...given.calendars]);
}

function ofScenario({ path, ...rest }: Problem): Problem {
  return { path: `/scenario${path}`, ...rest };
}

/** What one simulation may take: nothing else happens in the process meanwhile. */
const simulationMs = 5_000;

const tooCostly = {
  path: "/scenario",
  code: "TOO_COSTLY",
  message: `the simulation takes longer than ${simulationMs / 1_000} s; simulate fewer items, or on the command line, which has no such limit`,
};
