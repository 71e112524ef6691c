import { failedRun, isolatedMark } from "@millrace/store";
import type { InstanceRead, LiveWorker, PausedQueue, StepRead, Suspect } from "@millrace/store";
import { isSuspect } from "../perform.ts";
import { failedCell } from "../worker/cells.ts";
import type { AtStep, Reason } from "./reason.ts";

/** What is known beside the instance. */
export interface Surroundings {
  readonly at: Date;
  readonly workers: readonly LiveWorker[];
  /** Steps that each of them runs. */
  readonly running: ReadonlyMap<string, number>;
  readonly pauses: readonly PausedQueue[];
  /** What runs alone now, where it matters: `waitsAlone`. */
  readonly suspects: readonly Suspect[];
}

/** Of a step that is not an event wait; undefined where it has ended. */
export function stepReason(
  step: StepRead,
  read: InstanceRead,
  surroundings: Surroundings,
): Reason | undefined {
  const { workers, at } = surroundings;
  const { taskId, type, status } = step;
  if (type === "DELAY" && status === "WAITING") {
    const until = dueAt(read, step, "delay") ?? dueAt(read, step, "total");
    return { ...placeOf(step), kind: "DELAY", since: step.createdAt, until };
  }
  // One that is due waits for a worker, and whether there is any matters then.
  const isDue = taskId !== null && step.retryAt !== null && step.retryAt <= at;
  if (status === "RETRYING" && !isDue) {
    const { attempt, retryAt: until, error } = step;
    return { ...placeOf(step), kind: "RETRYING", taskId, attempt, until, error };
  }
  if (type === "SUB_WORKFLOW" && status === "WAITING") return childReason(step, read);
  if (taskId === null) return undefined;
  if (status === "RUNNING") return runningReason(step, taskId, read, workers);
  const isQueued = status === "PENDING" || status === "RETRYING";
  return isQueued ? pendingReason(step, taskId, read, surroundings) : undefined;
}

/**
 * Whether it waits for a process of its own: workers have died or ended under it, or a worker that has had it
 * knows its task as isolated.
 */
export function waitsAlone(step: StepRead): boolean {
  const { status, blocked } = step;
  return (status === "PENDING" && isSuspect(step)) || isAside(blocked);
}

function isAside(blocked: string | null): boolean {
  return blocked === isolatedMark || blocked?.startsWith(failedCell) === true;
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
  const { workerId, awaited, attempt, deliveries, startedAt: since, dueAt: endsAt } = step;
  const worker = workers.find(({ id }) => id === workerId);
  const held = worker === undefined ? "WORKER_LOST" : "RUNNING";
  return {
    ...placeOf(step),
    kind: awaited ? "AWAITED" : held,
    taskId,
    workerId,
    host: worker?.host ?? null,
    beatAt: worker?.beatAt ?? null,
    attempt,
    deliveries,
    since,
    until: awaited ? dueAt(read, step, "grace") : endsAt,
  };
}

function pendingReason(
  step: StepRead,
  taskId: string,
  read: InstanceRead,
  { workers, running: steps, suspects, pauses }: Surroundings,
): Reason {
  const queue = step.queue ?? "default";
  const pause = pauses.find((each) => each.queue === queue);
  if (pause !== undefined) {
    const { at: since, by, reason } = pause;
    return { ...placeOf(step), kind: "QUEUE_PAUSED", taskId, queue, since, by, reason };
  }
  const serving = workers.filter(({ queues }) => queues.includes(queue));
  const able = serving.filter(({ tasks }) => tasks.includes(taskId));
  const none = serving.length === 0 ? "NO_WORKER_FOR_QUEUE" : "NO_WORKER_KNOWS_TASK";
  const common = {
    ...placeOf(step),
    taskId,
    queue,
    since: step.retryAt ?? step.createdAt,
    deliveries: step.deliveries,
    workers: able.map(({ id }) => id),
    failure: failureOf(step),
  };
  if (able.length === 0 || !waitsAlone(step)) {
    return {
      ...common,
      kind: able.length === 0 ? none : "QUEUED",
      taken: able.reduce((sum, { id }) => sum + (steps.get(id) ?? 0), 0),
      limit: slotsOf(able),
      isBlocked: step.blocked !== null && common.failure === null,
      until: step.lookAt,
    };
  }
  const running = suspects.filter((each) => each.queue === queue);
  const own = running.filter(({ tenantId }) => tenantId === read.snapshot.tenantId);
  return {
    ...common,
    kind: "QUEUED_ALONE",
    deaths: step.lapses,
    handOvers: step.handOvers,
    cells: able.reduce((sum, { cells }) => sum + (cells ?? 0), 0),
    taken: running.length,
    running: own.slice(0, suspectsShown).map(({ instanceId, stepId }) => ({ instanceId, stepId })),
  };
}

const suspectsShown = 5;

function failureOf({ blocked }: StepRead): string | null {
  const mark = [failedCell, failedRun].find((each) => blocked?.startsWith(each));
  return mark === undefined || blocked === null ? null : blocked.slice(mark.length);
}

/** Null where one of them is of a release that does not say. */
function slotsOf(workers: readonly LiveWorker[]): number | null {
  const known = workers.flatMap(({ concurrency }) => concurrency ?? []);
  return known.length < workers.length ? null : known.reduce((sum, each) => sum + each, 0);
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
