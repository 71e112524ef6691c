import * as z from "zod";
import { CancellationView, ErrorView } from "./instance-view.ts";
import { Json, JsonRecord } from "./json.ts";
import { strict } from "./schema-problems.ts";
import { COMPENSATION_STATUSES, INSTANCE_STATUSES, STEP_STATUSES, WAIT_KINDS } from "./statuses.ts";
import { InstanceId, Timestamp } from "./text.ts";

/** `GET /v1/instances/{id}/state`; the latest version where none is named. */
export const StateQuery = strict("a state query", {
  version: z.coerce
    .number<string | number>()
    .int()
    .min(1)
    .max(2_147_483_647)
    .optional()
    .meta({ description: "of the instance; the latest where none is given" }),
});
export type StateQuery = z.infer<typeof StateQuery>;

/** The latest execution of a step, as of the version asked for. */
export const StepAtView = z
  .object({
    status: z.enum(STEP_STATUSES).meta({
      description: "a task is PENDING until it ends: its being taken makes no version",
    }),
    output: Json.meta({ description: "null too where it is larger than 64 KB" }),
    error: ErrorView.nullable(),
    attempts: z.int(),
    executionId: z.string(),
    iteration: z.int(),
    since: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "StepAtView" });
export type StepAtView = z.infer<typeof StepAtView>;

/** An instance as it was at one of its versions. */
export const StateAtView = z
  .object({
    id: InstanceId,
    workflowId: z.string(),
    workflowVersion: z.int(),
    version: z.int(),
    latestVersion: z.int(),
    at: Timestamp.meta({ description: "when this version was committed" }),
    status: z.enum(INSTANCE_STATUSES),
    input: Json,
    output: Json,
    error: ErrorView.nullable(),
    state: z.object({
      variables: JsonRecord,
      steps: z.record(z.string(), StepAtView),
      waitingFor: z.array(
        z.object({
          stepId: z.string(),
          executionId: z.string(),
          kind: z.enum(WAIT_KINDS),
          eventPattern: z.string().optional(),
          since: Timestamp,
          until: Timestamp.optional(),
        }),
      ),
    }),
    compensation: z
      .object({
        status: z.enum(COMPENSATION_STATUSES),
        plan: z.array(z.string()),
        completed: z.array(z.string()),
        failed: z.array(z.object({ stepId: z.string(), error: z.string(), timestamp: Timestamp })),
        uncertain: z.array(z.string()),
        steps: z.record(z.string(), StepAtView),
        startedAt: Timestamp,
        completedAt: Timestamp.nullable(),
      })
      .nullable(),
    cancellation: CancellationView.nullable(),
    progress: z.object({ completed: z.int(), total: z.int() }),
    createdAt: Timestamp,
    startedAt: Timestamp.nullable(),
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "StateAtView" });
export type StateAtView = z.infer<typeof StateAtView>;
