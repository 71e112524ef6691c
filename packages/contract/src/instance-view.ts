import * as z from "zod";
import { Json, JsonRecord } from "./json.ts";
import {
  CANCELLATION_SOURCES,
  COMPENSATION_STATUSES,
  ERROR_KINDS,
  INSTANCE_STATUSES,
  isTerminalStatus,
  PAUSE_CAUSES,
  STEP_STATUSES,
  WAIT_KINDS,
} from "./statuses.ts";
import { InstanceId, Timestamp } from "./text.ts";

/** Why an instance, a step or a compensation step failed. */
export const ErrorView = z
  .object({
    kind: z.enum(ERROR_KINDS),
    type: z.string().meta({ description: "the error's name, as onError and retry match it" }),
    message: z.string(),
    stepId: z.string().nullable(),
    attempt: z.int().nullable(),
    details: Json,
  })
  .meta({ id: "ErrorView" });
export type ErrorView = z.infer<typeof ErrorView>;

/** The latest execution of a step. A step that was never reached has no entry. */
export const StepView = z
  .object({
    status: z.enum(STEP_STATUSES),
    output: Json,
    error: ErrorView.nullable(),
    attempts: z.int().meta({ description: "user-visible tries" }),
    startedAt: Timestamp.nullable(),
    completedAt: Timestamp.nullable(),
    type: z.string().optional(),
    path: z.string().optional().meta({
      description: "where it stands, for a step in a branch or an item, as ship[3].label",
    }),
    executionId: z.string().optional().meta({ description: "its path and iteration" }),
    iteration: z.int().optional().meta({ description: "which pass through the step, from 1" }),
    deliveries: z
      .int()
      .optional()
      .meta({ description: "runs of this attempt, those cut short by a death included" }),
    completionNumber: z.int().nullable().optional().meta({ description: "order of completion" }),
    nextAttemptAt: Timestamp.nullable().optional(),
    blocked: z.string().nullable().optional().meta({
      description: "why no worker has taken it yet; isolated: it waits for a process of its own",
    }),
    progress: Json.optional().meta({ description: "what the task last reported" }),
    workerId: z.string().nullable().optional(),
    childId: InstanceId.optional().meta({
      description: "the instance that a SUB_WORKFLOW started",
    }),
    items: z
      .object({ count: z.int(), completed: z.int(), failed: z.int(), active: z.int() })
      .optional()
      .meta({ description: "what has come of the items of a MAP" }),
  })
  .meta({ id: "StepView" });
export type StepView = z.infer<typeof StepView>;

/** One execution of a step, whichever it is. */
export const StepExecutionView = StepView.extend({
  stepId: z.string(),
  path: z.string(),
  input: Json,
  compensates: z.string().nullable().meta({
    description: "of a compensation step: the execution that it undoes",
  }),
}).meta({ id: "StepExecutionView" });
export type StepExecutionView = z.infer<typeof StepExecutionView>;

/** An open wait. */
export const WaitView = z
  .object({
    stepId: z.string(),
    path: z.string().optional(),
    executionId: z.string().optional(),
    kind: z.enum(WAIT_KINDS),
    eventPattern: z.string().optional(),
    eventCondition: z.string().optional(),
    since: Timestamp,
    until: Timestamp.optional().meta({ description: "when it times out, or the delay ends" }),
  })
  .meta({ id: "WaitView" });
export type WaitView = z.infer<typeof WaitView>;

export const CompensationStepView = z
  .object({
    status: z.enum(STEP_STATUSES),
    attempts: z.int(),
    output: Json,
    error: ErrorView.nullable(),
    startedAt: Timestamp.nullable(),
    completedAt: Timestamp.nullable(),
    compensationFor: z.string().optional(),
    executionId: z.string().optional(),
    nextAttemptAt: Timestamp.nullable().optional(),
  })
  .meta({ id: "CompensationStepView" });
export type CompensationStepView = z.infer<typeof CompensationStepView>;

