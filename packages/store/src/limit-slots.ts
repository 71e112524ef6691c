import { chooseAdmissions, foremost } from "@millrace/engine";
import type { QueueOrder, Room, Waiting, WaitingQueue } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { globalKey, limitsOfSet, ownSet, widthOf } from "./limit-key.ts";
import { prepared, run, type Db } from "./statement.ts";

/**
 * Who waits for a slot under its limits, and who has one. Commits ask and give up (slot-writes.ts); here
 * they are granted, by one at a time in a tenant: whoever counts holds its lock from before the count until
 * what it granted is committed. Grants skip rows that commits have locked, and wait for none.
 */

/** Slots that are granted at once. */
const grantedAtOnce = 100;

/** Sets of limits whose queues are read at once. */
const setsAtOnce = 200;

/** Names one limit. */
export interface LimitRef {
  readonly tenantId: string;
  readonly limitKey: string;
}

/** Names those of a tenant that need slots under the same limits. */
export interface LimitSetRef {
  readonly tenantId: string;
  readonly limitSet: string;
}

/** An instance that has been given a slot and has not taken note of it. */
export interface Grant extends Key {
  /** All of its limits. */
  readonly limitKey: string;
  /** Of the instance, which it answers. */
  readonly request: number;
  readonly wantedAt: Date;
  readonly grantedAt: Date;
  readonly hasRun: boolean;
}

export interface LimitToGrant {
  /** How many there are. */
  readonly limit: number;
  readonly queue: QueueOrder;
}

/** Those among whom slots are given away: whoever shares a limit is one of them. */
export interface GrantScope {
  /** Undefined: all, which share the global limit. */
  readonly tenantId: string | undefined;
  /** Those for which somebody waits. */
  readonly sets: readonly LimitSetRef[];
  /** Of all limits of these sets. @param name As of `limitName`. */
  readonly limitOf: (name: string) => LimitToGrant | undefined;
  /** By which `limitOf` answers: no slot is granted by limits that have been changed since. */
  readonly revision: string | undefined;
}

/** What a limit is called beside those of other tenants. */
export function limitName(tenantId: string, limitKey: string): string {
  return limitKey === globalKey ? globalKey : JSON.stringify([tenantId, limitKey]);
}

export function isGlobal({ limitSet }: LimitSetRef): boolean {
  return limitsOfSet(limitSet)[0] === globalKey;
}

export interface Granted {
  readonly grants: readonly Grant[];
  /** More could be granted at once. */
  readonly hasMore: boolean;
}

/**
 * Gives free slots to those that wait first in line, `grantedAtOnce` at most.
 *
 * In a transaction of several statements: what is counted is what is committed once the lock is there.
 *
 * @returns Undefined where limits have been changed meanwhile: they are to be read again.
 */
export async function grantSlots(db: Db, scope: GrantScope): Promise<Granted | undefined> {
  return db.transaction().execute(async (trx) => {
    await lockScope(trx, scope);
    const [now] = await run<{ revision: string }>(trx, revisionOf, []);
    if (now?.revision !== scope.revision) return undefined;
    const rooms = await roomsOf(trx, scope);
    const isFull = (name: string) => (rooms.get(name)?.free ?? 0) <= 0;
    const open = scope.sets
      .map((set) => ({ ...set, limits: namesOf(set) }))
      .filter(({ limits }) => !limits.some(isFull));
    if (open.length === 0) return noGrants;
    const read = open.length > setsAtOnce ? await foremostOf(trx, open, rooms) : open;
    const queues = await readQueues(trx, read, rooms, heads);
    const chosen = chooseAdmissions(queues, rooms, grantedAtOnce);
    if (chosen.length === 0) return noGrants;
    const values = [
      chosen.map(({ tenantId }) => tenantId),
      chosen.map(({ limitSet }) => limitSet),
      chosen.map(({ instanceId }) => instanceId),
    ];
    const grants = (await run<GrantRow>(trx, grant, values)).map(grantOf);
    const isCut = open.length > read.length || chosen.length === grantedAtOnce;
    return { grants, hasMore: isCut && grants.length > 0 };
  });
}

const noGrants: Granted = { grants: [], hasMore: false };

const revisionOf = prepared(
  "limit_revision",
  "select revision::text as revision from limit_revisions",
);

/** Of more sets than are read, those that are first in line. */
async function foremostOf(
  trx: Db,
  sets: readonly OpenSet[],
  rooms: ReadonlyMap<string, Room>,
): Promise<readonly OpenSet[]> {
  const queues = await readQueues(trx, sets, rooms, firstHeads);
  return foremost(queues, rooms, setsAtOnce).map(({ set }) => set);
}

function namesOf({ tenantId, limitSet }: LimitSetRef): readonly string[] {
  return limitsOfSet(limitSet).map((limitKey) => limitName(tenantId, limitKey));
}

