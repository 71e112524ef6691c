import { DEFAULT_PAGE_SIZE, type WebhookView } from "@millrace/contract";
import {
  createWebhook,
  deleteWebhook,
  putWebhook,
  readWebhook,
  type Services,
} from "@millrace/runtime";
import { listWebhooks, type StoredWebhook } from "@millrace/store";
import type { Runtime } from "./runtime.ts";

export function webhooksOf(
  services: Services,
): Pick<
  Runtime,
  "createWebhook" | "putWebhook" | "readWebhook" | "listWebhooks" | "deleteWebhook"
> {
  const { db } = services.database;
  return {
    async createWebhook(caller, request) {
      const { webhook, secret } = await createWebhook(services, caller, request);
      return { ...webhookView(webhook), secret };
    },
    putWebhook: async (caller, id, request) =>
      webhookView(await putWebhook(services, caller, id, request)),
    readWebhook: async (caller, id) => webhookView(await readWebhook(services, caller, id)),
    async listWebhooks({ tenantId }, { limit = DEFAULT_PAGE_SIZE, cursor }) {
      const { items, nextCursor } = await listWebhooks(db, tenantId, { limit, cursor });
      return { items: items.map(webhookView), nextCursor };
    },
    deleteWebhook: (caller, id) => deleteWebhook(services, caller, id),
  };
}

function webhookView({ tenantId: _tenantId, ...webhook }: StoredWebhook): WebhookView {
  const { types, workflowIds, failingSince, lastSuccessAt, lastFailureAt } = webhook;
  return {
    ...webhook,
    types: [...types],
    workflowIds: workflowIds && [...workflowIds],
    failingSince: failingSince?.toISOString() ?? null,
    lastSuccessAt: lastSuccessAt?.toISOString() ?? null,
    lastFailureAt: lastFailureAt?.toISOString() ?? null,
    createdAt: webhook.createdAt.toISOString(),
    updatedAt: webhook.updatedAt.toISOString(),
  };
}
