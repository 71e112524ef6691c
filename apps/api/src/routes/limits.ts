import { LimitDocument, LimitId, LimitPage, LimitView, ListLimitsQuery } from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf, etagOf, ifMatchOf } from "../headers.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

const LimitPath = z.object({ id: LimitId });

const common = { tags: ["limits"], params: LimitPath, querystring: NoQuery };

const putSchema = {
  ...common,
  operationId: "putLimit",
  summary: "Set or change a limit",
  description:
    "It holds at once where it is set, and within a second everywhere. What runs already goes on, and is counted: nobody is admitted before fewer run than it allows. A limit of a workflow goes before the `concurrency` of its definition. An instance runs only with a slot under each limit that concerns it. `global` is for calls that name no tenant.",
  body: LimitDocument,
  response: { 200: LimitView, 201: LimitView },
};
const getSchema = {
  ...common,
  operationId: "getLimit",
  summary: "Read a limit, with its use as it is now",
  description:
    "Of a workflow, where none was set, the `concurrency` of its definition. Its ETag is of the limit, and not of its use.",
  response: { 200: LimitView },
};
const listSchema = {
  tags: ["limits"],
  operationId: "listLimits",
  summary: "List limits, in order of their ids, with their use as it is now",
  description:
    "Those that were set, and those of definitions; `global` only for calls that name no tenant.",
  querystring: ListLimitsQuery,
  response: { 200: LimitPage },
};
const deleteSchema = {
  ...common,
  operationId: "deleteLimit",
  summary: "Delete a limit that was set",
  description:
    "Whoever waits for it alone is admitted. A workflow goes back to the `concurrency` of its definition.",
  response: { 204: z.null().describe("It is gone.") },
};

export const limitRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.put(
    "/v1/limits/:id",
    {
      schema: putSchema,
      config: {
        errors: ["LIMIT_NOT_FOUND", "TOO_MANY_LIMITS", "PRECONDITION_FAILED"],
        requestHeaders: ["If-Match"],
        responseHeaders: ["ETag"],
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { limit, created } = await runtime.putLimit(
        callerOf(request),
        id,
        request.body,
        ifMatchOf(request),
      );
      return reply
        .code(created ? 201 : 200)
        .header("etag", etagOf(limit))
        .send(limit);
    },
  );

  app.get("/v1/limits", { schema: listSchema, config: { errors: ["INVALID_CURSOR"] } }, (request) =>
    runtime.listLimits(callerOf(request), request.query),
  );

  app.get(
    "/v1/limits/:id",
    {
      schema: getSchema,
      config: {
        errors: ["LIMIT_NOT_FOUND"],
        responseHeaders: ["ETag"],
      },
    },
    async (request, reply) => {
      const limit = await runtime.readLimit(callerOf(request), request.params.id);
      return reply.header("etag", etagOf(limit)).send(limit);
    },
  );

  app.delete(
    "/v1/limits/:id",
    {
      schema: deleteSchema,
      config: { errors: ["LIMIT_NOT_FOUND", "PRECONDITION_FAILED"], requestHeaders: ["If-Match"] },
    },
    async (request, reply) => {
      await runtime.deleteLimit(callerOf(request), request.params.id, ifMatchOf(request));
      return reply.code(204).send(null);
    },
  );
};
