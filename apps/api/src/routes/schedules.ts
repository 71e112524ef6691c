import {
  BackfillAnswer,
  BackfillRequest,
  ControlScheduleRequest,
  ListScheduleRunsQuery,
  ListSchedulesQuery,
  NextTicksAnswer,
  NextTicksQuery,
  ScheduleDocument,
  ScheduleId,
  SchedulePage,
  SchedulePatch,
  ScheduleRunPage,
  ScheduleRunView,
  ScheduleView,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf, etagOf, idempotencyKeyOf, ifMatchOf } from "../headers.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

const SchedulePath = z.object({ id: ScheduleId.meta({ description: "of the schedule" }) });
const common = { tags: ["schedules"], querystring: NoQuery };
const one = { ...common, params: SchedulePath };

const listSchema = {
  tags: ["schedules"],
  operationId: "listSchedules",
  summary: "List schedules, in order of their ids",
  querystring: ListSchedulesQuery,
  response: { 200: SchedulePage },
};
const createSchema = {
  ...common,
  operationId: "createSchedule",
  summary: "Make a schedule",
  description:
    "It ticks from now on. The same schedule again is answered 200, another one of its id 409. All problems are told at once.",
  response: { 200: ScheduleView, 201: ScheduleView },
};
const putSchema = {
  ...one,
  operationId: "putSchedule",
  summary: "Make a schedule under its id, or replace it",
  description:
    "Ticks up to now are those of the schedule as it was; the new one ticks from now on. Where it ticks at the same times no tick is moved.",
  response: { 200: ScheduleView, 201: ScheduleView },
};
const patchSchema = {
  ...one,
  operationId: "patchSchedule",
  summary: "Change parts of a schedule by a JSON merge patch",
  description: putSchema.description,
  body: SchedulePatch,
  response: { 200: ScheduleView },
};
const getSchema = {
  ...one,
  operationId: "getSchedule",
  summary: "Read a schedule, with its next ticks and its last runs",
  response: { 200: ScheduleView },
};
const deleteSchema = {
  ...one,
  operationId: "deleteSchedule",
  summary: "Delete a schedule",
  description:
    "With what is known of its runs. Instances that it has started are left as they are.",
  response: { 204: z.null() },
};
const pauseSchema = {
  ...one,
  operationId: "pauseSchedule",
  summary: "Have no ticks until it is resumed",
  body: ControlScheduleRequest.optional(),
  response: { 202: ScheduleView },
};
const resumeSchema = {
  ...one,
  operationId: "resumeSchedule",
  summary: "Tick from now on",
  description: "Ticks of the pause are not made up for: a backfill runs them.",
  body: ControlScheduleRequest.optional(),
  response: { 202: ScheduleView },
};
const triggerSchema = {
  ...one,
  operationId: "triggerSchedule",
  summary: "Start a run now",
  description: "Whatever the ticks and the overlap policy say, also while the schedule is paused.",
  body: ControlScheduleRequest.optional(),
  response: { 202: ScheduleRunView },
};
const backfillSchema = {
  ...one,
  operationId: "backfillSchedule",
  summary: "Run the ticks of a range of the past that have not run",
  description:
    "At most 1,000 ticks. Those that ran, or wait to, are not repeated. Unless the schedule allows runs beside each other they run one after the other.",
  body: BackfillRequest,
  response: { 202: BackfillAnswer },
};
const nextSchema = {
  tags: ["schedules"],
  operationId: "nextTicks",
  summary: "When a schedule ticks next",
  description: "By its rule alone, whether it is paused or not. Jitter is not part of a tick.",
  params: SchedulePath,
  querystring: NextTicksQuery,
  response: { 200: NextTicksAnswer },
};
const runsSchema = {
  tags: ["schedules"],
  operationId: "listScheduleRuns",
  summary: "What has come of each tick, the latest first",
  params: SchedulePath,
  querystring: ListScheduleRunsQuery,
  response: { 200: ScheduleRunPage },
};

const etag = { responseHeaders: ["ETag"] } as const;
const changes = { requestHeaders: ["If-Match"], ...etag } as const;
/** Checked by what is behind the route, which finds more than its shape. */
const document = { body: ScheduleDocument } as const;

