import {
  BatchRequest,
  batchItemsOf,
  GetInstanceQuery,
  HistoryPage,
  HistoryQuery,
  InstancePage,
  InstanceView,
  jsonFaults,
  ListInstancesQuery,
  ListStepsQuery,
  pointer,
  type Problem,
  StartBatchAnswer,
  StartInstanceRequest,
  StepPage,
  type VariableFilter,
  variableFiltersOf,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { InstancePath } from "../instance-path.ts";
import type { ApiContext } from "../runtime.ts";
import { answerBatch } from "../batch.ts";
import { ApiError } from "../errors.ts";
import { outputsIn, pickFields } from "../fields.ts";
import { callerOf, etagOf, idempotencyKeyOf, isKnown } from "../headers.ts";
import { faultsOfJson } from "../json-door.ts";
import { watchAnswers } from "../open-answers.ts";
import { NoQuery, parsePart, refusal } from "../validation.ts";

const tags = ["instances"];

const startSchema = {
  tags,
  operationId: "startInstance",
  summary: "Start an instance",
  description: "201 with the new instance; it runs whether or not anybody asks again.",
  querystring: NoQuery,
  body: StartInstanceRequest,
  response: { 200: InstanceView, 201: InstanceView },
};
const startBatchSchema = {
  tags,
  operationId: "startInstances",
  summary: "Start up to 1,000 instances",
  description:
    "Each item has its own result: one that is refused does not touch the others. An Idempotency-Key holds for each item at its place in the list: the same batch sent again starts only what was not started. A body that could not be stored (U+0000, nested too deep) is refused whole.",
  querystring: NoQuery,
  body: BatchRequest,
  response: { 200: StartBatchAnswer },
};
const listSchema = {
  tags,
  operationId: "listInstances",
  summary: "List instances",
  description:
    "Beside the named parameters any number of `variables.<path>=<json>`. Pages hold together while instances are added. A page of large instances has fewer than `limit`: the list ends where `nextCursor` is null.",
  response: { 200: InstancePage },
};
const getSchema = {
  tags,
  operationId: "getInstance",
  summary: "Read an instance, or wait until it has settled",
  description:
    "With `wait` the answer comes when the instance has settled, or as it is after that many seconds. With `fields` only these parts of it, as `status,state.variables.total`.",
  params: InstancePath,
  querystring: GetInstanceQuery,
  response: { 200: InstanceView, 304: z.null() },
};
const stepsSchema = {
  tags,
  operationId: "listSteps",
  summary: "List every execution of an instance's steps",
  description:
    "In the order of their paths, byte by byte. With `path` only what is at and inside a step, a branch or an item, as `ship`, `ship[3]` or `checkout.card.charge`. Compensation steps are among them.",
  params: InstancePath,
  querystring: ListStepsQuery,
  response: { 200: StepPage },
};
const historySchema = {
  tags,
  operationId: "getHistory",
  summary: "Read every change of an instance, oldest first",
  params: InstancePath,
  querystring: HistoryQuery,
  response: { 200: HistoryPage },
};

export const instanceRoutes: FastifyPluginAsyncZod<ApiContext> = async (
  app,
  { runtime, stopping },
) => {
  const endOf = watchAnswers(stopping);
  app.post(
    "/v1/instances",
    {
      schema: startSchema,
      config: {
        errors: ["WORKFLOW_NOT_FOUND", "INVALID_INPUT", "IDEMPOTENCY_CONFLICT", "TOO_MANY_QUEUED"],
        requestHeaders: ["Idempotency-Key"],
        responseHeaders: ["ETag", "Location", "Idempotent-Replayed"],
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { instance, replayed } = await runtime.startInstance(
        callerOf(request, { tenantId: body.tenantId }),
        body,
        idempotencyKeyOf(request),
      );
      void reply
        .code(replayed ? 200 : 201)
        .header("etag", etagOf(instance))
        .header("location", `/v1/instances/${instance.id}`);
      if (replayed) void reply.header("idempotent-replayed", "true");
      return reply.send(instance);
    },
  );

  app.post(
    "/v1/instances::batch",
    { schema: startBatchSchema, config: { requestHeaders: ["Idempotency-Key"] } },
    async (request) => {
      const key = idempotencyKeyOf(request);
      // No header holds a line break: the key of an item is nobody's key of a single start.
      const keyOf = (index: number) => key && `${key}\n${index}`;
      const results = await answerBatch(batchItemsOf(request.body), {
        schema: StartInstanceRequest,
        callerOf: ({ tenantId }) => callerOf(request, { tenantId }),
        run: (caller, items, indexes) => runtime.startInstances(caller, items, indexes.map(keyOf)),
        statusOf: ({ replayed }) => (replayed ? 200 : 201),
      });
      return { results };
    },
  );

  app.get(
    "/v1/instances",
    {
      schema: listSchema,
      config: { query: ListInstancesQuery, errors: ["INVALID_CURSOR"] },
    },
    async (request) => {
      const { filters, rest } = variableFiltersOf(request.query as Record<string, unknown>);
      const query = parsePart("querystring", ListInstancesQuery, rest);
      refuseBadFilters(filters);
      const caller = callerOf(request, { tenantId: query.tenantId, part: "query" });
      return runtime.listInstances(caller, query, filters);
    },
  );

  app.get(
    "/v1/instances/:id",
    {
      schema: getSchema,
      config: {
        errors: ["INSTANCE_NOT_FOUND"],
        requestHeaders: ["If-None-Match"],
        responseHeaders: ["ETag"],
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { wait, fields } = request.query;
      const caller = callerOf(request);

      const outputsOf = outputsIn(fields);
      let instance: InstanceView | undefined;
      if (wait === undefined || wait === 0) {
        instance = await runtime.readInstance(caller, id, outputsOf);
      } else {
        const options = { timeoutMs: wait * 1_000, signal: endOf(reply.raw), outputsOf };
        instance = await runtime.waitUntilSettled(caller, id, options);
      }
      if (!instance) throw notFound(id);

      const etag = etagOf(instance);
      void reply.header("etag", etag);
      if (isKnown(request, etag)) return reply.code(304).send(null);
      return reply.send(fields ? (pickFields(instance, fields) as InstanceView) : instance);
    },
  );

  app.get(
    "/v1/instances/:id/steps",
    { schema: stepsSchema, config: { errors: ["INSTANCE_NOT_FOUND", "INVALID_CURSOR"] } },
    (request) => runtime.listSteps(callerOf(request), request.params.id, request.query),
  );

  app.get(
    "/v1/instances/:id/history",
    { schema: historySchema, config: { errors: ["INSTANCE_NOT_FOUND", "INVALID_CURSOR"] } },
    async (request) => {
      const { id } = request.params;
      const page = await runtime.readHistory(callerOf(request), id, request.query);
      if (!page) throw notFound(id);
      return page;
    },
  );
};

/** Their JSON goes to the database as it is. */
function refuseBadFilters(filters: readonly VariableFilter[]): void {
  const problems = filters.flatMap(({ path, json }): Problem[] => {
    const place = pointer([["variables", ...path].join(".")]);
    return [...faultsOfJson(json), ...jsonFaults(path)].map(({ code, message }) => ({
      path: place,
      code,
      message,
    }));
  });
  if (problems.length > 0) throw refusal("querystring", problems);
}

function notFound(id: string): ApiError {
  return new ApiError("INSTANCE_NOT_FOUND", `there is no instance ${id}`);
}
