import type { SimulationView } from "@millrace/contract";
import { attemptsBegun } from "../decide/step-views.ts";
import { isInItem } from "../definition/paths.ts";
import type { Decision } from "../state/decision.ts";
import { latestById } from "../state/reads.ts";
import type { ExecutionRead } from "../state/reads.ts";
import { executionKey } from "../state/snapshot.ts";
import { coverageOf } from "./coverage.ts";
import type { Run } from "./run.ts";

/** What a simulation tells. */

export type SimulationResult = Omit<SimulationView, "workflowId" | "workflowVersion">;

export function resultOf(run: Run, outcome: SimulationResult["outcome"]): SimulationResult {
  const { definition, instance, published, delivered } = run;
  const reached = new Set([...instance.executions.values()].map(({ stepId }) => stepId));
  return {
    outcome,
    instance: instanceOf(run),
    path: [...run.begun.keys()],
    transcript: run.transcript,
    coverage: coverageOf(definition, run.taken, reached),
    unmocked: [...run.unmocked],
    events: published.map(({ id, pattern }) => ({ id, pattern, delivered: delivered.has(id) })),
  };
}

/** As `state.steps` of an instance: without compensation, those in items under their path as well. */
function stepsOf({ definition, instance, begun }: Run): SimulationResult["instance"]["steps"] {
  const rows = [...instance.executions].filter(([, { stepId }]) => definition.steps.has(stepId));
  const latest = new Map<string, Begun>();
  for (const [key, row] of rows) {
    const other = latest.get(row.path);
    if (other !== undefined && other.row.iteration > row.iteration) continue;
    latest.set(row.path, { row, at: begun.get(key) ?? 0 });
  }
  const shown = [...latest.values()].toSorted(inOrder).map(({ row }) => row);
  const byId = [...latestById(shown)].map(([stepId, row]) => [stepId, viewOf(row)] as const);
  const items = shown.filter(({ path }) => isInItem(path));
  return Object.fromEntries([...byId, ...items.map((row) => [row.path, viewOf(row)] as const)]);
}

function viewOf({ status, output = null, error, attempt, iteration }: ExecutionRead) {
  const attempts = attemptsBegun(status, attempt);
  return { status, output, error: error && { ...error }, attempts, iteration };
}

interface Begun {
  readonly row: ExecutionRead;
  /** Milliseconds of the virtual clock. */
  readonly at: number;
}

/** As they began, then as they ended. */
function inOrder(one: Begun, other: Begun): number {
  const { completion: first } = one.row;
  const { completion: second } = other.row;
  if (one.at !== other.at) return one.at - other.at;
  if (first !== second) return (first ?? Infinity) - (second ?? Infinity);
  return one.row.path < other.row.path ? -1 : 1;
}

function instanceOf(run: Run): SimulationResult["instance"] {
  const { instance, waits, start } = run;
  const { snapshot } = instance;
  const { compensation } = snapshot;
  return {
    status: snapshot.status,
    output: snapshot.output,
    error: snapshot.error && { ...snapshot.error },
    variables: snapshot.variables,
    steps: stepsOf(run),
    waitingFor: [...waits.values()].flatMap(({ purpose, stepId, pattern }) =>
      purpose === "STEP" && stepId !== null ? [{ stepId, eventPattern: pattern }] : [],
    ),
    cancellation: snapshot.cancellation,
    compensation: compensation && {
      status: compensation.status,
      plan: [...compensation.plan],
      completed: [...compensation.completed],
      failed: compensation.failed.map(({ stepId, error }) => ({ stepId, error: error.message })),
      uncertain: [...compensation.uncertain],
    },
    createdAt: start.toISOString(),
    completedAt: snapshot.completedAt?.toISOString() ?? null,
  };
}

/** Something happens, and changes nothing. */
export function note({ transcript, instance, now }: Run, what: string): void {
  const { status } = instance.snapshot;
  transcript.push({ at: new Date(now).toISOString(), what, changes: [], status });
}

/** Changes come in the order in which the history tells of them. */
export function entryOf(
  what: string,
  { inserts, updates, entries, snapshot }: Decision,
  now: number,
): SimulationView["transcript"][number] {
  const told = new Map(
    entries.map(({ stepId = "", path = stepId, iteration = 1 }, index) => [
      executionKey(path, iteration),
      index,
    ]),
  );
  const placeOf = (row: { readonly path: string; readonly iteration: number }) =>
    told.get(executionKey(row.path, row.iteration)) ?? -1;
  const rows = [...updates, ...inserts].toSorted((a, b) => placeOf(a) - placeOf(b));
  return {
    at: new Date(now).toISOString(),
    what,
    changes: rows.map(({ path, iteration, status, error }) => ({
      executionId: executionKey(path, iteration),
      status,
      ...(error !== null && { error: `${error.type}: ${error.message}` }),
    })),
    status: snapshot.status,
  };
}
