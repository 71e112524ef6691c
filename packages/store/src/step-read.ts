import { attemptsMade, latestById } from "@millrace/engine";
import type { ItemCounts, StepStatus, WorkflowError } from "@millrace/engine";
import { placeName } from "./child-links.ts";
import type { ChildLink, StepPlace } from "./child-links.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";

export interface StepRead {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: StepStatus;
  readonly attempt: number;
  readonly deliveries: number;
  /** Deliveries of this attempt that ended with the silence of their worker. */
  readonly lapses: number;
  /** How often in a row its worker was asked to end soon after it had begun. */
  readonly handOvers: number;
  readonly taskId: string | null;
  readonly queue: string | null;
  /** Execution key of what a compensation step undoes; null for any other step. */
  readonly compensates: string | null;
  readonly output: Json | undefined;
  readonly error: WorkflowError | null;
  readonly completion: number | null;
  readonly entry: number | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  readonly retryAt: Date | null;
  readonly workerId: string | null;
  readonly awaited: boolean;
  /** Why no worker takes it. */
  readonly blocked: string | null;
  /** When its job is looked for, should that be lost; null where nobody need look. */
  readonly lookAt: Date | null;
  /** When the clock of the attempt that runs is over. */
  readonly dueAt: Date | null;
  readonly progress: Json | undefined;
  /** Of a SUB_WORKFLOW the latest one. */
  readonly child?: ChildLink | undefined;
  /** MAP only, as they were when it last was written: when it began, and when it settled. */
  readonly items: ItemCounts | undefined;
}

export interface StepRow extends OfInstance {
  readonly step_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: string;
  readonly attempt: number;
  readonly deliveries: number;
  readonly lapses: number;
  readonly hand_overs: number;
  readonly task_id: string | null;
  readonly queue: string | null;
  readonly compensates: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly completion: number | null;
  readonly entry: number | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly completed_at: Date | null;
  readonly retry_at: Date | null;
  readonly worker_id: string | null;
  readonly awaited: boolean;
  readonly blocked: string | null;
  readonly look_at: Date | null;
  readonly due_at: Date | null;
  readonly progress: string | null;
  readonly items: string | null;
}

export interface OfInstance {
  readonly tenant_id: string;
  readonly instance_id: string;
}

/** @param output What stands for it, in SQL. */
export const stepColumnsWith = (
  output: string,
) => `s.tenant_id, s.instance_id, s.step_id, s.path, s.iteration, s.type,
    s.status, s.attempt, s.deliveries, s.lapses, s.hand_overs, s.task_id, s.queue, s.compensates, ${output} as output,
    s.error::text as error, s.completion, s.entry, s.created_at, s.started_at, s.completed_at, s.retry_at,
    s.worker_id, s.awaited, s.blocked, s.look_at, s.due_at, s.progress::text as progress, s.items::text as items`;

export const stepColumns = stepColumnsWith("s.output::text");

/** Those that were begun: a task that no worker has taken yet has none. */
export function attemptsOf({ type, status, attempt, startedAt }: StepRead): number {
  return type === "TASK" && startedAt === null ? 0 : attemptsMade(status, attempt);
}

/** By its id the latest of the executions of each step. */
export function latestSteps(steps: readonly StepRead[]): ReadonlyMap<string, StepRead> {
  return latestById(steps);
}

export function stepReadOf(row: StepRow, children: ReadonlyMap<string, ChildLink>): StepRead {
  const [place] = childPlaceOf(row);
  return {
    stepId: row.step_id,
    path: row.path,
    iteration: row.iteration,
    type: row.type,
    status: row.status as StepStatus,
    attempt: row.attempt,
    deliveries: row.deliveries,
    lapses: row.lapses,
    handOvers: row.hand_overs,
    taskId: row.task_id,
    queue: row.queue,
    compensates: row.compensates,
    output: parseJson(row.output),
    error: (parseJson(row.error) ?? null) as WorkflowError | null,
    completion: row.completion,
    entry: row.entry,
    createdAt: row.created_at,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    retryAt: row.retry_at,
    workerId: row.worker_id,
    awaited: row.awaited,
    blocked: row.blocked,
    lookAt: row.look_at,
    dueAt: row.due_at,
    progress: parseJson(row.progress),
    items: parseJson(row.items) as ItemCounts | undefined,
    child: place && children.get(placeName(place)),
  };
}

/** Whose child is asked for, in a statement of its own: few instances have any. */
export function childPlaceOf(row: StepRow): readonly StepPlace[] {
  const { type, tenant_id: tenantId, instance_id: instanceId, path, iteration } = row;
  return type === "SUB_WORKFLOW" ? [{ tenantId, instanceId, path, iteration }] : [];
}