export const scheduleRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.get(
    "/v1/schedules",
    { schema: listSchema, config: { errors: ["INVALID_CURSOR"] } },
    (request) => runtime.listSchedules(callerOf(request), request.query),
  );

  app.post(
    "/v1/schedules",
    {
      schema: createSchema,
      config: {
        ...document,
        errors: ["INVALID_SCHEDULE", "SCHEDULE_EXISTS"],
        responseHeaders: ["ETag", "Location"],
      },
    },
    async (request, reply) => {
      const { schedule, created } = await runtime.createSchedule(callerOf(request), request.body);
      return reply
        .code(created ? 201 : 200)
        .headers({ etag: etagOf(schedule), location: `/v1/schedules/${schedule.id}` })
        .send(schedule);
    },
  );

  app.put(
    "/v1/schedules/:id",
    {
      schema: putSchema,
      config: {
        ...document,
        ...changes,
        errors: ["SCHEDULE_NOT_FOUND", "INVALID_SCHEDULE", "PRECONDITION_FAILED", "BUSY"],
      },
    },
    async (request, reply) => {
      const { schedule, created } = await runtime.putSchedule(
        callerOf(request),
        request.params.id,
        request.body,
        ifMatchOf(request),
      );
      return reply
        .code(created ? 201 : 200)
        .header("etag", etagOf(schedule))
        .send(schedule);
    },
  );

  app.patch(
    "/v1/schedules/:id",
    {
      schema: patchSchema,
      config: {
        ...changes,
        errors: ["SCHEDULE_NOT_FOUND", "INVALID_SCHEDULE", "PRECONDITION_FAILED", "BUSY"],
      },
    },
    async (request, reply) => {
      const { params, body } = request;
      const ifMatch = ifMatchOf(request);
      const schedule = await runtime.patchSchedule(callerOf(request), params.id, body, ifMatch);
      return reply.header("etag", etagOf(schedule)).send(schedule);
    },
  );

  app.get(
    "/v1/schedules/:id",
    { schema: getSchema, config: { ...etag, errors: ["SCHEDULE_NOT_FOUND"] } },
    async (request, reply) => {
      const schedule = await runtime.readSchedule(callerOf(request), request.params.id);
      return reply.header("etag", etagOf(schedule)).send(schedule);
    },
  );

  app.delete(
    "/v1/schedules/:id",
    {
      schema: deleteSchema,
      config: {
        requestHeaders: ["If-Match"],
        errors: ["SCHEDULE_NOT_FOUND", "PRECONDITION_FAILED"],
      },
    },
    async (request, reply) => {
      await runtime.deleteSchedule(callerOf(request), request.params.id, ifMatchOf(request));
      return reply.code(204).send(null);
    },
  );

  const control = {
    ...changes,
    errors: [
      "SCHEDULE_NOT_FOUND",
      "CALENDAR_NOT_FOUND",
      "STATUS_CONFLICT",
      "PRECONDITION_FAILED",
      "BUSY",
    ],
  } as const;
  app.post(
    "/v1/schedules/:id/pause",
    { schema: pauseSchema, config: control },
    async (request, reply) => {
      const { params, body = {} } = request;
      const caller = callerOf(request, { actor: body.requestedBy });
      const schedule = await runtime.pauseSchedule(caller, params.id, body, ifMatchOf(request));
      return reply.code(202).header("etag", etagOf(schedule)).send(schedule);
    },
  );

  app.post(
    "/v1/schedules/:id/resume",
    { schema: resumeSchema, config: control },
    async (request, reply) => {
      const { params, body = {} } = request;
      const caller = callerOf(request, { actor: body.requestedBy });
      const schedule = await runtime.resumeSchedule(caller, params.id, ifMatchOf(request));
      return reply.code(202).header("etag", etagOf(schedule)).send(schedule);
    },
  );

  app.post(
    "/v1/schedules/:id/trigger",
    {
      schema: triggerSchema,
      config: {
        errors: [
          "SCHEDULE_NOT_FOUND",
          "WORKFLOW_NOT_FOUND",
          "INVALID_INPUT",
          "IDEMPOTENCY_CONFLICT",
        ],
        requestHeaders: ["Idempotency-Key"],
        responseHeaders: ["Idempotent-Replayed"],
      },
    },
    async (request, reply) => {
      const caller = callerOf(request, { actor: request.body?.requestedBy });
      const key = idempotencyKeyOf(request);
      const { run, replayed } = await runtime.triggerSchedule(caller, request.params.id, key);
      if (replayed) void reply.header("idempotent-replayed", "true");
      return reply.code(202).send(run);
    },
  );

  app.post(
    "/v1/schedules/:id/backfill",
    {
      schema: backfillSchema,
      config: { errors: ["SCHEDULE_NOT_FOUND", "CALENDAR_NOT_FOUND"] },
    },
    async (request, reply) => {
      const caller = callerOf(request, { actor: request.body.requestedBy });
      const answer = await runtime.backfillSchedule(caller, request.params.id, request.body);
      return reply.code(202).send(answer);
    },
  );

  const config = {
    errors: ["SCHEDULE_NOT_FOUND", "CALENDAR_NOT_FOUND", "INVALID_CURSOR"],
  } as const;
  app.get("/v1/schedules/:id/next", { schema: nextSchema, config }, (request) =>
    runtime.nextTicks(callerOf(request), request.params.id, request.query),
  );
  app.get("/v1/schedules/:id/runs", { schema: runsSchema, config }, (request) =>
    runtime.listScheduleRuns(callerOf(request), request.params.id, request.query),
  );
};
