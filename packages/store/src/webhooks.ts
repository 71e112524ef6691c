import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { prepared, run, type Db } from "./statement.ts";
import { textArray } from "./unnest.ts";

/**
 * Webhooks of tenants, and what is still to be taken by them. A delivery's row goes when it was taken, or
 * given up; while somebody sends it, it is held for a while.
 */

export interface WebhookKey {
  readonly tenantId: string;
  readonly id: string;
}

export interface WebhookSettings {
  readonly url: string;
  readonly types: readonly string[];
  /** Null: all. */
  readonly workflowIds: readonly string[] | null;
  readonly description: string | null;
}

export interface StoredWebhook extends WebhookKey, WebhookSettings {
  readonly status: "ENABLED" | "DISABLED";
  readonly disabledReason: string | null;
  /** At most `mostCounted`. */
  readonly pending: number;
  readonly failingSince: Date | null;
  readonly lastSuccessAt: Date | null;
  readonly lastFailureAt: Date | null;
  readonly lastFailure: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Deliveries that are counted; the rest are as many again, or more. */
const mostCounted = 10_000;

export async function createWebhook(
  db: Db,
  webhook: WebhookKey & WebhookSettings & { readonly secret: string; readonly actor: string },
): Promise<StoredWebhook> {
  const { tenantId, id, secret, actor } = webhook;
  const [row] = await run<WebhookRow>(db, insert, [
    tenantId,
    id,
    ...settingsOf(webhook),
    secret,
    actor,
  ]);
  if (row === undefined) throw new Error("a webhook of that id is there already");
  return webhookOf(row);
}

/** @param secret Absent: as it is. */
export async function updateWebhook(
  db: Db,
  webhook: WebhookKey &
    WebhookSettings &
    Pick<StoredWebhook, "status"> & { readonly secret?: string | undefined },
): Promise<StoredWebhook | undefined> {
  const { tenantId, id, status, secret } = webhook;
  const values = [tenantId, id, ...settingsOf(webhook), secret ?? null, status];
  const [row] = await run<WebhookRow>(db, update, values);
  return row && webhookOf(row);
}

export async function getWebhook(
  db: Db,
  { tenantId, id }: WebhookKey,
): Promise<StoredWebhook | undefined> {
  const [row] = await run<WebhookRow>(db, get, [tenantId, id]);
  return row && webhookOf(row);
}

/** In order of creation. @throws BadCursorError */
export async function listWebhooks(
  db: Db,
  tenantId: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly items: readonly StoredWebhook[]; readonly nextCursor: string | null }> {
  const [after = nilUuid] = cursor === undefined ? [] : decodeCursor("webhooks", cursor, 1);
  const rows = await readPage(cursor, () =>
    run<WebhookRow>(db, list, [tenantId, after, limit + 1]),
  );
  const items = rows.slice(0, limit).map(webhookOf);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last ? encodeCursor("webhooks", [last.id]) : null };
}

const nilUuid = "00000000-0000-0000-0000-000000000000";

/** With what it was still to be sent. @returns Whether it was there. */
export async function deleteWebhook(db: Db, { tenantId, id }: WebhookKey): Promise<boolean> {
  return (await run(db, remove, [tenantId, id])).length > 0;
}

function settingsOf({ url, types, workflowIds, description }: WebhookSettings) {
  return [url, textArray(types), workflowIds && textArray(workflowIds), description];
}

const columns = `w.tenant_id, w.id, w.url, w.types, w.workflow_ids, w.description, w.status, w.disabled_reason,
    w.failing_since, w.last_success_at, w.last_failure_at, w.last_failure, w.created_at, w.updated_at`;
const pending = `(select count(*)::integer from (
      select from webhook_deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.id
      limit ${mostCounted}) d) as pending`;

