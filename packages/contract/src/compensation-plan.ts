import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { ErrorView } from "./instance-view.ts";
import { Json } from "./json.ts";
import { strict } from "./schema-problems.ts";
import { INSTANCE_STATUSES } from "./statuses.ts";
import { InstanceId, Timestamp } from "./text.ts";

/** `GET /v1/instances/{id}/compensation-plan`: the reason that the cancel would have. */
export const CompensationPlanQuery = strict("a compensation plan query", {
  reason: z
    .string()
    .min(1)
    .max(BOUNDS.reason)
    .optional()
    .meta({ description: "that the cancel would have" }),
});
export type CompensationPlanQuery = z.infer<typeof CompensationPlanQuery>;

export const PlannedStepView = z
  .object({
    stepId: z.string(),
    compensationFor: z.string().meta({ description: "the step that it undoes" }),
    executionId: z.string().meta({ description: "the execution of it that it undoes" }),
    taskId: z.string().optional().meta({
      description: "left out where an expression gives it that has no value, or beyond 500 steps",
    }),
    input: Json.optional().meta({
      description: "as its task would get it; left out beyond 500 steps, or where it has no value",
    }),
    error: ErrorView.optional().meta({ description: "why it would fail before it runs" }),
  })
  .meta({ id: "PlannedStepView" });
export type PlannedStepView = z.infer<typeof PlannedStepView>;

/** What a cancel, with compensation, would do to an instance as it is now. */
export const CompensationPlanView = z
  .object({
    instanceId: InstanceId,
    workflowId: z.string(),
    workflowVersion: z.int(),
    version: z.int().meta({ description: "the instance's, for which the plan holds" }),
    status: z.enum(INSTANCE_STATUSES),
    cancellable: z.boolean().meta({ description: "false: a cancel would be answered 409" }),
    plan: z
      .array(z.string())
      .meta({ description: "ids of the compensation steps, in their order" }),
    steps: z.array(PlannedStepView).meta({ description: "the same steps in full" }),
    awaited: z
      .array(
        z.object({
          stepId: z.string(),
          executionId: z.string(),
          compensatedBy: z.string(),
          until: Timestamp.meta({ description: "how long it would be waited for at most" }),
        }),
      )
      .meta({ description: "in flight: if they succeed in time, they are compensated first" }),
    stopped: z.array(z.string()).meta({ description: "executions that would be stopped at once" }),
    skipped: z
      .array(z.object({ stepId: z.string(), compensationFor: z.string(), executionId: z.string() }))
      .meta({ description: "left out, since their condition is false" }),
    failed: z
      .array(z.object({ stepId: z.string(), error: ErrorView }))
      .meta({ description: "their condition cannot be evaluated" }),
  })
  .meta({ id: "CompensationPlanView" });
export type CompensationPlanView = z.infer<typeof CompensationPlanView>;
