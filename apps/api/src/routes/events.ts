import {
  BatchRequest,
  batchItemsOf,
  isReservedPattern,
  PublishBatchAnswer,
  PublishEventAnswer,
  PublishEventRequest,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import type { ApiContext } from "../runtime.ts";
import { answerBatch } from "../batch.ts";
import { ApiError } from "../errors.ts";
import { callerOf } from "../headers.ts";
import { NoQuery } from "../validation.ts";

const publishSchema = {
  tags: ["events"],
  operationId: "publishEvent",
  summary: "Publish an event",
  description:
    "202 once the event is stored and matched: how many waits, cancellation triggers and start triggers it met. Their effects follow. The same id again does nothing.",
  querystring: NoQuery,
  body: PublishEventRequest,
  response: { 202: PublishEventAnswer },
};
const publishBatchSchema = {
  tags: ["events"],
  operationId: "publishEvents",
  summary: "Publish up to 1,000 events",
  description: "Each item has its own result: one that is refused does not touch the others.",
  querystring: NoQuery,
  body: BatchRequest,
  response: { 202: PublishBatchAnswer },
};

export const eventRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.post(
    "/v1/events",
    { schema: publishSchema, config: { errors: ["RESERVED_PATTERN"] } },
    async (request, reply) => {
      const { body } = request;
      refuseReserved(body);
      const caller = callerOf(request, { tenantId: body.tenantId });
      return reply.code(202).send(await runtime.publishEvent(caller, body));
    },
  );

  app.post("/v1/events::batch", { schema: publishBatchSchema }, async (request, reply) => {
    const results = await answerBatch(batchItemsOf(request.body), {
      schema: PublishEventRequest,
      callerOf(event) {
        refuseReserved(event);
        return callerOf(request, { tenantId: event.tenantId });
      },
      run: (caller, items) => runtime.publishEvents(caller, items),
      statusOf: () => 202,
    });
    return reply.code(202).send({ results });
  });
};

function refuseReserved({ pattern }: PublishEventRequest): void {
  if (!isReservedPattern(pattern)) return;
  const message = `patterns under "workflow." are Millrace's own, so "${pattern}" cannot be published`;
  throw new ApiError("RESERVED_PATTERN", message, {
    problems: [{ path: "/pattern", code: "BAD_VALUE", message }],
  });
}
