import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { Json } from "./json.ts";
import { listOf } from "./list-of.ts";
import { strict } from "./schema-problems.ts";
import { INSTANCE_STATUSES } from "./statuses.ts";
import { Timestamp } from "./text.ts";

/** A type of the history, or a pattern: `*` is one segment, `**` any number at the end. */
const StreamType = z
  .string()
  .max(BOUNDS.pattern)
  .regex(/^workflow\.(?:(?:\*|[a-z]+)\.){0,6}(?:\*\*?|[a-z]+)$/, {
    error: "must be a type of event or a pattern of them, as workflow.step.failed or workflow.*",
  });

export const StreamQuery = strict("a query of a stream", {
  lastEventId: z.string().min(1).max(BOUNDS.cursor).optional().meta({
    description:
      "as the header `Last-Event-ID`, for those who cannot send one; the header comes first; `0`: the beginning",
  }),
  types: listOf(StreamType, 20).optional().meta({
    description:
      "which events are sent, as `workflow.completed,workflow.step.*`; all where none is given",
  }),
});
export type StreamQuery = z.infer<typeof StreamQuery>;

/** An entry of the history, with the instance that it is of: the `data` of one server-sent event. */
export const StreamEvent = z
  .object({
    type: z.string(),
    at: Timestamp,
    tenantId: z.string(),
    workflowId: z.string(),
    workflowVersion: z.int(),
    instanceId: z.string(),
    correlationId: z.string().nullable(),
    version: z.int().meta({ description: "the instance's, after this change" }),
    status: z.enum(INSTANCE_STATUSES),
    oldStatus: z.enum(INSTANCE_STATUSES).meta({
      description: "before the last change of status in the same commit; else as `status`",
    }),
    reason: z.string().nullable(),
    stepId: z.string().nullable(),
    path: z.string().optional().meta({
      description: "of a step in a branch or an item, as ship[3].label",
    }),
    iteration: z.int().optional().meta({ description: "from the second pass on" }),
    actor: z.string(),
    data: Json,
  })
  .meta({ id: "StreamEvent" });
export type StreamEvent = z.infer<typeof StreamEvent>;
