import {
  CreatedWebhook,
  CreateWebhookRequest,
  ListWebhooksQuery,
  PutWebhookRequest,
  WebhookId,
  WebhookPage,
  WebhookView,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf } from "../headers.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

const WebhookPath = z.object({ id: WebhookId.meta({ description: "of the webhook" }) });

const common = { tags: ["webhooks"], querystring: NoQuery };

const postSchema = {
  ...common,
  operationId: "createWebhook",
  summary: "Create a webhook",
  description:
    "It is sent the lifecycle events of the tenant's instances that happen from then on, each at least once and under one `webhook-id`, signed as Standard Webhooks have it (docs/webhooks.md). The answer has the secret, which is never shown again.",
  body: CreateWebhookRequest,
  response: { 201: CreatedWebhook },
};
const putSchema = {
  ...common,
  operationId: "putWebhook",
  summary: "Change a webhook",
  description:
    "As a whole; only the secret stays where none is given. One that was disabled is enabled again by it, and sent what happens from then on.",
  params: WebhookPath,
  body: PutWebhookRequest,
  response: { 200: WebhookView },
};
const getSchema = {
  ...common,
  operationId: "getWebhook",
  summary: "Read a webhook, and how it does",
  params: WebhookPath,
  response: { 200: WebhookView },
};
const listSchema = {
  tags: ["webhooks"],
  operationId: "listWebhooks",
  summary: "List webhooks, in order of their creation",
  querystring: ListWebhooksQuery,
  response: { 200: WebhookPage },
};
const deleteSchema = {
  ...common,
  operationId: "deleteWebhook",
  summary: "Delete a webhook",
  description: "What was still to be sent to it goes with it.",
  params: WebhookPath,
  response: { 204: z.null().describe("It is gone.") },
};

export const webhookRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.post(
    "/v1/webhooks",
    { schema: postSchema, config: { responseHeaders: ["Location"] } },
    async (request, reply) => {
      const webhook = await runtime.createWebhook(callerOf(request), request.body);
      return reply.code(201).header("location", `/v1/webhooks/${webhook.id}`).send(webhook);
    },
  );

  app.put(
    "/v1/webhooks/:id",
    { schema: putSchema, config: { errors: ["WEBHOOK_NOT_FOUND"] } },
    (request) => runtime.putWebhook(callerOf(request), request.params.id, request.body),
  );

  app.get(
    "/v1/webhooks",
    { schema: listSchema, config: { errors: ["INVALID_CURSOR"] } },
    (request) => runtime.listWebhooks(callerOf(request), request.query),
  );

  app.get(
    "/v1/webhooks/:id",
    { schema: getSchema, config: { errors: ["WEBHOOK_NOT_FOUND"] } },
    (request) => runtime.readWebhook(callerOf(request), request.params.id),
  );

  app.delete(
    "/v1/webhooks/:id",
    { schema: deleteSchema, config: { errors: ["WEBHOOK_NOT_FOUND"] } },
    async (request, reply) => {
      await runtime.deleteWebhook(callerOf(request), request.params.id);
      return reply.code(204).send(null);
    },
  );
};
