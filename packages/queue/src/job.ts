import { z } from "zod";

// As narrow as the columns: jobs are looked up many at a time, and one that none can be compared with
// would fail the statement for all.
const id = z
  .string()
  .min(1)
  .max(2_000)
  .regex(/^[^\0]*$/);
const uuid = z.guid();
const count = z.int32().min(0);

/** Carries a step execution to a worker. Ids only: what they mean is read from Postgres. */
export const stepJobSchema = z.object({
  tenantId: id,
  instanceId: uuid,
  path: id,
  iteration: count,
  attempt: count,
  fence: count,
  taskId: id,
  lapses: count.optional(),
});
export interface StepJob {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
  readonly taskId: string;
  /** Of a step that is to run alone: how many workers have died under this attempt. */
  readonly lapses?: number | undefined;
}

/** Says that an instance has something to apply: a matched wait, a child's end, a due timer. */
export const advanceJobSchema = z.object({ tenantId: id, instanceId: uuid, cause: id });
export interface AdvanceJob {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly cause: string;
}

/**
 * The id under which an execution travels, the same for the same attempt and fence, so that adding
 * it twice while it is kept adds it once.
 */
export function stepJobId({ instanceId, path, iteration, attempt, fence }: StepJob): string {
  return withoutColon(`${instanceId}.${path}#${iteration}.${attempt}.${fence}`);
}

/**
 * The same for the same instance and cause, so that a cause is carried once while its job waits
 * *or runs*. A cause therefore names what is to be applied (`wait.<id>`, `child.<id>`): under one
 * name for all, what comes up while a job runs would be left to the reconciler.
 */
export function advanceJobId({ instanceId, cause }: AdvanceJob): string {
  return withoutColon(`${instanceId}.${cause}`);
}

/** Names the queue that carries advance jobs where a task queue is asked for, as in `depths`. */
export const advanceQueue = ":advance";

/** The BullMQ queue of a task queue. */
export function queueName(queue: string): string {
  return queue === advanceQueue ? "advance" : `steps.${withoutColon(queue)}`;
}

/** The BullMQ queue of those steps of a task queue that are to run alone. */
export function isolatedQueueName(queue: string): string {
  return `isolated.${withoutColon(queue)}`;
}

/** The task queue of a BullMQ queue that has the name; undefined where it carries no steps. */
export function taskQueueOf(name: string): string | undefined {
  const [, queue] = /^(?:steps|isolated)\.(.*)$/.exec(name) ?? [];
  return queue?.replaceAll("%3A", ":").replaceAll("%25", "%");
}

/**
 * From an instance's priority, −1000 to 1000 and higher first, to BullMQ's, 1 to 2001 and lower
 * first. Never 0: BullMQ runs jobs without a priority before all others.
 */
export function jobPriority(priority: number): number {
  return 1_001 - Math.trunc(Math.max(-1_000, Math.min(1_000, priority)));
}

/** BullMQ refuses ids and queue names with a colon; `%` is escaped too, so that no two ids meet. */
function withoutColon(text: string): string {
  return text.includes(":") || text.includes("%")
    ? text.replaceAll("%", "%25").replaceAll(":", "%3A")
    : text;
}
