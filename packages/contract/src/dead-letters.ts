import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { ErrorView } from "./instance-view.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { strict } from "./schema-problems.ts";
import { InstanceId, Key, Timestamp, WorkflowId } from "./text.ts";

/** What becomes of a step that killed its workers: an operator retries or discards it. */
export const DEAD_LETTER_STATUSES = ["OPEN", "RETRIED", "DISCARDED"] as const;
export type DeadLetterStatus = (typeof DEAD_LETTER_STATUSES)[number];

/** The id of a dead letter. */
export const DeadLetterId = InstanceId;

/** A delivery that ended with the death of its worker. */
export const LapsedDeliveryView = z
  .object({
    attempt: z.int(),
    workerId: z.string().nullable(),
    host: z.string().nullable(),
    pid: z.int().nullable(),
    lastBeatAt: Timestamp.nullable(),
    foundAt: Timestamp.meta({ description: "when its silence was noticed" }),
    rssBytes: z
      .number()
      .nullable()
      .meta({ description: "its memory at the last beat, or the most it was seen to have" }),
    exit: z.string().nullable().meta({
      description:
        "the signal or exit code, where its supervisor has told; or of what the run came to nothing",
    }),
    log: z.string().nullable().meta({
      description:
        "where the log of that worker tells of its end; null where nothing is known of it",
    }),
  })
  .meta({ id: "LapsedDeliveryView" });
export type LapsedDeliveryView = z.infer<typeof LapsedDeliveryView>;

export const DeadLetterView = z
  .object({
    id: z.string(),
    instanceId: z.string(),
    workflowId: z.string(),
    workflowVersion: z.int(),
    stepId: z.string(),
    executionId: z.string(),
    taskId: z.string().nullable(),
    attempt: z.int(),
    status: z.enum(DEAD_LETTER_STATUSES),
    error: ErrorView,
    deliveries: z.array(LapsedDeliveryView),
    createdAt: Timestamp,
    resolvedAt: Timestamp.nullable(),
    resolvedBy: z.string().nullable(),
    reason: z.string().nullable(),
  })
  .meta({ id: "DeadLetterView" });
export type DeadLetterView = z.infer<typeof DeadLetterView>;

export const ListDeadLettersQuery = strict("a dead letter query", {
  status: z
    .enum([...DEAD_LETTER_STATUSES, "ALL"])
    .optional()
    .meta({ description: "OPEN where none is given" }),
  workflowId: WorkflowId.optional().meta({ description: "of this workflow" }),
  instanceId: InstanceId.optional().meta({ description: "of this instance" }),
  ...pageQueryFields,
});
export type ListDeadLettersQuery = z.infer<typeof ListDeadLettersQuery>;

export const DeadLetterPage = pageOf(DeadLetterView);
export type DeadLetterPage = z.infer<typeof DeadLetterPage>;

export const ResolveDeadLetterRequest = strict("a dead letter request", {
  reason: z.string().min(1).max(BOUNDS.reason).optional(),
  requestedBy: Key.optional(),
});
export type ResolveDeadLetterRequest = z.infer<typeof ResolveDeadLetterRequest>;
