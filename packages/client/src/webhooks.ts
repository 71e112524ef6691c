import type {
  CreatedWebhook,
  ListWebhooksQuery,
  WebhookPage,
  WebhookSource,
  WebhookView,
} from "@millrace/contract";
import type { CallOptions, Transport } from "./transport.ts";

export type WebhookCalls = ReturnType<typeof webhookCalls>;

export function webhookCalls(send: Transport) {
  const pathOf = (id: string) => `/v1/webhooks/${encodeURIComponent(id)}`;
  return {
    /** The answer has the secret, which is never shown again. */
    async create(webhook: WebhookSource, options: CallOptions = {}): Promise<CreatedWebhook> {
      const call = { method: "POST", path: "/v1/webhooks", body: webhook, ...options } as const;
      return (await send<CreatedWebhook>(call)).data;
    },

    /** Changes all of it; the secret where one is given. Enables it, unless it says otherwise. */
    async put(
      id: string,
      webhook: WebhookSource & { readonly status?: WebhookView["status"] },
      options: CallOptions = {},
    ): Promise<WebhookView> {
      const call = { method: "PUT", path: pathOf(id), body: webhook, ...options } as const;
      return (await send<WebhookView>(call)).data;
    },

    async get(id: string, options: CallOptions = {}): Promise<WebhookView> {
      return (await send<WebhookView>({ method: "GET", path: pathOf(id), ...options })).data;
    },

    /** In order of their creation, page by page. */
    async list({
      limit,
      cursor,
      ...options
    }: CallOptions & ListWebhooksQuery = {}): Promise<WebhookPage> {
      const query = { limit, cursor };
      const call = { method: "GET", path: "/v1/webhooks", query, ...options } as const;
      return (await send<WebhookPage>(call)).data;
    },

    /** With what was still to be sent to it. */
    async delete(id: string, options: CallOptions = {}): Promise<void> {
      await send({ method: "DELETE", path: pathOf(id), ...options });
    },
  };
}
