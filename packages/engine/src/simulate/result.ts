import type { SimulationView } from "@millrace/contract";
import { attemptsMade } from "../decide/step-views.ts";
import type { Decision } from "../state/decision.ts";
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
    path: run.path,
    transcript: run.transcript,
    coverage: coverageOf(definition, run.taken, reached),
    unmocked: [...run.unmocked],
    events: published.map(({ id, pattern }) => ({ id, pattern, delivered: delivered.has(id) })),
  };
}

function instanceOf({ instance, waits, start }: Run): SimulationResult["instance"] {
  const { snapshot, executions } = instance;
  const { compensation } = snapshot;
  const steps = [...executions.values()].map((row) => [
    row.stepId,
    {
      status: row.status,
      output: row.output ?? null,
      error: row.error && { ...row.error },
      attempts: attemptsMade(row.status, row.attempt),
      iteration: row.iteration,
    },
  ]);
  return {
    status: snapshot.status,
    output: snapshot.output,
    error: snapshot.error && { ...snapshot.error },
    variables: snapshot.variables,
    steps: Object.fromEntries(steps) as SimulationResult["instance"]["steps"],
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