/** The widest first. */
async function roomsOf(
  trx: Db,
  { tenantId, sets, limitOf }: GrantScope,
): Promise<ReadonlyMap<string, Room>> {
  const taken = new Map<string, number>();
  const counts =
    tenantId === undefined
      ? await run<CountRow>(trx, takenByAll, [])
      : await run<CountRow>(trx, takenByTenant, [tenantId]);
  for (const { tenant_id, limit_key: limitSet, taken: some } of counts) {
    for (const name of namesOf({ tenantId: tenant_id, limitSet })) {
      taken.set(name, (taken.get(name) ?? 0) + some);
    }
  }
  const widths = new Map<string, number>();
  for (const set of sets) {
    for (const key of limitsOfSet(set.limitSet)) {
      widths.set(limitName(set.tenantId, key), widthOf(key));
    }
  }
  const names = [...widths].toSorted(([, one], [, other]) => one - other);
  return new Map(
    names.flatMap(([name]) => {
      const limit = limitOf(name);
      if (limit === undefined) return [];
      return [[name, { free: limit.limit - (taken.get(name) ?? 0), order: limit.queue }] as const];
    }),
  );
}

interface CountRow {
  readonly tenant_id: string;
  readonly limit_key: string;
  readonly taken: number;
}

/** Plan: the index of slots that are taken, which holds as many as the limits allow. */
const takenBy = (condition: string) => `select tenant_id, limit_key, count(*)::integer as taken
  from limit_slots where status <> 'WANTED' ${condition} group by tenant_id, limit_key`;
const takenByTenant = prepared("slots_taken_by_tenant", takenBy("and tenant_id = $1"));
const takenByAll = prepared("slots_taken_by_all", takenBy(""));

interface OpenSet extends LimitSetRef {
  readonly limits: readonly string[];
}

interface Head extends Waiting, LimitSetRef {}

