import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { strict } from "./schema-problems.ts";
import { INSTANCE_STATUSES } from "./statuses.ts";
import { Key, Timestamp, WorkflowId } from "./text.ts";

/** `/healthz`: the process answers. */
export const HealthView = z.object({ status: z.literal("ok") });
export type HealthView = z.infer<typeof HealthView>;

/** `/readyz`: 200 when all dependencies answer, else 503 and which one does not. */
export const ReadinessView = z.object({
  status: z.enum(["ok", "unavailable"]),
  checks: z.record(
    z.string(),
    z.object({
      status: z.enum(["ok", "down"]),
      required: z.boolean().optional().meta({ description: "false: its loss only slows things" }),
      detail: z.string().optional(),
      latencyMs: z.number().optional(),
    }),
  ),
});
export type ReadinessView = z.infer<typeof ReadinessView>;

/** `/v1/stats`: figures over instances, or those of one workflow. Times are in milliseconds. */
const figures = {
  total: z.int(),
  instances: z.partialRecord(z.enum(INSTANCE_STATUSES), z.int()),
  successRate: z.number().nullable().meta({ description: "completed of all that ended, 0 to 1" }),
  executionTimeMs: z
    .object({ min: z.number(), mean: z.number(), max: z.number() })
    .nullable()
    .meta({ description: "from start to settling; null when none has settled" }),
  retries: z.int().meta({ description: "attempts of steps beyond the first" }),
} as const;

export const StatsQuery = strict("a stats query", {
  workflowId: WorkflowId.optional().meta({ description: "of this workflow alone" }),
});
export type StatsQuery = z.infer<typeof StatsQuery>;

export const StatsView = z
  .object({
    ...figures,
    at: Timestamp,
    isComplete: z.boolean().meta({
      description: "false: there are more instances; the figures are those of the latest ones",
    }),
    workflows: z.array(z.object({ workflowId: z.string(), ...figures })),
  })
  .meta({ id: "StatsView" });
export type StatsView = z.infer<typeof StatsView>;

/** `/v1/workers`: the processes that run tasks and have beaten within the last seconds. */
export const WorkerView = z
  .object({
    id: z.string(),
    host: z.string(),
    pid: z.int(),
    tasks: z.array(z.string()),
    queues: z.array(z.string()),
    running: z.int().meta({ description: "steps that it holds now" }),
    startedAt: Timestamp,
    lastBeatAt: Timestamp,
  })
  .meta({ id: "WorkerView" });
export type WorkerView = z.infer<typeof WorkerView>;

export const WorkerList = z.object({ items: z.array(WorkerView) });
export type WorkerList = z.infer<typeof WorkerList>;

/** `/v1/tasks`: what live workers know, and what steps wait for in vain. */
export const TaskView = z
  .object({
    id: z.string(),
    workers: z.array(z.string()).meta({ description: "ids of the live workers that know it" }),
    isolated: z.boolean().meta({
      description: "whether one of these workers has it as one whose runs have a process each",
    }),
    blocked: z.int().meta({ description: "steps that wait for a worker that knows it" }),
  })
  .meta({ id: "TaskView" });
export type TaskView = z.infer<typeof TaskView>;

export const TaskList = z.object({ items: z.array(TaskView) });
export type TaskList = z.infer<typeof TaskList>;

/** `/v1/queues`: steps by queue, as Postgres has them, and the jobs that carry them. */
export const QueueView = z
  .object({
    name: z.string(),
    pending: z.int().meta({ description: "steps of the tenant that no worker has taken yet" }),
    retrying: z.int().meta({ description: "steps that wait for their next attempt" }),
    running: z.int(),
    oldestPendingAt: Timestamp.nullable(),
    workers: z.array(z.string()).meta({ description: "ids of the live workers that serve it" }),
    paused: z.boolean().meta({ description: "no step of it begins until it is resumed" }),
    pause: z
      .object({ at: Timestamp, by: z.string(), reason: z.string().nullable() })
      .nullable()
      .meta({ description: "since when it is paused, by whom and why; null: it is not" }),
    jobs: z
      .object({
        waiting: z.int(),
        active: z.int(),
        delayed: z.int(),
        prioritized: z.int(),
        isolated: z.int().meta({
          description:
            "those of steps that run alone: their task is isolated, or workers died under them",
        }),
      })
      .nullable()
      .meta({ description: "of all tenants; null while the queue's server does not answer" }),
  })
  .meta({ id: "QueueView" });
export type QueueView = z.infer<typeof QueueView>;

/** As `MILLRACE_QUEUES` names them. */
export const QueueName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, {
  error: "must begin with a letter or digit, then at most 127 letters, digits, _, . and -",
});

export const ControlQueueRequest = strict("a request to a queue", {
  reason: z.string().min(1).max(BOUNDS.reason).optional(),
  requestedBy: Key.optional(),
});
export type ControlQueueRequest = z.infer<typeof ControlQueueRequest>;

export const QueueList = z.object({ items: z.array(QueueView) });
export type QueueList = z.infer<typeof QueueList>;
