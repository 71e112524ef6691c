import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { Json, JsonRecord } from "./json.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { strict } from "./schema-problems.ts";
import { Key, Timestamp } from "./text.ts";

/** ACTIVE ticks; PAUSED does not; COMPLETED has no tick left. */
export const SCHEDULE_STATUSES = ["ACTIVE", "PAUSED", "COMPLETED"] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** What becomes of a tick while an earlier run is live. */
export const OVERLAP_POLICIES = [
  "SKIP",
  "BUFFER_ONE",
  "BUFFER_ALL",
  "CANCEL_OTHER",
  "ALLOW_ALL",
] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

export const SCHEDULE_TYPES = ["one-time", "recurring"] as const;
export const SCHEDULE_TARGETS = ["workflow", "task"] as const;

/** WAITING for an earlier run to settle; STARTED has an instance. */
export const SCHEDULE_RUN_STATUSES = ["WAITING", "STARTED", "SKIPPED", "FAILED"] as const;
export type ScheduleRunStatus = (typeof SCHEDULE_RUN_STATUSES)[number];
export const SCHEDULE_RUN_KINDS = ["TICK", "BACKFILL", "MANUAL"] as const;

export const ScheduleId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, {
  error: "must begin with a letter or digit, then at most 127 letters, digits and _ . -",
});

/** Checked where the schedule is made: cron expressions, time zones and durations need more than a shape. */
const Text = z.string().min(1).max(BOUNDS.name);

const scheduleFields = {
  type: z.enum(SCHEDULE_TYPES),
  target: strict("a target", {
    type: z.enum(SCHEDULE_TARGETS),
    id: z.string().min(1).max(BOUNDS.id).meta({ description: "workflow id or task id" }),
  }),
  timing: strict("timing", {
    executeAt: Timestamp.optional().meta({ description: "one-time: when it ticks" }),
    cronExpression: Text.optional().meta({
      description: "recurring: five fields, six with seconds first, or @daily and the like",
    }),
    interval: Text.optional().meta({
      description: "recurring, instead of cronExpression: elapsed time between ticks, as PT13H",
    }),
    timezone: Text.optional().meta({ description: "of cronExpression; default UTC" }),
    startDate: Timestamp.optional().meta({ description: "no tick before it" }),
    endDate: Timestamp.optional().meta({ description: "no tick after it" }),
  }),
  input: Json.optional().meta({ description: "of every instance that it starts; default {}" }),
  metadata: JsonRecord.optional().meta({
    description: "description and whatever else; createdBy and the times are set by the server",
  }),
  overlapPolicy: z.enum(OVERLAP_POLICIES).optional().meta({ description: "default SKIP" }),
  catchupWindow: Text.optional().meta({
    description: "ISO 8601 duration: ticks that are late by no more are still run; default P1D",
  }),
  jitter: Text.optional().meta({
    description: "ISO 8601 duration: each run starts up to so much after its tick; default PT0S",
  }),
  calendarId: z
    .string()
    .min(1)
    .max(BOUNDS.id)
    .nullable()
    .optional()
    .meta({ description: "recurring: ticks in the working time of this calendar only" }),
  dst: strict("dst", {
    missing: z.enum(["SHIFT", "SKIP"]).optional(),
    duplicate: z.enum(["FIRST", "BOTH"]).optional(),
  })
    .optional()
    .meta({
      description:
        "times that a change of the clock leaves out or doubles; default SHIFT and FIRST, of expressions that tick every hour SKIP and BOTH",
    }),
} as const;

/** A schedule as it is handed in (CONTRACT 3, S2's ScheduleDefinition). */
export const ScheduleDocument = strict("a schedule", {
  /** Default: the path's, or a new one. */
  id: ScheduleId.optional(),
  ...scheduleFields,
}).meta({ id: "ScheduleDocument" });
export type ScheduleDocument = z.infer<typeof ScheduleDocument>;

/** A JSON merge patch (RFC 7396) of a schedule: null removes a member. */
export const SchedulePatch = JsonRecord.meta({
  description: "JSON merge patch of the schedule, as { overlapPolicy: …, timing: { … } }",
});

const whoAndWhy = {
  reason: z.string().min(1).max(BOUNDS.reason).optional(),
  requestedBy: Key.optional(),
};

export const ControlScheduleRequest = strict("a request to a schedule", whoAndWhy);
export type ControlScheduleRequest = z.infer<typeof ControlScheduleRequest>;

export const BackfillRequest = strict("a backfill", {
  /** Both are part of the range. */
  from: Timestamp,
  to: Timestamp,
  /** Default: ALLOW_ALL for a schedule that has it, else one after the other. */
  overlapPolicy: z.enum(["BUFFER_ALL", "ALLOW_ALL"]).optional(),
  requestedBy: Key.optional(),
});
export type BackfillRequest = z.infer<typeof BackfillRequest>;

