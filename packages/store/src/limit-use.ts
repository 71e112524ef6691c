import type { QueueOrder } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { globalKey } from "./limit-key.ts";
import type { LimitRef, LimitSetRef } from "./limit-slots.ts";
import { prepared, run, type Db } from "./statement.ts";

/** What is taken under limits, who waits there and at which place. Nothing here changes anything. */

/** Where an instance stands that waits for a slot. */
export interface QueuePlace {
  readonly status: "WANTED" | "GRANTED" | "HELD";
  readonly wantedAt: Date;
  /** From 1: how many are admitted before it, and one. */
  readonly position: number;
}

/** @param sets Those that have the limit whose queue it is. */
export async function queuePlace(
  db: Db,
  { tenantId, limitSet, instanceId }: Key & LimitSetRef,
  queue: QueueOrder,
  sets: readonly LimitSetRef[],
): Promise<QueuePlace | undefined> {
  const [row] = await run<{
    status: QueuePlace["status"];
    wanted_at: Date;
    position: number;
  }>(db, places[queue], [
    tenantId,
    limitSet,
    instanceId,
    sets.map((set) => set.tenantId),
    sets.map((set) => set.limitSet),
  ]);
  return row && { status: row.status, wantedAt: row.wanted_at, position: row.position };
}

/**
 * Whether `l` is admitted before `m`: as `orders` (limit-slots.ts), the sides changed where the greater comes first.
 */
const isBefore: Readonly<Record<QueueOrder, string>> = {
  FIFO: `(m.has_run, m.promoted_at, l.wanted_at, l.instance_id)
    < (l.has_run, l.promoted_at, m.wanted_at, m.instance_id)`,
  PRIORITY: `(m.has_run, m.promoted_at, m.priority, l.wanted_at, l.instance_id)
    < (l.has_run, l.promoted_at, l.priority, m.wanted_at, m.instance_id)`,
  DEADLINE: `(m.has_run, m.promoted_at, coalesce(l.deadline, 'infinity'), m.priority, l.wanted_at,
      l.instance_id)
    < (l.has_run, l.promoted_at, coalesce(m.deadline, 'infinity'), l.priority, m.wanted_at,
      m.instance_id)`,
};

const places: Readonly<Record<QueueOrder, string>> = {
  FIFO: placeIn("FIFO"),
  PRIORITY: placeIn("PRIORITY"),
  DEADLINE: placeIn("DEADLINE"),
};

function placeIn(queue: QueueOrder): string {
  return prepared(
    `queue_place_${queue.toLowerCase()}`,
    `select m.status, m.wanted_at,
      1 + (select count(*) from unnest($4::text[], $5::text[]) s (tenant_id, limit_key)
        join limit_slots l on l.tenant_id = s.tenant_id and l.limit_key = s.limit_key
        where l.status = 'WANTED' and ${isBefore[queue]})::integer as position
    from limit_slots m
    where m.tenant_id = $1 and m.limit_key = $2 and m.instance_id = $3`,
  );
}

export interface LimitSetUse extends LimitSetRef {
  readonly taken: number;
  /** All that wait. */
  readonly queued: number;
  /** Those of them that have not run before. */
  readonly starts: number;
}

/**
 * Slots taken and instances queued, of every set of limits that has any.
 *
 * @param tenantId Undefined: of all tenants.
 */
export async function setsInUse(db: Db, tenantId?: string): Promise<readonly LimitSetUse[]> {
  const rows =
    tenantId === undefined
      ? await run<UseRow>(db, inUse, [])
      : await run<UseRow>(db, inUseByTenant, [tenantId]);
  return rows.map(({ tenant_id, limit_key, ...counts }) => ({
    tenantId: tenant_id,
    limitSet: limit_key,
    ...counts,
  }));
}

interface UseRow {
  readonly tenant_id: string;
  readonly limit_key: string;
  readonly taken: number;
  readonly queued: number;
  readonly starts: number;
}

const usesBy = (condition: string) =>
  `select tenant_id, limit_key, count(*) filter (where status <> 'WANTED')::integer as taken,
    count(*) filter (where status = 'WANTED')::integer as queued,
    count(*) filter (where status = 'WANTED' and not has_run)::integer as starts
  from limit_slots ${condition}
  group by tenant_id, limit_key`;

const inUse = prepared("limits_in_use", usesBy(""));
const inUseByTenant = prepared("limits_in_use_by_tenant", usesBy("where tenant_id = $1"));

/**
 * How many starts may still be queued, with the limit's lock held: those for which there is a slot do
 * not count. Those that have run before are not among the starts, and get their slots first.
 */
export async function roomToQueue(
  trx: Db,
  { tenantId, limitKey }: LimitRef,
  limit: number,
  maxQueued: number,
): Promise<number> {
  const [row] = await run<{ queued: number; others: number }>(trx, queueCounts, [
    limitKey === globalKey ? null : tenantId,
    limitKey,
  ]);
  const { queued = 0, others = 0 } = row ?? {};
  return Math.max(0, maxQueued + Math.max(0, limit - others) - queued);
}

/** Plan: one descent of the primary key for each set of limits; then those that have this one. */
const queueCounts = prepared(
  "queue_counts",
  `with recursive sets as (
    (select l.tenant_id, l.limit_key from limit_slots l
      where l.tenant_id >= coalesce($1::text, '') order by l.tenant_id, l.limit_key limit 1)
    union all
    select n.tenant_id, n.limit_key from sets k
    cross join lateral (
      select l.tenant_id, l.limit_key from limit_slots l
      where (l.tenant_id, l.limit_key) > (k.tenant_id, k.limit_key)
      order by l.tenant_id, l.limit_key limit 1) n
    where $1::text is null or k.tenant_id = $1)
  select coalesce(sum(c.queued), 0)::integer as queued, coalesce(sum(c.others), 0)::integer as others
  from sets k
  cross join lateral (
    select count(*) filter (where status = 'WANTED' and not has_run) as queued,
      count(*) filter (where status <> 'WANTED' or has_run) as others
    from limit_slots l where l.tenant_id = k.tenant_id and l.limit_key = k.limit_key) c
  where ($1::text is null or k.tenant_id = $1) and $2::text = any (string_to_array(k.limit_key, ' '))`,
);
