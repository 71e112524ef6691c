import * as z from "zod";
import { ErrorView } from "./instance-view.ts";
import { Json } from "./json.ts";
import { INSTANCE_STATUSES } from "./statuses.ts";
import { InstanceId, Timestamp } from "./text.ts";

/** What an instance can stand at. */
export const WHY_KINDS = [
  "ENDED",
  "DEFINITION_MISSING",
  "DAMAGED",
  "QUEUE_AWAY",
  "STARTS_LATER",
  "LIMIT",
  "PAUSED",
  "QUEUE_PAUSED",
  "NO_WORKER_KNOWS_TASK",
  "NO_WORKER_FOR_QUEUE",
  "QUEUED",
  "QUEUED_ALONE",
  "RUNNING",
  "WORKER_LOST",
  "AWAITED",
  "RETRYING",
  "DELAY",
  "CONTINUES",
  "ITEMS",
  "EVENT_WAIT",
  "EVENT_TAKEN",
  "CHILD_WORKFLOW",
  "DEAD_LETTER",
] as const;
export type WhyKind = (typeof WHY_KINDS)[number];

/** A past event that did not satisfy a wait. */
export const NearMissView = z
  .object({
    eventId: z.string(),
    pattern: z.string(),
    payload: Json,
    receivedAt: Timestamp,
    because: z.enum(["CONDITION", "BEFORE_WAIT"]).meta({
      description: "BEFORE_WAIT: it came before the wait was open; a lookback would find it",
    }),
    failed: z
      .array(z.object({ source: z.string(), filledIn: z.string(), problem: z.string().optional() }))
      .meta({ description: "the parts of the condition that were false, with their values" }),
  })
  .meta({ id: "NearMissView" });
export type NearMissView = z.infer<typeof NearMissView>;

/** What an instance waits for by its own account, and no row says. */
export const MISSING_PARTS = ["STEP", "WAIT", "TIMER", "CHILD", "SLOT", "ANY"] as const;

export const WhyReasonView = z
  .object({
    kind: z.enum(WHY_KINDS),
    message: z.string().meta({ description: "one sentence for people" }),
    stepId: z.string().optional(),
    executionId: z.string().optional(),
    isCompensation: z.boolean().optional(),
    taskId: z.string().optional(),
    queue: z.string().optional(),
    workers: z
      .array(z.string())
      .optional()
      .meta({ description: "live workers that could take it" }),
    workerId: z.string().nullable().optional(),
    host: z.string().nullable().optional(),
    lastBeatAt: Timestamp.nullable().optional().meta({
      description:
        "of a step that a worker has: when that was last heard of; null: nobody knows it",
    }),
    attempt: z.int().optional(),
    deliveries: z.int().optional().meta({ description: "of a task: runs of this attempt so far" }),
    error: ErrorView.nullable().optional(),
    since: Timestamp.nullable().optional(),
    until: Timestamp.nullable().optional().meta({
      description:
        "when what it waits for is over. QUEUED: when its job is looked for, should that be lost. RUNNING: when the clock of its attempt is over",
    }),
    eventPattern: z.string().optional(),
    eventCondition: z.string().nullable().optional(),
    filledIn: z
      .string()
      .nullable()
      .optional()
      .meta({ description: "the condition with the instance's values" }),
    deadLetterId: z.string().nullable().optional(),
    nearMisses: z.array(NearMissView).optional(),
    childId: z.string().optional(),
    childWorkflowId: z.string().optional(),
    childStatus: z
      .enum(INSTANCE_STATUSES)
      .nullable()
      .optional()
      .meta({ description: "null: it is about to be started" }),
    limitKey: z
      .string()
      .optional()
      .meta({ description: "LIMIT: which one, such as `type:<workflowId>`" }),
    limit: z.int().nullable().optional().meta({
      description:
        "LIMIT: slots that there are; QUEUED: steps that these workers run at a time, null: not all of them say; ITEMS: items that may be under way",
    }),
    taken: z.int().optional().meta({
      description:
        "LIMIT: slots that are taken; QUEUED: steps that these workers run; QUEUED_ALONE: steps that run alone; ITEMS: items that are under way",
    }),
    position: z
      .int()
      .nullable()
      .optional()
      .meta({ description: "LIMIT: place in the queue, from 1; null: it has its slot" }),
    queued: z.int().optional().meta({
      description: "LIMIT: how many wait, this one among them; ITEMS: how many have not begun",
    }),
    isBlocked: z.boolean().optional().meta({
      description: "QUEUED: whether a worker has had it that does not know its task",
    }),
    problem: z.string().optional().meta({ description: "QUEUE_AWAY: what the queue answers" }),
    missing: z.enum(MISSING_PARTS).optional().meta({
      description:
        "DAMAGED: what the instance waits for by its own account, and no row says; ANY: nothing that is known",
    }),
    deaths: z.int().optional().meta({
      description:
        "QUEUED_ALONE: runs of this attempt that came to no end: workers died under it, or could not carry it through",
    }),
    handOvers: z.int().optional().meta({
      description:
        "QUEUED_ALONE: how often in a row its worker was asked to end soon after it had begun",
    }),
    failure: z.string().nullable().optional().meta({
      description: "of what its last run came to nothing, or why the process for it did not start",
    }),
    cells: z.int().optional().meta({
      description:
        "QUEUED_ALONE: processes that these workers have for such steps of its queue, at most",
    }),
    running: z
      .array(z.object({ instanceId: InstanceId, stepId: z.string() }))
      .optional()
      .meta({ description: "QUEUED_ALONE: steps that run in them, the first few" }),
    by: z.string().optional().meta({ description: "PAUSED and QUEUE_PAUSED: who asked for it" }),
    reason: z.string().nullable().optional(),
    held: z
      .object({
        steps: z.int().meta({ description: "tasks that would be queued" }),
        results: z.int().meta({ description: "steps that have ended, and are not left yet" }),
        events: z.int().meta({ description: "waits that have their event" }),
        timers: z.int().meta({ description: "timers that have come due" }),
      })
      .optional()
      .meta({ description: "PAUSED: what is applied when it resumes" }),
  })
  .meta({ id: "WhyReasonView" });
export type WhyReasonView = z.infer<typeof WhyReasonView>;

/** Why an instance is not moving. */
export const WhyView = z
  .object({
    instanceId: InstanceId,
    version: z.int(),
    status: z.enum(INSTANCE_STATUSES),
    at: Timestamp,
    summary: z.string(),
    reasons: z.array(WhyReasonView).meta({ description: "empty: it is about to move" }),
  })
  .meta({ id: "WhyView" });
export type WhyView = z.infer<typeof WhyView>;