/** As many of each as there is room for, in the order of the narrowest limit. */
async function readQueues(
  trx: Db,
  sets: readonly OpenSet[],
  rooms: ReadonlyMap<string, Room>,
  statements: HeadStatements,
) {
  const queues: (WaitingQueue<Head> & { readonly set: OpenSet })[] = [];
  const byOrder = groupBy(sets, ({ limits }) => rooms.get(limits.at(-1) ?? "")?.order);
  for (const [order, some] of byOrder) {
    if (order === undefined) continue;
    const rows = await run<HeadRow>(trx, statements[order], [
      some.map(({ tenantId }) => tenantId),
      some.map(({ limitSet }) => limitSet),
      some.map(({ limits }) => Math.min(...limits.map((name) => rooms.get(name)?.free ?? 0))),
    ]);
    const bySet = groupBy(rows, ({ ix }) => ix);
    for (const [index, set] of some.entries()) {
      const { tenantId, limitSet, limits } = set;
      const waiting = (bySet.get(index + 1) ?? []).map((row) => ({
        tenantId,
        limitSet,
        instanceId: row.instance_id,
        hasRun: row.has_run,
        promotedAt: row.promoted_at,
        priority: row.priority,
        deadline: row.deadline,
        wantedAt: row.wanted_at,
      }));
      queues.push({ set, limits, waiting });
    }
  }
  return queues;
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

interface HeadRow {
  readonly ix: number;
  readonly instance_id: string;
  readonly has_run: boolean;
  readonly promoted_at: number;
  readonly priority: number;
  readonly deadline: number;
  readonly wanted_at: number;
}

/** Those that have run before come first; each order has its index. */
const orders: Readonly<Record<QueueOrder, string>> = {
  FIFO: "has_run desc, promoted_at desc, wanted_at, instance_id",
  PRIORITY: "has_run desc, promoted_at desc, priority desc, wanted_at, instance_id",
  DEADLINE: "has_run desc, promoted_at desc, deadline, priority desc, wanted_at, instance_id",
};

type HeadStatements = Readonly<Record<QueueOrder, string>>;

const heads = headsOf("slot_heads", grantedAtOnce);
const firstHeads = headsOf("slot_first", 1);

function headsOf(name: string, most: number): HeadStatements {
  const inOrder = (queue: QueueOrder) => headsIn(`${name}_${queue.toLowerCase()}`, queue, most);
  return { FIFO: inOrder("FIFO"), PRIORITY: inOrder("PRIORITY"), DEADLINE: inOrder("DEADLINE") };
}

/**
 * Plan: those that are first come from the index of their order. Their number is written into the text,
 * since a plan for any number would sort the whole queue.
 */
function headsIn(name: string, queue: QueueOrder, most: number): string {
  const milliseconds = (time: string) => `(extract(epoch from ${time}) * 1000)::double precision`;
  return prepared(
    name,
    `select s.ix::integer, h.instance_id, h.has_run, ${milliseconds("h.promoted_at")} as promoted_at,
      h.priority, coalesce(${milliseconds("h.deadline")}, 'Infinity') as deadline,
      ${milliseconds("h.wanted_at")} as wanted_at
    from unnest($1::text[], $2::text[], $3::integer[]) with ordinality
      as s (tenant_id, limit_key, room, ix)
    cross join lateral (
      select f.*, row_number() over () as place from (
        select l.* from limit_slots l
        where l.tenant_id = s.tenant_id and l.limit_key = s.limit_key and l.status = 'WANTED'
        order by ${orders[queue]}
        limit ${most}) f) h
    where h.place <= s.room
    order by s.ix, h.place`,
  );
}

/**
 * Until the transaction ends. Those of one tenant exclude each other, and whoever gives away the global limit
 * excludes all. Limits of workflows alone have their own locks as well, as those take who start below a
 * `maxQueued`, and earlier releases. Names may share a lock, which only costs time.
 */
async function lockScope(trx: Db, { tenantId, sets }: GrantScope): Promise<void> {
  await run(trx, tenantId === undefined ? lockAll : shareAll, []);
  if (tenantId !== undefined) await run(trx, lock, [[JSON.stringify([tenantId])]]);
  await lockLimits(
    trx,
    sets
      .filter(({ limitSet }) => limitSet.startsWith("type:") && !limitSet.includes(" "))
      .map(({ tenantId: owner, limitSet: limitKey }) => ({ tenantId: owner, limitKey })),
  );
}

/** In one order, whoever asks. */
export async function lockLimits(trx: Db, limits: readonly LimitRef[]): Promise<void> {
  const names = limits.map(({ tenantId, limitKey }) => JSON.stringify([tenantId, limitKey]));
  if (names.length > 0) await run(trx, lock, [[...new Set(names)].toSorted()]);
}

/** The seed sets its locks apart from others'. */
const lock = prepared(
  "lock_limits",
  `select pg_advisory_xact_lock(hashtextextended(n.name, 13))
  from (select name from unnest($1::text[]) with ordinality u (name, ix) order by ix) n`,
);

/** Nobody grants until the transaction ends. */
export async function lockAllLimits(trx: Db): Promise<void> {
  await run(trx, lockAll, []);
}

const lockAll = prepared(
  "lock_all_limits",
  "select pg_advisory_xact_lock(hashtextextended('', 13))",
);
const shareAll = prepared(
  "share_all_limits",
  "select pg_advisory_xact_lock_shared(hashtextextended('', 13))",
);

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

/**
 * Whoever grants tells the instance at once; what is left after so long is the reconciler's.
 *
 * Plan: they are locked by their primary key, which a `case` leaves alone to do it while the table is nearly
 * empty (claim.ts).
 */
const grant = prepared(
  "grant_slots",
  `with chosen as materialized (
    select x.tenant_id, x.limit_key, x.instance_id
    from unnest($1::text[], $2::text[], $3::uuid[]) x (tenant_id, limit_key, instance_id)
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

/** The limits for which somebody waits: one descent of the index for each set, however many wait. */
export async function wantedSets(db: Db): Promise<readonly LimitSetRef[]> {
  const rows = await run<{ tenant_id: string; limit_key: string }>(db, wantedKeys, []);
  return rows.map(({ tenant_id, limit_key }) => ({ tenantId: tenant_id, limitSet: limit_key }));
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
        or substring(l.limit_key from '(?:^| )type:([^ ]+)') <> i.workflow_id)
    limit $1
    for update of l skip locked)
  delete from limit_slots l using stray x
  where l.tenant_id = x.tenant_id and l.limit_key = x.limit_key and l.instance_id = x.instance_id
  returning ${grantColumns}`,
);

/** Deletes what an instance has under limits that are not its own. @returns Those limits. */
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
    and l.limit_key <> ${ownSet("i")}
  returning l.limit_key`,
);

/** Limits of a tenant, by which some of its instances that run are not counted. */
export interface LimitsSet {
  readonly tenantId: string;
  /** There is the global limit, or that of the tenant. */
  readonly isGlobal: boolean;
  readonly isTenant: boolean;
  readonly workflowIds: readonly string[];
  readonly userIds: readonly string[];
}

/**
 * Instances that run without a slot under one of these limits, which was set after they began.
 *
 * @param except Ids of those that have been looked at.
 *
 * Plan: the index of those of the tenant that run.
 */
export async function uncounted(
  db: Db,
  limits: LimitsSet,
  except: readonly string[],
  most: number,
): Promise<readonly Key[]> {
  const { tenantId, isGlobal: global, isTenant, workflowIds, userIds } = limits;
  const values = [tenantId, global, isTenant, workflowIds, userIds, most, except];
  const rows = await run<{ id: string }>(db, notCounted, values);
  return rows.map(({ id }) => ({ tenantId, instanceId: id }));
}

const notCounted = prepared(
  "uncounted_instances",
  `select i.id from workflow_instances i
  left join limit_slots l on l.tenant_id = i.tenant_id and l.limit_key = ${ownSet("i")}
    and l.instance_id = i.id
  cross join lateral (select coalesce(string_to_array(l.limit_key, ' '), '{}') as keys) k
  where i.tenant_id = $1 and i.status = 'RUNNING' and (
    ($2::boolean and not 'global' = any (k.keys))
    or ($3::boolean and not 'tenant' = any (k.keys))
    or (i.workflow_id = any ($4::text[]) and not 'type:' || i.workflow_id = any (k.keys))
    or (i.user_id = any ($5::text[]) and not
      'user:' || replace(replace(i.user_id, '%', '%25'), ' ', '%20') = any (k.keys)))
    and not i.id = any ($7::uuid[])
  limit $6`,
);
