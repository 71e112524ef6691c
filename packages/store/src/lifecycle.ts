import type { ChangePlace } from "./changes.ts";
import { jsonText } from "./json.ts";
import type { Json } from "./json.ts";
import type { EventKey } from "./events.ts";
import { isLifecycle } from "./lifecycle-pattern.ts";
import { prepared, run, type Db } from "./statement.ts";
import { sharedTenant } from "./tenants.ts";
import { rowSource, textArray } from "./unnest.ts";
import type { ListenerShape, WaitProbe } from "./waits.ts";

/**
 * Lifecycle events on their way from the history to those who wait for them: up to where the history has been
 * read, who listens, and the one statement that stores events and moves the cursor on, so that each commit is
 * made events of once, whoever dies.
 */

export interface LifecycleCursor {
  readonly place: ChangePlace;
  /** Whether any wait or trigger listens, or a webhook is there. */
  readonly isListened: boolean;
  /** To be moved on (`skipUnheard`). */
  readonly isStale: boolean;
  /** What was read last is still being matched. */
  readonly isBusy: boolean;
}

/** Whoever has moved the cursor is given so long to match what it has stored; the next may then go on. */
const busySeconds = 5;
/** So long the cursor stands where nobody listens: whoever is the first to do so has this much read for it. */
const standsSeconds = 10;

export async function readLifecycleCursor(db: Db): Promise<LifecycleCursor> {
  const [row] = await run<CursorRow>(db, readCursor, []);
  if (row === undefined) throw new Error("lifecycle_cursor has no row");
  const { tx, seq, is_listened: isListened, is_stale: isStale, is_busy: isBusy } = row;
  return { place: { tx, seq }, isListened, isStale, isBusy };
}

/**
 * Passes over what nobody has listened to; and takes the cursor back where it is ahead of this database, which has
 * been restored into another server. By one look at the database: who is seen not to listen yet waits for
 * what is committed later, and all of that lies behind the oldest transaction under way.
 */
export async function skipUnheard(db: Db): Promise<void> {
  await run(db, skip, []);
}

interface CursorRow {
  readonly tx: string;
  readonly seq: number;
  readonly is_listened: boolean;
  readonly is_stale: boolean;
  readonly is_busy: boolean;
}

/** Plan: each of the indexes holds nothing else. */
const isListened = `(
    exists (select from waits w where ${isLifecycle("w.pattern")} and w.matched_event_id is null)
    or exists (select from start_triggers t where ${isLifecycle("t.pattern")})
    or exists (select from webhooks where status = 'ENABLED'))`;

const xmin = "pg_snapshot_xmin(pg_current_snapshot())";
const isAhead = "c.tx > pg_snapshot_xmax(pg_current_snapshot())";

const readCursor = prepared(
  "lifecycle_cursor",
  `select c.tx::text, c.seq, l.is_listened,
    ${isAhead} or (not l.is_listened
      and c.moved_at < statement_timestamp() - interval '${standsSeconds} s') as is_stale,
    coalesce(c.busy_until > statement_timestamp(), false) as is_busy
  from lifecycle_cursor c
  cross join (select ${isListened} as is_listened offset 0) l`,
);

const skip = prepared(
  "skip_unheard",
  `update lifecycle_cursor c set tx = ${xmin}, seq = 0, moved_at = statement_timestamp()
  where ${isAhead} or (c.tx < ${xmin} and not ${isListened})`,
);

/** How long ago the oldest commit was written that is still to be read for somebody; undefined: there is none. */
export async function oldestUnreadMs(db: Db): Promise<number | undefined> {
  const [row] = await run<{ age_ms: number }>(db, oldestUnread, []);
  return row?.age_ms;
}

