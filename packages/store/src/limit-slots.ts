import type { Definition } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { prepared, run, type Db } from "./statement.ts";

/**
 * Who waits for a slot under a limit, and who has one. Commits ask and give up (slot-writes.ts); here
 * they are granted, one at a time a limit: whoever counts holds the limit's lock from before the count
 * until what it granted is committed. Grants skip rows that commits have locked, and wait for none.
 */

/** Slots that are granted at once. */
export const grantedAtOnce = 100;

/** Names one limit. */
export interface LimitRef {
  readonly tenantId: string;
  readonly limitKey: string;
}

/** An instance that has been given a slot and has not taken note of it. */
export interface Grant extends Key {
  readonly limitKey: string;
  /** Of the instance, which it answers. */
  readonly request: number;
  readonly wantedAt: Date;
  readonly grantedAt: Date;
  readonly hasRun: boolean;
}

export type QueueOrder = NonNullable<Definition["concurrency"]>["queue"];

export interface GrantOptions {
  /** How many there are. */
  readonly limit: number;
  readonly queue: QueueOrder;
}

/**
 * Gives free slots of a limit to those that wait first in line, `grantedAtOnce` at most.
 *
 * In a transaction of two statements: what is counted is what is committed once the lock is there.
 */
export async function grantSlots(
  db: Db,
  { tenantId, limitKey }: LimitRef,
  { limit, queue }: GrantOptions,
): Promise<readonly Grant[]> {
  return db.transaction().execute(async (trx) => {
    await lockLimit(trx, { tenantId, limitKey });
    const values = [tenantId, limitKey, limit];
    return (await run<GrantRow>(trx, grants[queue], values)).map(grantOf);
  });
}

/** Until the transaction ends. Limits of different names may share a lock, which only costs time. */
export async function lockLimit(trx: Db, { tenantId, limitKey }: LimitRef): Promise<void> {
  await run(trx, lock, [JSON.stringify([tenantId, limitKey])]);
}

/** The seed sets its locks apart from others'. */
const lock = prepared("lock_limit", "select pg_advisory_xact_lock(hashtextextended($1, 13))");

interface GrantRow {
  readonly tenant_id: string;
  readonly limit_key: string;
  readonly instance_id: string;
  readonly request: number;
  readonly wanted_at: Date;
  readonly granted_at: Date;
  readonly has_run: boolean;
}

const grantColumns =
  "l.tenant_id, l.limit_key, l.instance_id, l.request, l.wanted_at, l.granted_at, l.has_run";

/** Those that have run before come first; each order has its index. */
const orders: Readonly<Record<QueueOrder, string>> = {
  FIFO: "has_run desc, promoted_at desc, wanted_at, instance_id",
  PRIORITY: "has_run desc, promoted_at desc, priority desc, wanted_at, instance_id",
  DEADLINE: "has_run desc, promoted_at desc, deadline, priority desc, wanted_at, instance_id",
};

const grants: Readonly<Record<QueueOrder, string>> = {
  FIFO: grantIn("FIFO"),
  PRIORITY: grantIn("PRIORITY"),
  DEADLINE: grantIn("DEADLINE"),
};

/**
 * Whoever grants tells the instance at once; what is left after so long is the reconciler's.
 *
 * Plan: those that are first come from the index of their order. Their number is written into the text,
 * since a plan for any number would sort the whole queue. They are locked by their primary key, which a
 * `case` leaves alone to do it while the table is nearly empty (claim.ts). Measured with 100,000 that wait: 3 ms, not 90.
 */