const insert = prepared(
  "insert_webhook",
  `insert into webhooks as w (
    tenant_id, id, url, types, workflow_ids, description, secret, created_by, status)
  values ($1, $2, $3, $4::text[], $5::text[], $6, $7, $8, 'ENABLED')
  on conflict do nothing
  returning ${columns}, 0 as pending`,
);

/** One that is enabled again is sent what comes from then on, and has all the time again in which to fail. */
const update = prepared(
  "update_webhook",
  `update webhooks w
  set url = $3, types = $4::text[], workflow_ids = $5::text[], description = $6,
    secret = coalesce($7, secret), status = $8, disabled_reason = null,
    since = case when status = 'ENABLED' then since else statement_timestamp() end,
    failing_since = case when status = 'ENABLED' then failing_since end,
    updated_at = statement_timestamp()
  where tenant_id = $1 and id = $2
  returning ${columns}, ${pending}`,
);

const get = prepared(
  "get_webhook",
  `select ${columns}, ${pending} from webhooks w where tenant_id = $1 and id = $2`,
);

const list = prepared(
  "list_webhooks",
  `select ${columns}, ${pending} from webhooks w where tenant_id = $1 and id > $2::uuid
  order by id limit $3`,
);

const remove = prepared(
  "delete_webhook",
  "delete from webhooks where tenant_id = $1 and id = $2 returning id",
);

interface WebhookRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly url: string;
  readonly types: readonly string[];
  readonly workflow_ids: readonly string[] | null;
  readonly description: string | null;
  readonly status: string;
  readonly disabled_reason: string | null;
  readonly pending: number;
  readonly failing_since: Date | null;
  readonly last_success_at: Date | null;
  readonly last_failure_at: Date | null;
  readonly last_failure: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

function webhookOf(row: WebhookRow): StoredWebhook {
  return {
    tenantId: row.tenant_id,
    id: row.id,
    url: row.url,
    types: row.types,
    workflowIds: row.workflow_ids,
    description: row.description,
    status: row.status as StoredWebhook["status"],
    disabledReason: row.disabled_reason,
    pending: row.pending,
    failingSince: row.failing_since,
    lastSuccessAt: row.last_success_at,
    lastFailureAt: row.last_failure_at,
    lastFailure: row.last_failure,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Which events of which workflows it is sent. */
export interface WebhookFilter extends WebhookKey {
  readonly types: readonly string[];
  readonly workflowIds: readonly string[] | null;
}

export async function webhooksOf(
  db: Db,
  tenantIds: readonly string[],
): Promise<readonly WebhookFilter[]> {
  const rows = await run<WebhookRow>(db, filters, [textArray(tenantIds)]);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    id: row.id,
    types: row.types,
    workflowIds: row.workflow_ids,
  }));
}

const filters = prepared(
  "webhook_filters",
  `select tenant_id, id, types, workflow_ids from webhooks
  where status = 'ENABLED' and tenant_id = any ($1::text[])`,
);

/** Where what is due is to be sent, and by what it is signed. */
export interface WebhookTarget extends WebhookKey {
  readonly url: string;
  readonly secret: string;
}

/**
 * Some of those that are due, first those that have taken the last event.
 *
 * Plan: few webhooks, for each one look at `webhook_deliveries_due`.
 */
export async function dueWebhooks(db: Db, limit: number): Promise<readonly WebhookTarget[]> {
  const rows = await run<WebhookRow & { readonly secret: string }>(db, due, [limit]);
  return rows.map(({ tenant_id: tenantId, id, url, secret }) => ({ tenantId, id, url, secret }));
}

const due = prepared(
  "due_webhooks",
  `select w.tenant_id, w.id, w.url, w.secret from webhooks w
  where w.status = 'ENABLED' and exists (
    select from webhook_deliveries d
    where d.tenant_id = w.tenant_id and d.webhook_id = w.id and d.look_at <= statement_timestamp()
    offset 0)
  order by w.failing_since is not null, random()
  limit $1`,
);

export interface WebhookDelivery {
  readonly eventId: string;
  readonly body: string;
  /** From 1: this is the first one. */
  readonly attempt: number;
}