export const BackfillAnswer = z.object({
  ticks: z.int().meta({ description: "ticks of the range" }),
  started: z.int(),
  waiting: z.int().meta({ description: "that start when the ones before them have settled" }),
  failed: z.int(),
  alreadyRan: z.int().meta({ description: "ticks that had run, or were waiting to" }),
});
export type BackfillAnswer = z.infer<typeof BackfillAnswer>;

export const ScheduleRunView = z
  .object({
    kind: z.enum(SCHEDULE_RUN_KINDS),
    tickAt: Timestamp.meta({ description: "of a manual run: when it was asked for" }),
    status: z.enum(SCHEDULE_RUN_STATUSES),
    reason: z
      .string()
      .nullable()
      .meta({ description: "stable, in upper case; null unless not run" }),
    message: z.string().nullable(),
    instanceId: z.string().nullable(),
    startedAt: Timestamp.nullable(),
    createdAt: Timestamp,
  })
  .meta({ id: "ScheduleRunView" });
export type ScheduleRunView = z.infer<typeof ScheduleRunView>;

export const ScheduleRunPage = pageOf(ScheduleRunView);
export type ScheduleRunPage = z.infer<typeof ScheduleRunPage>;

/** A schedule as it is handed out, defaults filled in. */
export const ScheduleView = z
  .object({
    id: z.string(),
    tenantId: z.string(),
    ...scheduleFields,
    input: Json,
    metadata: JsonRecord,
    overlapPolicy: z.enum(OVERLAP_POLICIES),
    catchupWindow: z.string(),
    jitter: z.string(),
    calendarId: z.string().nullable(),
    dst: z
      .object({ missing: z.enum(["SHIFT", "SKIP"]), duplicate: z.enum(["FIRST", "BOTH"]) })
      .nullable()
      .meta({ description: "null where there is no cron expression" }),
    status: z.enum(SCHEDULE_STATUSES),
    version: z.int(),
    pause: z.object({ at: Timestamp, by: z.string(), reason: z.string().nullable() }).nullable(),
    nextTickAt: Timestamp.nullable(),
    lastTickAt: Timestamp.nullable(),
    counts: z.object({
      started: z.int(),
      skipped: z.int().meta({ description: "ticks given up because of the overlap policy" }),
      missed: z.int().meta({ description: "ticks that were later than the catch-up window" }),
      failed: z.int().meta({ description: "ticks whose instance could not be started" }),
    }),
    trouble: z
      .string()
      .nullable()
      .meta({ description: "why the last try to tick did not go well; it is tried again" }),
    nextTicks: z.array(Timestamp).optional().meta({ description: "not in lists" }),
    recentRuns: z.array(ScheduleRunView).optional().meta({ description: "not in lists" }),
  })
  .meta({ id: "ScheduleView" });
export type ScheduleView = z.infer<typeof ScheduleView>;

export const SchedulePage = pageOf(ScheduleView);
export type SchedulePage = z.infer<typeof SchedulePage>;

export const ListSchedulesQuery = strict("a schedule query", {
  status: z.enum(SCHEDULE_STATUSES).optional().meta({ description: "with this status" }),
  targetType: z
    .enum(SCHEDULE_TARGETS)
    .optional()
    .meta({ description: "that start a workflow, or a task" }),
  targetId: z
    .string()
    .min(1)
    .max(BOUNDS.id)
    .optional()
    .meta({ description: "that start the workflow or task of this id" }),
  ...pageQueryFields,
});
export type ListSchedulesQuery = z.infer<typeof ListSchedulesQuery>;

export const ListScheduleRunsQuery = strict("a query for runs", {
  status: z.enum(SCHEDULE_RUN_STATUSES).optional().meta({ description: "with this status" }),
  ...pageQueryFields,
});
export type ListScheduleRunsQuery = z.infer<typeof ListScheduleRunsQuery>;

export const NextTicksQuery = strict("a query for ticks", {
  count: z.coerce
    .number<string | number>()
    .int()
    .min(1)
    .max(BOUNDS.ticks)
    .optional()
    .meta({ description: "how many ticks" }),
  after: Timestamp.optional().meta({
    description: "ticks after this time; now where it is not given",
  }),
});
export type NextTicksQuery = z.infer<typeof NextTicksQuery>;

export const NextTicksAnswer = z.object({
  items: z.array(Timestamp).meta({ description: "the next ticks, in order" }),
});
export type NextTicksAnswer = z.infer<typeof NextTicksAnswer>;
