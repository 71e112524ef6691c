import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { CalendarDocument } from "./calendars.ts";
import { CancellationView, ErrorView } from "./instance-view.ts";
import { Json, JsonRecord } from "./json.ts";
import { strict } from "./schema-problems.ts";
import { COMPENSATION_STATUSES, INSTANCE_STATUSES, STEP_STATUSES } from "./statuses.ts";
import { DurationText, ErrorName, Key, PatternText, StepId, Timestamp } from "./text.ts";

/** What a task answers in a simulation: an output or an error, after a while. */
export const MockResult = strict("a mocked result", {
  output: Json.optional(),
  error: strict("a mocked error", {
    type: ErrorName,
    message: z.string().max(BOUNDS.description).optional(),
    details: Json.optional(),
    retryable: z.boolean().optional(),
  }).optional(),
  /** ISO 8601 duration, default PT1S. One that is longer than the step's timeout times out. */
  duration: DurationText.optional(),
  /** It is silent otherwise: a duration longer than the step's heartbeatTimeout times out. */
  heartbeats: z.boolean().optional(),
});
export type MockResult = z.infer<typeof MockResult>;

/** Everything that happens to a simulated instance. Times are durations from its start. */
export const Scenario = strict("a scenario", {
  description: z.string().max(BOUNDS.description).optional(),
  input: Json.optional(),
  correlationId: Key.optional(),
  /** The virtual clock's start; default 2026-01-01T00:00:00Z. */
  startAt: Timestamp.optional(),
  /** By step or compensation step: a result for all attempts, or one an attempt, the last repeats. */
  tasks: z.record(StepId, z.union([MockResult, z.array(MockResult).min(1).max(100)])).optional(),
  events: z
    .array(
      strict("an event of a scenario", {
        at: DurationText,
        id: Key.optional(),
        pattern: PatternText,
        payload: Json.optional(),
      }),
    )
    .max(BOUNDS.batch)
    .optional(),
  cancel: strict("a cancel of a scenario", {
    at: DurationText,
    reason: z.string().min(1).max(BOUNDS.reason).optional(),
    shouldCompensate: z.boolean().optional(),
  }).optional(),
  /** Those that delays count by, in place of stored ones of the same id. */
  calendars: z.array(CalendarDocument).max(BOUNDS.calendars).optional(),
  /** How long the virtual clock runs at most; default P10Y. */
  until: DurationText.optional(),
});
export type Scenario = z.infer<typeof Scenario>;

export const SimulateRequest = strict("a simulation request", {
  /** Default: the latest version. */
  version: z.int().min(1).optional(),
  /** A document that need not be registered; it is used instead of the registered one. */
  definition: JsonRecord.optional(),
  scenario: Scenario,
});
export type SimulateRequest = z.infer<typeof SimulateRequest>;
/** With what may be left out of it. */
export type SimulateSource = z.input<typeof SimulateRequest>;

const compensation = z.object({
  status: z.enum(COMPENSATION_STATUSES),
  plan: z.array(z.string()),
  completed: z.array(z.string()),
  failed: z.array(z.object({ stepId: z.string(), error: z.string() })),
  uncertain: z.array(z.string()),
});

/** What came of a simulation. Nothing of it is stored. */
export const SimulationView = z
  .object({
    workflowId: z.string(),
    workflowVersion: z.int().nullable().meta({ description: "null: not a registered one" }),
    outcome: z.enum(["SETTLED", "STUCK", "TIME_LIMIT", "STEP_LIMIT"]).meta({
      description: "STUCK: it waits for what does not come in the scenario",
    }),
    instance: z.object({
      status: z.enum(INSTANCE_STATUSES),
      output: Json,
      error: ErrorView.nullable(),
      variables: JsonRecord,
      steps: z.record(
        z.string(),
        z.object({
          status: z.enum(STEP_STATUSES),
          output: Json,
          error: ErrorView.nullable(),
          attempts: z.int(),
          iteration: z.int(),
        }),
      ),
      waitingFor: z.array(z.object({ stepId: z.string(), eventPattern: z.string() })),
      cancellation: CancellationView.nullable(),
      compensation: compensation.nullable(),
      createdAt: Timestamp,
      completedAt: Timestamp.nullable(),
    }),
    path: z.array(z.string()).meta({ description: "executions in the order in which they began" }),
    transcript: z.array(
      z.object({
        at: Timestamp,
        what: z.string(),
        changes: z.array(
          z.object({
            executionId: z.string(),
            status: z.enum(STEP_STATUSES),
            error: z.string().optional(),
          }),
        ),
        status: z.enum(INSTANCE_STATUSES),
      }),
    ),
    coverage: z.object({
      transitions: z.array(z.object({ from: z.string(), to: z.string(), taken: z.int() })),
      taken: z.int(),
      total: z.int(),
      unreached: z.array(z.string()).meta({ description: "steps that were never entered" }),
    }),
    unmocked: z
      .array(z.string())
      .meta({ description: "tasks that had no result: null after PT1S" }),
    events: z.array(z.object({ id: z.string(), pattern: z.string(), delivered: z.boolean() })),
  })
  .meta({ id: "SimulationView" });
export type SimulationView = z.infer<typeof SimulationView>;