/** Takes what is due for a while; whoever dies meanwhile leaves it to others. */
export async function takeDeliveries(
  db: Db,
  { tenantId, id }: WebhookKey,
  limit: number,
  holdMs: number,
): Promise<readonly WebhookDelivery[]> {
  const rows = await run<{ event_id: string; body: string; attempts: number }>(db, take, [
    tenantId,
    id,
    limit,
    holdMs,
  ]);
  return rows.map((row) => ({ eventId: row.event_id, body: row.body, attempt: row.attempts }));
}

const take = prepared(
  "take_deliveries",
  `with due as materialized (
    select event_id from webhook_deliveries
    where tenant_id = $1 and webhook_id = $2 and look_at <= statement_timestamp()
    order by look_at
    limit $3
    for update skip locked)
  update webhook_deliveries d
  set attempts = attempts + 1,
    look_at = statement_timestamp() + $4::bigint * interval '1 ms'
  from due
  where d.tenant_id = $1 and d.webhook_id = $2 and d.event_id = due.event_id
  returning d.event_id, d.body, d.attempts`,
);

export async function noteDelivered(
  db: Db,
  { tenantId, id }: WebhookKey,
  eventId: string,
): Promise<void> {
  await run(db, delivered, [tenantId, id, eventId]);
}

const delivered = prepared(
  "note_delivered",
  `with gone as (
    delete from webhook_deliveries where tenant_id = $1 and webhook_id = $2 and event_id = $3)
  update webhooks set last_success_at = statement_timestamp(), failing_since = null
  where tenant_id = $1 and id = $2`,
);

export interface DeliveryFailure {
  readonly eventId: string;
  readonly failure: string;
  /** Undefined: it is given up. */
  readonly retryMs: number | undefined;
  /** A webhook that has taken nothing for so long is disabled; 0: at once. */
  readonly patienceMs: number;
}

/** @returns Whether the webhook is disabled by it: what it was still to be sent goes. */
export async function noteUndelivered(
  db: Db,
  { tenantId, id }: WebhookKey,
  { eventId, failure, retryMs, patienceMs }: DeliveryFailure,
): Promise<boolean> {
  const values = [tenantId, id, eventId, failure, retryMs ?? null, patienceMs];
  const [row] = await run<{ is_disabled: boolean }>(db, undelivered, values);
  if (row?.is_disabled !== true) return false;
  await run(db, dropAll, [tenantId, id]);
  return true;
}

const undelivered = prepared(
  "note_undelivered",
  `with later as (
    update webhook_deliveries
    set look_at = statement_timestamp() + $5::bigint * interval '1 ms'
    where tenant_id = $1 and webhook_id = $2 and event_id = $3 and $5::bigint is not null),
  gone as (
    delete from webhook_deliveries
    where tenant_id = $1 and webhook_id = $2 and event_id = $3 and $5::bigint is null),
  last as (
    select w.tenant_id, w.id, w.status = 'ENABLED'
      and statement_timestamp() - coalesce(w.failing_since, statement_timestamp())
        >= $6::bigint * interval '1 ms' as is_disabled
    from webhooks w where w.tenant_id = $1 and w.id = $2
    for update)
  update webhooks w
  set failing_since = coalesce(w.failing_since, statement_timestamp()),
    last_failure_at = statement_timestamp(), last_failure = $4,
    status = case when l.is_disabled then 'DISABLED' else w.status end,
    disabled_reason = case when l.is_disabled then $4 else w.disabled_reason end
  from last l
  where w.tenant_id = l.tenant_id and w.id = l.id
  returning l.is_disabled`,
);

const dropAll = prepared(
  "drop_deliveries",
  `delete from webhook_deliveries d using webhooks w
  where d.tenant_id = $1 and d.webhook_id = $2
    and w.tenant_id = d.tenant_id and w.id = d.webhook_id and w.status = 'DISABLED'`,
);