/** Plan: `history_by_tx` from the cursor on. */
const oldestUnread = prepared(
  "lifecycle_unread",
  `select (extract(epoch from statement_timestamp() - coalesce(h.written_at, h.at)) * 1000)::double precision
    as age_ms
  from lifecycle_cursor c
  cross join lateral (
    select h.written_at, h.at from history h
    where h.tx >= c.tx and (h.tx > c.tx or h.seq > c.seq)
    order by h.tx, h.seq
    limit 1) h
  where ${isListened}`,
);

/** A pattern under which somebody of the tenant has listened, now or once, and by what. */
export interface LifecycleShape extends ListenerShape {
  readonly tenantId: string;
}

/** Of these tenants, and of what all of them share. */
export async function lifecycleShapes(
  db: Db,
  tenantIds: readonly string[],
): Promise<readonly LifecycleShape[]> {
  const rows = await run<{ tenant_id: string; pattern: string; event_paths: string }>(db, shapes, [
    textArray(tenantIds),
  ]);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    pattern: row.pattern,
    eventPaths: row.event_paths,
  }));
}

/** Plan: for each tenant a range of each key, from `workflow.` up to what follows it. */
const shapesOf = (table: string, tenants: string) => `select s.tenant_id, s.pattern, s.event_paths
  from unnest(${tenants}) x (tenant_id)
  cross join lateral (
    select * from ${table} s
    where s.tenant_id = x.tenant_id and s.pattern >= 'workflow.' and s.pattern < 'workflow/'
    offset 0) s`;

const shapes = prepared(
  "lifecycle_shapes",
  `${shapesOf("wait_shapes", "$1::text[]")}
  union
  ${shapesOf("start_shapes", `$1::text[] || '${sharedTenant}'::text`)}`,
);

/** What somebody may listen to: an event that is not stored yet, as one of those who listen would find it. */
export interface LifecycleProbe {
  /** Which event it is. */
  readonly ix: number;
  readonly tenantId: string;
  /** Whose instance it tells of: no instance of that hears it. */
  readonly workflowId: string;
  /** To the microsecond. */
  readonly receivedAt: string;
  readonly probe: WaitProbe;
}

/** Of events those that a wait or trigger may hear, its whole condition apart. */
export async function heardAmong(
  db: Db,
  probes: readonly LifecycleProbe[],
): Promise<ReadonlySet<number>> {
  if (probes.length === 0) return new Set();
  const rows = await run<{ ix: number }>(db, heard, probeSource.values(probes));
  return new Set(rows.map(({ ix }) => ix));
}

const probeSource = rowSource<LifecycleProbe>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  workflow_id: { type: "text", of: ({ workflowId }) => workflowId },
  received_at: { type: "timestamptz", of: ({ receivedAt }) => receivedAt },
  pattern: { type: "text", of: ({ probe }) => probe.pattern },
  event_paths: { type: "text", of: ({ probe }) => probe.eventPaths },
  key_hash: { type: "bigint", of: ({ probe }) => probe.keyHash },
});

const sameKey = (alias: string) => `${alias}.pattern = x.pattern
      and ${alias}.event_paths = x.event_paths and ${alias}.key_hash = x.key_hash`;

/** Plan: for each probe one descent of `waits_open` and `start_triggers_listening`, up to the first. */
const heard = prepared(
  "heard_lifecycle",
  `select distinct x.ix from ${probeSource.from("x", 1)}
  cross join lateral (
    (select from waits w
    cross join lateral (
      select i.workflow_id from workflow_instances i
      where i.tenant_id = w.tenant_id and i.id = w.instance_id
      offset 0) i
    where w.tenant_id = x.tenant_id and ${sameKey("w")} and w.matched_event_id is null
      and w.opened_at <= x.received_at and i.workflow_id <> x.workflow_id
    limit 1)
    union all
    (select from start_triggers t
    where t.tenant_id in (x.tenant_id, '${sharedTenant}') and ${sameKey("t")}
      and t.since <= x.received_at and t.workflow_id <> x.workflow_id
    limit 1)) heard`,
);

