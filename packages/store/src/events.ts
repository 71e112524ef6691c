import type { Key } from "./commit.ts";
import { eventFactColumns } from "./event-fact.ts";
import type { EventFactRow } from "./event-fact.ts";
import { jsonText } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/**
 * Events as they are stored, and what they came to. Storing an event and looking for its waits
 * (waits.ts) are statements of their own, in that order: whoever of publisher and wait commits second
 * sees the first (DESIGN, Events).
 */

export interface NewEvent {
  readonly tenantId: string;
  readonly id: string;
  readonly pattern: string;
  readonly payload: Json;
  readonly occurredAt: Date;
  readonly actor: string;
}

export interface StoredEvent {
  readonly tenantId: string;
  readonly id: string;
  readonly pattern: string;
  readonly payload: Json;
  readonly occurredAt: Date;
  readonly receivedAt: Date;
  /** Of `deliver: "ONE"`: the instance that has it. */
  readonly takenBy: string | null;
  /** The instances that it starts have been started. */
  readonly startsDone: boolean;
}

/**
 * Stores events; one whose id exists is a duplicate and changes nothing. Answers come in the order of
 * the events.
 *
 * @throws DataRefusedError, RangeError for all of them where the payload of one cannot be stored.
 */
export async function insertEvents(
  db: Db,
  events: readonly NewEvent[],
): Promise<readonly (StoredEvent | "duplicate")[]> {
  if (events.length === 0) return [];
  const indexed = events.map((event, ix) => ({ ix, event }));
  const rows = await run<{ tenant_id: string; id: string; received_at: Date }>(
    db,
    insert,
    newEvents.values(indexed),
  );
  const stored = new Map(rows.map((row) => [`${row.tenant_id}/${row.id}`, row.received_at]));
  return events.map((event) => {
    const name = `${event.tenantId}/${event.id}`;
    const receivedAt = stored.get(name);
    // Of two with one id in the same call the first was stored.
    stored.delete(name);
    if (receivedAt === undefined) return "duplicate";
    const { tenantId, id, pattern, payload, occurredAt } = event;
    return {
      tenantId,
      id,
      pattern,
      payload,
      occurredAt,
      receivedAt,
      takenBy: null,
      startsDone: false,
    };
  });
}

const newEvents = rowSource<{ readonly ix: number; readonly event: NewEvent }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ event }) => event.tenantId },
  id: { type: "text", of: ({ event }) => event.id },
  pattern: { type: "text", of: ({ event }) => event.pattern },
  payload: { type: "jsonb", of: ({ event }) => jsonText(event.payload) },
  occurred_at: { type: "timestamptz", of: ({ event }) => event.occurredAt },
  actor: { type: "text", of: ({ event }) => event.actor },
});

/** In order of the key: two batches with the same ids wait for each other in one direction only. */
const insert = prepared(
  "insert_events",
  `insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor)
  select x.tenant_id, x.id, x.pattern, x.payload, x.occurred_at, statement_timestamp(), x.actor
  from ${newEvents.from("x", 1)}
  order by x.tenant_id, x.id, x.ix
  on conflict do nothing
  returning tenant_id, id, received_at`,
);

export interface StoredEventRow extends EventFactRow {
  readonly e_tenant_id: string;
  readonly e_taken_by: string | null;
  readonly e_starts_done: boolean;
}

/** For `select`, from a table `e`. */
export const storedEventColumns = `e.tenant_id as e_tenant_id, e.taken_by as e_taken_by, e.starts_done as e_starts_done,
    ${eventFactColumns}`;

export function storedEventOf(row: StoredEventRow): StoredEvent {
  return {
    tenantId: row.e_tenant_id,
    id: row.e_id,
    pattern: row.e_pattern,
    payload: row.e_payload,
    occurredAt: row.e_occurred_at,
    receivedAt: row.e_received_at,
    takenBy: row.e_taken_by,
    startsDone: row.e_starts_done,
  };
}

/**
 * Takes away what an event, that was matched while its instance settled, has left of itself: the commit
 * that settled it has taken the wait, and could not see the delivery that came in beside it. Nothing
 * where the instance goes on.
 */
export async function forgetDeliveries(db: Db, key: Key): Promise<void> {
  await run(db, forget, [key.tenantId, key.instanceId]);
}

const forget = prepared(
  "forget_deliveries",
  `delete from event_deliveries d using workflow_instances i
  where d.tenant_id = $1 and d.instance_id = $2
    and i.tenant_id = d.tenant_id and i.id = d.instance_id and i.completed_at is not null`,
);

export interface EventKey {
  readonly tenantId: string;
  readonly id: string;
}

/** Those of these events that nobody has matched yet. */
export async function unmatchedAmong(
  db: Db,
  keys: readonly EventKey[],
): Promise<readonly StoredEvent[]> {
  const rows = await run<StoredEventRow>(db, among, eventKeys.values(keys));
  return rows.map(storedEventOf);
}

const eventKeys = rowSource<EventKey>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  id: { type: "text", of: ({ id }) => id },
});

const among = prepared(
  "unmatched_among",
  `select ${storedEventColumns} from ${eventKeys.from("x", 1)}
  cross join lateral (
    select * from events e where e.tenant_id = x.tenant_id and e.id = x.id offset 0) e
  where e.matched_at is null`,
);

/** What an event came to when it was matched. */
export interface EventSummary {
  readonly tenantId: string;
  readonly id: string;
  readonly delivered: number;
  readonly cancelled: number;
  /** All of them, whoever started them. */
  readonly started: number;
}

/** What an event came to. */
export type EventCounts = Pick<EventSummary, "delivered" | "cancelled" | "started">;