function grantIn(queue: QueueOrder): string {
  return prepared(
    `grant_slots_${queue.toLowerCase()}`,
    `with first as materialized (
      select l.* from limit_slots l
      where l.tenant_id = $1 and l.limit_key = $2 and l.status = 'WANTED'
      order by ${orders[queue]}
      limit ${grantedAtOnce}),
    free as materialized (
      select first.* from first
      order by ${orders[queue]}
      limit greatest(0, $3::integer - (
        select count(*) from limit_slots t
        where t.tenant_id = $1 and t.limit_key = $2 and t.status <> 'WANTED')::integer)),
    chosen as materialized (
      select x.tenant_id, x.limit_key, x.instance_id from free x
      cross join lateral (
        select 1 from limit_slots l
        where l.tenant_id = x.tenant_id and l.limit_key = x.limit_key
          and l.instance_id = x.instance_id
          and case l.status when 'WANTED' then true else false end
        for update skip locked) l)
    update limit_slots l
    set status = 'GRANTED', granted_at = statement_timestamp(),
      look_at = statement_timestamp() + interval '2 s'
    from chosen x
    where l.tenant_id = x.tenant_id and l.limit_key = x.limit_key
      and l.instance_id = x.instance_id
    returning ${grantColumns}`,
  );
}

function grantOf(row: GrantRow): Grant {
  return {
    tenantId: row.tenant_id,
    limitKey: row.limit_key,
    instanceId: row.instance_id,
    request: row.request,
    wantedAt: row.wanted_at,
    grantedAt: row.granted_at,
    hasRun: row.has_run,
  };
}

/** Grants that nobody has told their instance of in time; each is asked for again after a while. */
export async function takeUntoldGrants(db: Db, limit: number): Promise<readonly Grant[]> {
  return (await run<GrantRow>(db, untold, [limit])).map(grantOf);
}

const untold = prepared(
  "untold_grants",
  `with due as materialized (
    select l.tenant_id, l.limit_key, l.instance_id from limit_slots l
    where l.status = 'GRANTED' and l.look_at <= statement_timestamp()
    order by l.look_at
    limit $1
    for update skip locked)
  update limit_slots l set look_at = statement_timestamp() + interval '5 s'
  from due x
  where l.tenant_id = x.tenant_id and l.limit_key = x.limit_key and l.instance_id = x.instance_id
  returning ${grantColumns}`,
);

/** The limits for which somebody waits: one descent of the index each, however many wait. */
export async function wantedLimits(db: Db): Promise<readonly LimitRef[]> {
  const rows = await run<{ tenant_id: string; limit_key: string }>(db, wantedKeys, []);
  return rows.map(({ tenant_id, limit_key }) => ({ tenantId: tenant_id, limitKey: limit_key }));
}

const wantedKeys = prepared(
  "wanted_limits",
  `with recursive keys as (
    (select l.tenant_id, l.limit_key from limit_slots l where l.status = 'WANTED'
      order by l.tenant_id, l.limit_key limit 1)
    union all
    select n.tenant_id, n.limit_key from keys k
    cross join lateral (
      select l.tenant_id, l.limit_key from limit_slots l
      where l.status = 'WANTED' and (l.tenant_id, l.limit_key) > (k.tenant_id, k.limit_key)
      order by l.tenant_id, l.limit_key limit 1) n)
  select tenant_id, limit_key from keys`,
);

/** A slot that nothing of its instance speaks for. */
export interface StraySlot extends Key {
  readonly limitKey: string;
  readonly grantedAt: Date;
}

/**
 * Deletes slots of instances that are not there, have ended, are paused, or do not run, and those under the
 * limit of another workflow. A slot goes with the commit that makes it so, which means that there are none,
 * unless somebody has changed the data.
 *
 * Plan: the index of slots that are taken, whole: as many as there are instances under limits; then the
 * primary key.
 */
export async function deleteStraySlots(db: Db, limit: number): Promise<readonly StraySlot[]> {
  const rows = await run<GrantRow>(db, strays, [limit]);
  return rows.map(grantOf);
}