export interface NewLifecycleEvent {
  readonly tenantId: string;
  readonly id: string;
  readonly pattern: string;
  readonly payload: Json;
  readonly occurredAt: Date;
  /** To the microsecond. */
  readonly receivedAt: string;
  readonly actor: string;
}

/** An event that is to be sent to a webhook, if that is there since before. */
export interface NewDelivery {
  readonly tenantId: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly body: string;
  /** When its commit was written, to the microsecond. */
  readonly writtenAt: string;
}

/** What a part of the history comes to. */
export interface ToldPart {
  readonly events: readonly NewLifecycleEvent[];
  readonly deliveries: readonly NewDelivery[];
}

/**
 * Stores the events of a part of the history and moves the cursor behind it, or does nothing at all where
 * somebody else has moved it. Their rows are the promise that they are matched.
 *
 * @returns Keys of those that are new; undefined where somebody else was first.
 */
export async function storeLifecycleEvents(
  db: Db,
  from: ChangePlace,
  to: ChangePlace,
  { events, deliveries }: ToldPart,
): Promise<readonly EventKey[] | undefined> {
  const [row] = await run<{ is_moved: boolean; stored: readonly EventKey[] | null }>(db, store, [
    from.tx,
    from.seq,
    to.tx,
    to.seq,
    ...eventSource.values(events),
    ...deliverySource.values(deliveries),
  ]);
  return row?.is_moved === true ? (row.stored ?? []) : undefined;
}

const eventSource = rowSource<NewLifecycleEvent>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  id: { type: "text", of: ({ id }) => id },
  pattern: { type: "text", of: ({ pattern }) => pattern },
  payload: { type: "jsonb", of: ({ payload }) => jsonText(payload) },
  occurred_at: { type: "timestamptz", of: ({ occurredAt }) => occurredAt },
  received_at: { type: "timestamptz", of: ({ receivedAt }) => receivedAt },
  actor: { type: "text", of: ({ actor }) => actor },
});

const deliverySource = rowSource<NewDelivery>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  webhook_id: { type: "uuid", of: ({ webhookId }) => webhookId },
  event_id: { type: "text", of: ({ eventId }) => eventId },
  body: { type: "text", of: ({ body }) => body },
  written_at: { type: "timestamptz", of: ({ writtenAt }) => writtenAt },
});

const store = prepared(
  "store_lifecycle",
  `with moved as (
    update lifecycle_cursor
    set tx = $3::xid8, seq = $4::bigint, moved_at = statement_timestamp(),
      busy_until = case when exists (select from ${eventSource.from("x", 5, ["id"])})
        then statement_timestamp() + interval '${busySeconds} s' end
    where tx = $1::xid8 and seq = $2::bigint
    returning id),
  stored as (
    insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor)
    select x.* from moved cross join ${eventSource.from("x", 5)}
    order by x.tenant_id, x.id
    on conflict do nothing
    returning tenant_id, id),
  sent as (
    insert into webhook_deliveries (tenant_id, webhook_id, event_id, body)
    select x.tenant_id, x.webhook_id, x.event_id, x.body
    from moved cross join ${deliverySource.from("x", 12)}
    join webhooks w on w.tenant_id = x.tenant_id and w.id = x.webhook_id
    where w.status = 'ENABLED' and w.since <= x.written_at
    on conflict do nothing)
  select exists (select from moved) as is_moved,
    (select jsonb_agg(jsonb_build_object('tenantId', tenant_id, 'id', id)) from stored) as stored`,
);

/** What was stored up to there has been matched, or is left to the reconciler. */
export async function freeLifecycleCursor(db: Db, { tx, seq }: ChangePlace): Promise<void> {
  await run(db, free, [tx, seq]);
}

const free = prepared(
  "free_lifecycle",
  "update lifecycle_cursor set busy_until = null where tx = $1::xid8 and seq = $2::bigint",
);