export const CompensationView = z
  .object({
    status: z.enum(COMPENSATION_STATUSES),
    plan: z.array(z.string()).meta({ description: "compensation step ids, in the order they run" }),
    completed: z.array(z.string()),
    failed: z.array(z.object({ stepId: z.string(), error: z.string(), timestamp: Timestamp })),
    steps: z.record(z.string(), CompensationStepView),
    uncertain: z.array(z.string()).meta({ description: "steps whose outcome is unknown" }),
    startedAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "CompensationView" });
export type CompensationView = z.infer<typeof CompensationView>;

export const CancellationView = z
  .object({
    reason: z.string().nullable(),
    requestedBy: z.string(),
    requestedAt: Timestamp,
    source: z.enum(CANCELLATION_SOURCES),
    eventId: z.string().optional(),
    shouldCompensate: z.boolean(),
  })
  .meta({ id: "CancellationView" });
export type CancellationView = z.infer<typeof CancellationView>;

/** The step that started an instance as its child. */
export const ParentView = z
  .object({
    instanceId: InstanceId,
    path: z.string().meta({ description: "of the step, `ship[3].label`" }),
    executionId: z.string(),
    detached: z.boolean().meta({ description: "the parent does not wait for it" }),
  })
  .meta({ id: "ParentView" });
export type ParentView = z.infer<typeof ParentView>;
/** Why nothing of it starts for now. */
export const PauseView = z
  .object({
    by: z.string(),
    at: Timestamp,
    reason: z.string().nullable(),
    until: Timestamp.nullable().meta({ description: "when it resumes by itself" }),
    from: z.enum(INSTANCE_STATUSES).meta({ description: "the status that it goes back to" }),
    cause: z.enum(PAUSE_CAUSES).meta({
      description: "EXHAUSTED: the retries of a step are spent, and onExhausted is PAUSE",
    }),
  })
  .meta({ id: "PauseView" });
export type PauseView = z.infer<typeof PauseView>;

export const InstanceState = z
  .object({
    variables: JsonRecord,
    steps: z.record(z.string(), StepView).meta({
      description:
        "by step id the latest execution of each step; by path, as ship[3].label, those in items of a MAP: of each MAP at most 100 that are live, 100 that failed and 100 others",
    }),
    waitingFor: z.array(WaitView),
  })
  .meta({ id: "InstanceState" });
export type InstanceState = z.infer<typeof InstanceState>;

export const InstanceView = z
  .object({
    id: InstanceId,
    workflowId: z.string(),
    workflowVersion: z.int(),
    status: z.enum(INSTANCE_STATUSES),
    version: z.int().meta({ description: "grows with every change; the ETag" }),
    input: Json,
    output: Json,
    error: ErrorView.nullable(),
    state: InstanceState,
    compensation: CompensationView.nullable(),
    cancellation: CancellationView.nullable(),
    parent: ParentView.nullable(),
    pause: PauseView.nullable(),
    progress: z.object({ completed: z.int(), total: z.int() }).meta({
      description:
        "of the steps that are in no MAP, and of the items of each MAP that has begun, how many have completed",
    }),
    correlationId: z.string().nullable(),
    tenantId: z.string(),
    userId: z.string().nullable(),
    startEventId: z.string().nullable().meta({ description: "the event that started it" }),
    priority: z.int(),
    deadline: Timestamp.nullable(),
    metadata: JsonRecord,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    startedAt: Timestamp.nullable(),
    completedAt: Timestamp.nullable().meta({ description: "when it was settled" }),
  })
  .meta({ id: "InstanceView" });
export type InstanceView = z.infer<typeof InstanceView>;

/** An instance is settled when nothing about it will move on by itself any more. */
export function isSettled(instance: Pick<InstanceView, "status" | "compensation">): boolean {
  return isTerminalStatus(instance.status) && instance.compensation?.status !== "IN_PROGRESS";
}