const strays = prepared(
  "stray_slots",
  `with stray as materialized (
    select l.tenant_id, l.limit_key, l.instance_id from limit_slots l
    left join workflow_instances i on i.tenant_id = l.tenant_id and i.id = l.instance_id
    where l.status <> 'WANTED'
      and (i.id is null or i.status in ('PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')
        or (l.status = 'HELD' and i.status <> 'RUNNING')
        or l.limit_key <> 'type:' || i.workflow_id)
    limit $1
    for update of l skip locked)
  delete from limit_slots l using stray x
  where l.tenant_id = x.tenant_id and l.limit_key = x.limit_key and l.instance_id = x.instance_id
  returning ${grantColumns}`,
);

/** Deletes what an instance has under the limits of other workflows. @returns Those limits. */
export async function deleteForeignSlots(
  db: Db,
  { tenantId, instanceId }: Key,
): Promise<readonly LimitRef[]> {
  const rows = await run<{ limit_key: string }>(db, foreign, [tenantId, instanceId]);
  return rows.map(({ limit_key }) => ({ tenantId, limitKey: limit_key }));
}

/** Plan: the tenant's slots, as many as there are instances under limits; it is asked where there are some. */
const foreign = prepared(
  "delete_foreign_slots",
  `delete from limit_slots l using workflow_instances i
  where l.tenant_id = $1 and l.instance_id = $2 and i.tenant_id = $1 and i.id = $2
    and l.limit_key <> 'type:' || i.workflow_id
  returning l.limit_key`,
);

/** Where an instance stands that waits for a slot. */
export interface QueuePlace {
  readonly status: "WANTED" | "GRANTED" | "HELD";
  readonly wantedAt: Date;
  /** From 1: how many are admitted before it, and one. */
  readonly position: number;
  readonly queued: number;
  readonly taken: number;
}

export async function queuePlace(
  db: Db,
  { tenantId, limitKey }: LimitRef,
  instanceId: string,
  queue: QueueOrder,
): Promise<QueuePlace | undefined> {
  const [row] = await run<{
    status: QueuePlace["status"];
    wanted_at: Date;
    position: number;
    queued: number;
    taken: number;
  }>(db, places[queue], [tenantId, limitKey, instanceId]);
  return (
    row && {
      status: row.status,
      wantedAt: row.wanted_at,
      position: row.position,
      queued: row.queued,
      taken: row.taken,
    }
  );
}

/**
 * Whether `l` is admitted before `m`: as `orders`, the sides changed where the greater comes first.
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
      1 + count(*) filter (where l.status = 'WANTED' and ${isBefore[queue]})::integer as position,
      count(*) filter (where l.status = 'WANTED')::integer as queued,
      count(*) filter (where l.status <> 'WANTED')::integer as taken
    from limit_slots m
    join limit_slots l on l.tenant_id = $1 and l.limit_key = $2
    where m.tenant_id = $1 and m.limit_key = $2 and m.instance_id = $3
    group by m.status, m.wanted_at`,
  );
}

export interface LimitUse extends LimitRef {
  readonly taken: number;
  readonly queued: number;
}

/** Slots taken and instances queued, of every limit that has any. */
export async function limitsInUse(db: Db): Promise<readonly LimitUse[]> {
  const rows = await run<{ tenant_id: string; limit_key: string; taken: number; queued: number }>(
    db,
    inUse,
    [],
  );
  return rows.map(({ tenant_id, limit_key, ...counts }) => ({
    tenantId: tenant_id,
    limitKey: limit_key,
    ...counts,
  }));
}

const inUse = prepared(
  "limits_in_use",
  `select tenant_id, limit_key, count(*) filter (where status <> 'WANTED')::integer as taken,
    count(*) filter (where status = 'WANTED')::integer as queued
  from limit_slots
  group by tenant_id, limit_key`,
);

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
    tenantId,
    limitKey,
  ]);
  const { queued = 0, others = 0 } = row ?? {};
  return Math.max(0, maxQueued + Math.max(0, limit - others) - queued);
}

const queueCounts = prepared(
  "queue_counts",
  `select count(*) filter (where status = 'WANTED' and not has_run)::integer as queued,
    count(*) filter (where status <> 'WANTED' or has_run)::integer as others
  from limit_slots where tenant_id = $1 and limit_key = $2`,
);
