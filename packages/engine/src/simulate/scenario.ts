import type { MockResult, Problem, Scenario } from "@millrace/contract";
import type { Definition, TaskCall } from "../definition/definition.ts";
import { durationToMs, isRefusal, parseDuration } from "../definition/duration.ts";
import { eventNameProblem, isReservedName, lifecycleEvents } from "../definition/pattern.ts";

/** What a scenario says, and what can be wrong with it. */

/**
 * Everything in a scenario that its schema cannot see: durations, steps that do not exist, events that
 * nobody may publish, and tasks that both succeed and fail.
 */
export function scenarioProblems(definition: Definition, scenario: Scenario): readonly Problem[] {
  const problems: Problem[] = [];
  const checkDuration = (path: string, text: string | undefined) => {
    const parsed = text === undefined ? undefined : parseDuration(text);
    if (parsed !== undefined && isRefusal(parsed)) {
      const message = `${JSON.stringify(text)} ${parsed.problem}`;
      problems.push({ path, code: "BAD_DURATION", message });
    }
  };
  checkDuration("/until", scenario.until);
  checkDuration("/cancel/at", scenario.cancel?.at);
  scenario.events?.forEach(({ at, pattern }, index) => {
    checkDuration(`/events/${index}/at`, at);
    const problem = eventNameProblem(pattern);
    // What other instances would tell of themselves.
    if (problem === undefined || lifecycleEvents.some((name) => name === pattern)) return;
    const code = isReservedName(pattern) ? "RESERVED_PATTERN" : "BAD_PATTERN";
    const message = `${JSON.stringify(pattern)} ${problem}`;
    problems.push({ path: `/events/${index}/pattern`, code, message });
  });
  for (const [stepId, results] of Object.entries(scenario.tasks ?? {})) {
    if (!isMockable(definition, stepId)) {
      const message = `there is no TASK, awaited SUB_WORKFLOW or compensation step "${stepId}"`;
      problems.push({ path: `/tasks/${stepId}`, code: "UNKNOWN_STEP", message });
    }
    [results].flat().forEach(({ duration, output, error }, index) => {
      const place = Array.isArray(results) ? `/${index}` : "";
      if (output !== undefined && error !== undefined) {
        const message = "a result is an output or an error, not both";
        problems.push({ path: `/tasks/${stepId}${place}`, code: "BAD_VALUE", message });
      }
      checkDuration(`/tasks/${stepId}${place}/duration`, duration);
    });
  }
  return problems;
}

const defaultStart = new Date("2026-01-01T00:00:00.000Z");

/** Where the virtual clock begins. */
export function startOfScenario({ startAt }: Scenario): Date {
  return startAt === undefined ? defaultStart : new Date(startAt);
}

function isMockable(definition: Definition, stepId: string): boolean {
  const step = definition.steps.get(stepId);
  const isChild = step?.type === "SUB_WORKFLOW" && !step.detached;
  return isChild || callOf(definition, stepId) !== undefined;
}

/** What a task or child answers at an attempt: its own result, or the last one. */
export function mockOf(
  { tasks }: Scenario,
  stepId: string,
  attempt: number,
): MockResult | undefined {
  if (tasks === undefined || !Object.hasOwn(tasks, stepId)) return undefined;
  const results = [tasks[stepId] ?? []].flat();
  return results[attempt - 1] ?? results.at(-1);
}

/** The task that a TASK or compensation step calls. */
export function callOf(definition: Definition, stepId: string): TaskCall | undefined {
  const step = definition.steps.get(stepId);
  if (step?.type === "TASK") return step;
  return definition.compensationSteps.get(stepId);
}

/** Milliseconds of a duration of a scenario, which has been checked. */
export function msOf(text: string, from: Date): number {
  const duration = parseDuration(text);
  return isRefusal(duration) ? 0 : durationToMs(duration, from);
}
