import { compileDefinition, scenarioProblems, usedCalendars } from "@millrace/engine";
import type { Calendar, SimulationResult, simulate } from "@millrace/engine";
import { openCalendars } from "@millrace/holidays";
import { compileInputSchema } from "@millrace/input-schema";
import { getDefinition } from "@millrace/store";
import type { Db, DefinitionDocument } from "@millrace/store";
import { loadCalendars } from "../calendars/load-calendars.ts";
import { InvalidInputError, InvalidScenarioError, WorkflowNotFoundError } from "../errors.ts";
import type { Problem } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { checkDefinition } from "./register-definition.ts";
import { simulationBounds } from "./simulation-threads.ts";

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
 * @throws InvalidDefinitionError, InvalidInputError, InvalidScenarioError, WorkflowNotFoundError,
 *   SimulationsBusyError, SimulationNotBegunError
 */
export async function simulateDefinition(
  { database: { db }, simulations }: Services,
  { tenantId }: Caller,
  workflowId: string,
  { version, definition: given, scenario }: SimulationRequest,
): Promise<{ readonly version: number | null; readonly result: SimulationResult }> {
  const stored = given === undefined && (await getDefinition(db, tenantId, workflowId, version));
  if (stored === undefined) throw new WorkflowNotFoundError(workflowId, version);
  const document = stored
    ? stored.document
    : checkDefinition(given, { pathId: workflowId }).document;
  const planned = stored ? stored.version : 1;
  const problems = scenarioProblems(compileDefinition(document, planned), scenario);
  if (problems.length > 0) {
    throw new InvalidScenarioError(problems.map(ofScenario));
  }
  const calendars = await calendarsFor(db, tenantId, document, scenario);
  const violations = compileInputSchema(document)(scenario.input ?? {});
  if (violations.length > 0) throw new InvalidInputError(workflowId, violations);
  const result = await simulations.run({
    document,
    version: planned,
    scenario,
    calendars: [...calendars.values()].map(({ source }) => source),
  });
  if (result === undefined) throw new InvalidScenarioError([tooCostly]);
  return { version: stored ? stored.version : null, result };
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

const tooCostly = {
  path: "/scenario",
  code: "TOO_COSTLY",
  message: `the simulation takes longer than ${simulationBounds.ms / 1_000} s, or more than ${simulationBounds.mb} MB, or comes to more than ${simulationBounds.resultMb} MB; simulate fewer items, or on the command line, which has no such limit`,
};
