import type { InstanceRead, LiveWorker, StepRead } from "@millrace/store";
import type { AtStep, Reason } from "./reason.ts";

/** Of a step that is not an event wait; undefined where it has ended. */
export function stepReason(
  step: StepRead,
  read: InstanceRead,
  workers: readonly LiveWorker[],
): Reason | undefined {
  const { taskId, type, status } = step;
  if (type === "DELAY" && status === "WAITING") {
    const until = dueAt(read, step, "delay") ?? dueAt(read, step, "total");
    return { ...placeOf(step), kind: "DELAY", since: step.createdAt, until };
  }
  if (status === "RETRYING") {
    const { attempt, retryAt: until, error } = step;
    return { ...placeOf(step), kind: "RETRYING", taskId, attempt, until, error };
  }
  if (type === "SUB_WORKFLOW" && status === "WAITING") return childReason(step, read);
  if (taskId === null) return undefined;
  if (status === "RUNNING") return runningReason(step, taskId, read, workers);
  return status === "PENDING" ? pendingReason(step, taskId, workers) : undefined;
}

function childReason(step: StepRead, read: InstanceRead): Reason | undefined {
  const { child } = step;
  if (child === undefined) return undefined;
  const { childId, workflowId: childWorkflowId, status, requestedAt: since } = child;
  const until = step.awaited ? dueAt(read, step, "grace") : null;
  return {
    ...placeOf(step),
    kind: "CHILD_WORKFLOW",
    childId,
    childWorkflowId,
    childStatus: status,
    since,
    until,
  };
}

function runningReason(
  step: StepRead,
  taskId: string,
  read: InstanceRead,
  workers: readonly LiveWorker[],
): Reason {
  const { workerId, awaited, attempt, startedAt: since } = step;
  const worker = workers.find(({ id }) => id === workerId);
  const held = worker === undefined ? "WORKER_LOST" : "RUNNING";
  return {
    ...placeOf(step),
    kind: awaited ? "AWAITED" : held,
    taskId,
    workerId,
    host: worker?.host ?? null,
    attempt,
    since,
    until: awaited ? dueAt(read, step, "grace") : null,
  };
}

function pendingReason(step: StepRead, taskId: string, workers: readonly LiveWorker[]): Reason {
  const queue = step.queue ?? "default";
  const serving = workers.filter(({ queues }) => queues.includes(queue));
  const able = serving.filter(({ tasks }) => tasks.includes(taskId)).map(({ id }) => id);
  const none = serving.length === 0 ? "NO_WORKER_FOR_QUEUE" : "NO_WORKER_KNOWS_TASK";
  const kind = able.length > 0 ? "QUEUED" : none;
  return { ...placeOf(step), kind, taskId, queue, since: step.createdAt, workers: able };
}

interface Place {
  readonly path: string;
  readonly iteration: number;
}

export function dueAt(
  { timers }: InstanceRead,
  { path, iteration }: Place,
  kind: string,
): Date | null {
  const timer = timers.find(
    (each) => each.kind === kind && each.path === path && each.iteration === iteration,
  );
  return timer?.dueAt ?? null;
}

function placeOf({ stepId, path, iteration, compensates }: StepRead): AtStep {
  return {
    stepId,
    executionId: `${path}#${iteration}`,
    isCompensation: compensates !== null,
  };
}
