import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { Json } from "./json.ts";
import { ProblemDetails } from "./problem.ts";
import { Problem, strict } from "./schema-problems.ts";
import { Key, TenantId, Timestamp } from "./text.ts";

/** The pattern of a published event names one kind of event: no wildcards. */
export const EVENT_PATTERN_PATTERN = /^[^\s.*]+(?:\.[^\s.*]+)*$/;

export const EventPattern = z.string().max(BOUNDS.pattern).regex(EVENT_PATTERN_PATTERN, {
  error: "must be segments joined by dots, without spaces and wildcards",
});

/** Patterns that only Millrace itself publishes under; anybody else's is a RESERVED_PATTERN. */
export function isReservedPattern(pattern: string): boolean {
  return pattern === "workflow" || pattern.startsWith("workflow.");
}

export const PublishEventRequest = strict("an event", {
  /** Unique per tenant; the same id again is a duplicate that does nothing. Default: a new one. */
  id: Key.optional(),
  pattern: EventPattern,
  payload: Json,
  occurredAt: Timestamp.optional(),
  tenantId: TenantId.optional(),
});
export type PublishEventRequest = z.infer<typeof PublishEventRequest>;

/** How many waits, cancellation triggers and start triggers the event matched when it was accepted. */
export const PublishEventAnswer = z
  .object({
    id: z.string(),
    duplicate: z.boolean(),
    delivered: z.int().meta({ description: "waits" }),
    cancelled: z.int().meta({ description: "instances" }),
    started: z.int().meta({ description: "instances" }),
    rejected: z
      .array(z.object({ workflowId: z.string(), errors: z.array(Problem) }))
      .optional()
      .meta({ description: "start triggers whose input did not match the workflow's schema" }),
  })
  .meta({ id: "PublishEventAnswer" });
export type PublishEventAnswer = z.infer<typeof PublishEventAnswer>;

/** One result per item, in the order of the request. */
export const PublishBatchAnswer = z.object({
  results: z.array(
    z.object({
      index: z.int(),
      status: z.int().meta({ description: "the HTTP status this item alone would have got" }),
      event: PublishEventAnswer.optional(),
      problem: ProblemDetails.optional(),
    }),
  ),
});
export type PublishBatchAnswer = z.infer<typeof PublishBatchAnswer>;

/** An event as expressions and steps see it. */
export const EventView = z.object({
  id: z.string(),
  pattern: z.string(),
  payload: Json,
  occurredAt: Timestamp,
  receivedAt: Timestamp.optional(),
});
export type EventView = z.infer<typeof EventView>;

/** What Millrace publishes about instances. */
export const LIFECYCLE_PATTERNS = [
  "workflow.started",
  "workflow.completed",
  "workflow.failed",
  "workflow.cancelled",
  "workflow.paused",
  "workflow.resumed",
  "workflow.step.completed",
  "workflow.step.failed",
  "workflow.step.retrying",
  "workflow.step.skipped",
  "workflow.compensation.completed",
] as const;
export type LifecyclePattern = (typeof LIFECYCLE_PATTERNS)[number];
