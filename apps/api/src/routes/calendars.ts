import {
  CalendarDocument,
  CalendarId,
  CalendarPage,
  CalendarView,
  ListCalendarsQuery,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf, etagOf, ifMatchOf, isKnown } from "../headers.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

const CalendarPath = z.object({ id: CalendarId.meta({ description: "of the calendar" }) });
/** The path says it. */
const CalendarOfPath = CalendarDocument.partial({ id: true }).meta({ id: "CalendarOfPath" });

const common = { tags: ["calendars"], querystring: NoQuery };

const postSchema = {
  ...common,
  operationId: "createCalendar",
  summary: "Create a calendar",
  description:
    "A DELAY that names it counts its duration in the calendar's working time. Public holidays are looked up when it is stored, for twenty years.",
  response: { 201: CalendarView },
};
const putSchema = {
  ...common,
  operationId: "putCalendar",
  summary: "Create or change a calendar",
  description:
    "A change concerns the delays that begin after it: those that wait already keep their time. Storing it again looks its public holidays up for the years to come.",
  params: CalendarPath,
  response: { 200: CalendarView, 201: CalendarView },
};
const getSchema = {
  ...common,
  operationId: "getCalendar",
  summary: "Read a calendar",
  params: CalendarPath,
  response: { 200: CalendarView, 304: z.null().describe("It is still the one of If-None-Match.") },
};
const listSchema = {
  tags: ["calendars"],
  operationId: "listCalendars",
  summary: "List calendars, in order of their ids",
  querystring: ListCalendarsQuery,
  response: { 200: CalendarPage },
};
const deleteSchema = {
  ...common,
  operationId: "deleteCalendar",
  summary: "Delete a calendar",
  description:
    "Delays that wait already go on. A delay that names it and begins later fails with an error of kind EXPRESSION.",
  params: CalendarPath,
  response: { 204: z.null().describe("It is gone.") },
};

export const calendarRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.post(
    "/v1/calendars",
    {
      schema: postSchema,
      config: {
        body: CalendarDocument,
        errors: ["CALENDAR_EXISTS", "INVALID_CALENDAR"],
        responseHeaders: ["ETag", "Location"],
      },
    },
    async (request, reply) => {
      const calendar = await runtime.createCalendar(callerOf(request), request.body);
      return reply
        .code(201)
        .header("etag", etagOf(calendar))
        .header("location", `/v1/calendars/${calendar.id}`)
        .send(calendar);
    },
  );

  app.put(
    "/v1/calendars/:id",
    {
      schema: putSchema,
      config: {
        body: CalendarOfPath,
        errors: ["PRECONDITION_FAILED", "INVALID_CALENDAR"],
        requestHeaders: ["If-Match"],
        responseHeaders: ["ETag"],
      },
    },
    async (request, reply) => {
      const { calendar, created } = await runtime.putCalendar(
        callerOf(request),
        request.params.id,
        request.body,
        ifMatchOf(request),
      );
      return reply
        .code(created ? 201 : 200)
        .header("etag", etagOf(calendar))
        .send(calendar);
    },
  );

  app.get(
    "/v1/calendars",
    { schema: listSchema, config: { errors: ["INVALID_CURSOR"] } },
    (request) => runtime.listCalendars(callerOf(request), request.query),
  );

  app.get(
    "/v1/calendars/:id",
    {
      schema: getSchema,
      config: {
        errors: ["CALENDAR_NOT_FOUND"],
        requestHeaders: ["If-None-Match"],
        responseHeaders: ["ETag"],
      },
    },
    async (request, reply) => {
      const calendar = await runtime.readCalendar(callerOf(request), request.params.id);
      const etag = etagOf(calendar);
      void reply.header("etag", etag);
      return isKnown(request, etag) ? reply.code(304).send(null) : reply.send(calendar);
    },
  );

  app.delete(
    "/v1/calendars/:id",
    {
      schema: deleteSchema,
      config: {
        errors: ["CALENDAR_NOT_FOUND", "PRECONDITION_FAILED"],
        requestHeaders: ["If-Match"],
      },
    },
    async (request, reply) => {
      await runtime.deleteCalendar(callerOf(request), request.params.id, ifMatchOf(request));
      return reply.code(204).send(null);
    },
  );
};
