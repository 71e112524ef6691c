import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { LIFECYCLE_TYPES } from "./definition-patterns.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { strict } from "./schema-problems.ts";
import { InstanceId, Timestamp, WorkflowId } from "./text.ts";

/** Webhooks (CONTRACT 3): whom lifecycle events are sent to, signed as Standard Webhooks have it. */

const fields = {
  url: z
    .string()
    .max(BOUNDS.url)
    .refine(isPlainUrl, {
      error: "must be an http or https URL, without a user and a password in it",
    })
    .meta({ description: "each event is a POST to it" }),
  types: z
    .array(
      z.string().regex(new RegExp(LIFECYCLE_TYPES), {
        error: "must be a lifecycle event or a pattern of some, as workflow.failed or workflow.*",
      }),
    )
    .min(1)
    .max(20)
    .default(["workflow.**"])
    .meta({ description: "events that are sent, as patterns; default: all" }),
  workflowIds: z
    .array(WorkflowId)
    .min(1)
    .max(BOUNDS.webhookWorkflows)
    .nullable()
    .default(null)
    .meta({ description: "workflows whose events are sent; null: all" }),
  description: z.string().max(BOUNDS.name).nullable().default(null),
  secret: z
    .string()
    .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, {
      error: "must be whsec_ and then 24 to 64 bytes in base64",
    })
    .optional()
    .meta({ description: "what signs; it is shown in the answer that makes it, and never again" }),
};

export const CreateWebhookRequest = strict("a webhook", fields).meta({
  id: "CreateWebhookRequest",
});
export type CreateWebhookRequest = z.infer<typeof CreateWebhookRequest>;
/** With what may be left out of it. */
export type WebhookSource = z.input<typeof CreateWebhookRequest>;

const WebhookStatus = z.enum(["ENABLED", "DISABLED"]);

export const PutWebhookRequest = strict("a webhook", {
  ...fields,
  status: WebhookStatus.default("ENABLED"),
}).meta({ id: "PutWebhookRequest" });
export type PutWebhookRequest = z.infer<typeof PutWebhookRequest>;

export const WebhookId = InstanceId;

export const WebhookView = z
  .object({
    id: z.string(),
    url: z.string(),
    types: z.array(z.string()),
    workflowIds: z.array(z.string()).nullable(),
    description: z.string().nullable(),
    status: WebhookStatus,
    disabledReason: z.string().nullable().meta({ description: "why Millrace has disabled it" }),
    pending: z
      .int()
      .meta({ description: "events that are still to be taken; 10,000 or more: 10,000" }),
    failingSince: Timestamp.nullable().meta({ description: "null: the last event was taken" }),
    lastSuccessAt: Timestamp.nullable(),
    lastFailureAt: Timestamp.nullable(),
    lastFailure: z.string().nullable(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "WebhookView" });
export type WebhookView = z.infer<typeof WebhookView>;

/** The only answer with the secret in it. */
export const CreatedWebhook = WebhookView.extend({ secret: z.string() }).meta({
  id: "CreatedWebhook",
});
export type CreatedWebhook = z.infer<typeof CreatedWebhook>;

export const ListWebhooksQuery = strict("a query of webhooks", pageQueryFields);
export type ListWebhooksQuery = z.infer<typeof ListWebhooksQuery>;

export const WebhookPage = pageOf(WebhookView);
export type WebhookPage = z.infer<typeof WebhookPage>;

function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}
