import {
  DeadLetterId,
  DeadLetterPage,
  DeadLetterView,
  ResolveDeadLetterRequest,
  ListDeadLettersQuery,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf } from "../headers.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

const DeadLetterPath = z.object({ id: DeadLetterId.meta({ description: "of the dead letter" }) });
const tags = ["dead letters"];

const listSchema = {
  tags,
  operationId: "listDeadLetters",
  summary: "List steps that killed their workers, the latest first",
  description: "Those that are open, unless `status` says otherwise.",
  querystring: ListDeadLettersQuery,
  response: { 200: DeadLetterPage },
};
const showSchema = {
  tags,
  operationId: "getDeadLetter",
  summary: "Read a dead letter, with what is known of each worker that died",
  params: DeadLetterPath,
  querystring: NoQuery,
  response: { 200: DeadLetterView },
};
const retrySchema = {
  tags,
  operationId: "retryDeadLetter",
  summary: "Have the step tried again",
  description: "Its instance is RUNNING again from that step, whose deliveries are counted anew.",
  params: DeadLetterPath,
  querystring: NoQuery,
  body: ResolveDeadLetterRequest.optional(),
  response: { 202: DeadLetterView },
};
const discardSchema = {
  tags,
  operationId: "discardDeadLetter",
  summary: "Give the step up",
  description: "Its instance stays FAILED, and its compensation begins, where there is one.",
  params: DeadLetterPath,
  querystring: NoQuery,
  body: ResolveDeadLetterRequest.optional(),
  response: { 202: DeadLetterView },
};

export const deadLetterRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.get(
    "/v1/dead-letters",
    { schema: listSchema, config: { errors: ["INVALID_CURSOR"] } },
    (request) => runtime.listDeadLetters(callerOf(request), request.query),
  );

  app.get(
    "/v1/dead-letters/:id",
    { schema: showSchema, config: { errors: ["DEAD_LETTER_NOT_FOUND"] } },
    (request) => runtime.readDeadLetter(callerOf(request), request.params.id),
  );

  app.post(
    "/v1/dead-letters/:id/retry",
    {
      schema: retrySchema,
      config: {
        errors: ["DEAD_LETTER_NOT_FOUND", "DEAD_LETTER_RESOLVED", "STATUS_CONFLICT", "BUSY"],
      },
    },
    async (request, reply) => {
      const body = request.body ?? {};
      const caller = callerOf(request, { actor: body.requestedBy });
      const letter = await runtime.retryDeadLetter(caller, request.params.id, body);
      return reply.code(202).send(letter);
    },
  );

  app.post(
    "/v1/dead-letters/:id/discard",
    {
      schema: discardSchema,
      config: { errors: ["DEAD_LETTER_NOT_FOUND", "DEAD_LETTER_RESOLVED", "BUSY"] },
    },
    async (request, reply) => {
      const body = request.body ?? {};
      const caller = callerOf(request, { actor: body.requestedBy });
      const letter = await runtime.discardDeadLetter(caller, request.params.id, body);
      return reply.code(202).send(letter);
    },
  );
};
