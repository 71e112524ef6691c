import {
  createWebhook as create,
  deleteWebhook as remove,
  getWebhook,
  updateWebhook,
} from "@millrace/store";
import type { StoredWebhook, WebhookSettings } from "@millrace/store";
import { WebhookNotFoundError } from "../errors.ts";
import { newEventId } from "../ids.ts";
import type { Caller, Services } from "../services.ts";
import { newWebhookSecret } from "./signature.ts";

interface CreateRequest extends WebhookSettings {
  /** Absent: a new one. */
  readonly secret?: string | undefined;
}

interface PutRequest extends WebhookSettings, Pick<StoredWebhook, "status"> {
  /** Absent: as it is. */
  readonly secret?: string | undefined;
}

export interface NewWebhook {
  readonly webhook: StoredWebhook;
  /** Shown here and never again. */
  readonly secret: string;
}

/** It is sent what happens from then on. */
export async function createWebhook(
  { database: { db }, log }: Services,
  { tenantId, actor }: Caller,
  { secret = newWebhookSecret(), ...settings }: CreateRequest,
): Promise<NewWebhook> {
  const webhook = await create(db, { ...settings, tenantId, id: newEventId(), secret, actor });
  log.info({ webhookId: webhook.id, tenantId, actor }, "webhook created");
  return { webhook, secret };
}

/** @throws WebhookNotFoundError */
export async function putWebhook(
  { database: { db }, log }: Services,
  { tenantId, actor }: Caller,
  id: string,
  request: PutRequest,
): Promise<StoredWebhook> {
  const webhook = await updateWebhook(db, { ...request, tenantId, id });
  if (webhook === undefined) throw new WebhookNotFoundError(id);
  log.info({ webhookId: id, tenantId, actor, status: webhook.status }, "webhook changed");
  return webhook;
}

/** @throws WebhookNotFoundError */
export async function readWebhook(
  { database: { db } }: Services,
  { tenantId }: Caller,
  id: string,
): Promise<StoredWebhook> {
  const webhook = await getWebhook(db, { tenantId, id });
  if (webhook === undefined) throw new WebhookNotFoundError(id);
  return webhook;
}

/** What was still to be sent to it goes with it. @throws WebhookNotFoundError */
export async function deleteWebhook(
  { database: { db }, log }: Services,
  { tenantId, actor }: Caller,
  id: string,
): Promise<void> {
  if (!(await remove(db, { tenantId, id }))) throw new WebhookNotFoundError(id);
  log.info({ webhookId: id, tenantId, actor }, "webhook deleted");
}
