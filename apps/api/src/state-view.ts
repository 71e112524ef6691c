import type { StateAtView, StepAtView } from "@millrace/contract";
import type { StateAt } from "@millrace/runtime";
import { errorView, isInItem, json, progressView, time } from "./views.ts";

type ExecutionAt = StateAt["executions"][number];

/** An instance at one of its versions, in the terms of `InstanceView`. */
export function stateView(state: StateAt): StateAtView {
  const { snapshot, definition, at, latestVersion, executions } = state;
  const { compensation } = snapshot;
  const isUndoing = ({ stepId }: ExecutionAt) => definition.compensationSteps.has(stepId);
  return {
    id: snapshot.id,
    workflowId: snapshot.workflowId,
    workflowVersion: snapshot.workflowVersion,
    version: snapshot.version,
    latestVersion,
    at: at.toISOString(),
    status: snapshot.status,
    input: json(snapshot.input),
    output: json(snapshot.output),
    error: snapshot.error && errorView(snapshot.error),
    state: {
      variables: snapshot.variables,
      steps: byStep(executions.filter((each) => !isUndoing(each))),
      waitingFor: executions.filter(({ status }) => status === "WAITING").flatMap(waitsAt),
    },
    compensation: compensation && {
      status: compensation.status,
      plan: [...compensation.plan],
      completed: [...compensation.completed],
      failed: compensation.failed.map(({ stepId, error, timestamp }) => ({
        stepId,
        error: error.message,
        timestamp,
      })),
      uncertain: [...compensation.uncertain],
      steps: byStep(executions.filter(isUndoing)),
      startedAt: compensation.startedAt,
      completedAt: compensation.completedAt,
    },
    cancellation: snapshot.cancellation,
    progress: progressView(snapshot, definition),
    createdAt: snapshot.createdAt.toISOString(),
    startedAt: time(snapshot.startedAt),
    completedAt: time(snapshot.completedAt),
  };
}

/** Executions in items that are shown by their path, the first of them. */
const MOST_ITEMS = 300;

/** The latest execution of each step; those in items also by their path. */
function byStep(executions: readonly ExecutionAt[]): Record<string, StepAtView> {
  const steps = executions.flatMap((each): [string, StepAtView][] => [[each.stepId, stepAt(each)]]);
  const items = executions
    .filter(isInItem)
    .slice(0, MOST_ITEMS)
    .map((each): [string, StepAtView] => [each.path, stepAt(each)]);
  return Object.fromEntries([...steps, ...items]);
}

function stepAt(execution: ExecutionAt): StepAtView {
  const { status, output, error, attempts, iteration, since, completedAt } = execution;
  return {
    status,
    output: json(output),
    error: error && errorView(error),
    attempts,
    executionId: idOf(execution),
    iteration,
    since: since.toISOString(),
    completedAt: time(completedAt),
  };
}

/** One for each event that has not come. A step that waits for its child has none, as in `InstanceView`. */
function waitsAt(execution: ExecutionAt): StateAtView["state"]["waitingFor"] {
  const { stepId, patterns, since, until } = execution;
  const wait = { stepId, executionId: idOf(execution), since: since.toISOString() };
  if (until !== null) return [{ ...wait, kind: "DELAY", until }];
  return patterns.map((eventPattern) => ({ ...wait, kind: "EVENT", eventPattern }));
}

function idOf({ path, iteration }: ExecutionAt): string {
  return `${path}#${iteration}`;
}
