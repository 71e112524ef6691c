import { ownSet } from "./limit-key.ts";
import { prepared, run, type Db } from "./statement.ts";
import { reckonable } from "./stored-time.ts";
import { textArray } from "./unnest.ts";

/**
 * Deletes what has ended and has been kept for its time. Each call is one short transaction that takes the
 * oldest rows, passing over those that others have, so that any number of processes may, and what is
 * interrupted leaves nothing half deleted.
 */

export interface RetentionLook {
  /** What ended, or came, within so many milliseconds stays. */
  readonly olderMs: number;
  /** Where the look before this one ended; absent: from the oldest on. */
  readonly after?: Place | undefined;
  /** Rows that are looked at. */
  readonly limit: number;
}

/** Of the last row that was looked at. */
export interface Place {
  /** To the microsecond. */
  readonly at: string;
  readonly id: string;
}

export interface Swept {
  readonly deleted: number;
  /** Where the next look goes on; undefined: there was nothing to look at. */
  readonly place: Place | undefined;
  /** There may be more, which has been due for so long, in milliseconds. */
  readonly behindMs: number | undefined;
}

/** Commits of the instances that go at once, which is about what they have of steps and of history. */
const mostCommits = 2_000;

/**
 * Settled instances, with all that is stored of them. A family goes from below: an awaited child not before
 * its parent has settled, and a parent not before its awaited children have gone. One with an open dead
 * letter stays, and one whose event may still be matched once more, which would start it again.
 */
export async function forgetSettled(
  db: Db,
  { olderMs, after, limit }: RetentionLook,
): Promise<Swept> {
  return db.transaction().execute(async (trx) => {
    const { at, id } = after ?? { at: "-infinity", id: "00000000-0000-0000-0000-000000000000" };
    const values = [olderMs, at, id, limit, mostCommits];
    const [look] = await run<Look<SettledRow>>(trx, takeSettled, values);
    const taken = look?.taken ?? [];
    for (const [tenantId, rows] of byTenant(taken)) {
      const ids = textArray(rows.map((row) => row.id));
      const limitSets = textArray([...new Set(rows.map((row) => row.limit_set))]);
      await run(trx, forgetInstances, [tenantId, ids, limitSets]);
    }
    return sweptBy(look, taken.length);
  });
}

interface SettledRow extends TakenRow {
  readonly limit_set: string;
}

const isMoreSettled = `(select count(*) from oldest) >= $4
      or (select count(*) from seen) < (select count(*) from oldest)`;

/**
 * Only rows that are as they were seen: an instance that is being retried right now goes on. `before` is
 * how many commits go with those before it.
 *
 * Plan: `workflow_instances_settled` from the place on.
 */
const takeSettled = prepared(
  "take_settled",
  `with oldest as materialized (
    select tenant_id, id, version, parent, start_event_id, completed_at
    from workflow_instances
    where completed_at < statement_timestamp() - $1::bigint * interval '1 ms'
      and completed_at >= $2::timestamptz and (completed_at, id) > ($2::timestamptz, $3::uuid)
    order by completed_at, id
    limit $4),
  seen as materialized (
    select * from (
      select *, sum(version) over (order by completed_at, id) - version as before from oldest) o
    where before < $5),
  taken as materialized (
    select i.* from seen s
    cross join lateral (
      select i.tenant_id, i.id, ${ownSet("i")} as limit_set from workflow_instances i
      where i.tenant_id = s.tenant_id and i.id = s.id and i.completed_at = s.completed_at
        and not exists (
          select from dead_letters l
          where l.tenant_id = i.tenant_id and l.instance_id = i.id and l.status = 'OPEN')
        and (s.start_event_id is null or not exists (
          select from (
            select matched_at from events e
            where e.tenant_id = s.tenant_id and e.id = s.start_event_id
            offset 0) e
          where e.matched_at is null))
        and (s.parent is null or s.parent ->> 'awaited' = 'false' or not exists (
          select from workflow_instances p
          where p.tenant_id = s.tenant_id and p.id = (s.parent ->> 'instanceId')::uuid
            and p.completed_at is null))
        and not exists (
          select from children c
          where c.tenant_id = i.tenant_id and c.instance_id = i.id
            and (c.started_at is null or (not c.detached and exists (
              select from workflow_instances k
              where k.tenant_id = c.tenant_id and k.id = c.child_id))))
      offset 0
      for update of i skip locked) i)
  ${lookOf("completed_at", isMoreSettled)}`,
);

/** Each by the first columns of its key, so that no plan reads anything else, however young the tables. */
const forgetInstances = prepared(
  "forget_instances",
  `with ${[
    "step_executions",
    "history",
    "waits",
    "timers",
    "event_deliveries",
    "event_releases",
    "children",
    "child_signals",
    "dead_letters",
  ]
    .map(
      (table) => `gone_${table} as (
    delete from ${table} where tenant_id = $1 and instance_id = any ($2::uuid[])),
  `,
    )
    .join("")}gone_slots as (
    delete from limit_slots
    where tenant_id = $1 and limit_key = any ($3::text[]) and instance_id = any ($2::uuid[]))
  delete from workflow_instances where tenant_id = $1 and id = any ($2::uuid[])`,
);

/** Keys by which starts are repeatable; whether their instances have gone makes no difference. */
export async function forgetKeys(db: Db, { olderMs, limit }: RetentionLook): Promise<Swept> {
  const [row] = await run<{ deleted: number; behind_ms: number | null }>(db, forgetOldKeys, [
    olderMs,
    limit,
  ]);
  const deleted = row?.deleted ?? 0;
  return { deleted, place: undefined, behindMs: row?.behind_ms ?? undefined };
}

const forgetOldKeys = prepared(
  "forget_keys",
  `with old as materialized (
    select ctid, created_at from idempotency_keys
    where created_at < statement_timestamp() - $1::bigint * interval '1 ms'
    order by created_at
    limit $2
    for update skip locked),
  gone as (
    delete from idempotency_keys where ctid = any (array(select ctid from old)))
  select count(*)::integer as deleted,
    case when count(*) >= $2 then ${behindMs("max(created_at)")} end as behind_ms
  from old`,
);

/**
 * Events that have been matched, and that nobody who waits can still ask for: no open wait looks back so
 * far for one of its kind, none has it and has not been told, and it is not to be handed on.
 */
export async function forgetEvents(
  db: Db,
  { olderMs, after, limit }: RetentionLook,
): Promise<Swept> {
  return db.transaction().execute(async (trx) => {
    const { at, id } = after ?? { at: "-infinity", id: "" };
    const [look] = await run<Look<TakenRow>>(trx, takeEvents, [olderMs, at, id, limit]);
    let deleted = 0;
    // With a look of its own: who matched one of them before they were taken is seen by it, and who comes
    // after waits for this to end.
    for (const [tenantId, rows] of byTenant(look?.taken ?? [])) {
      const ids = textArray(rows.map((row) => row.id));
      deleted += (await run(trx, forgetUnwanted, [tenantId, ids])).length;
    }
    return sweptBy(look, deleted);
  });
}

const takeEvents = prepared(
  "take_events",
  `with seen as materialized (
    select tenant_id, id, received_at from events
    where matched_at is not null
      and received_at < statement_timestamp() - $1::bigint * interval '1 ms'
      and received_at >= $2::timestamptz and (received_at, id) > ($2::timestamptz, $3::text)
    order by received_at, id
    limit $4),
  taken as materialized (
    select e.* from seen s
    cross join lateral (
      select tenant_id, id from events e
      where e.tenant_id = s.tenant_id and e.id = s.id
      offset 0
      for update skip locked) e)
  ${lookOf("received_at", "(select count(*) from seen) >= $4")}`,
);

/** A wait's pattern as `like` has it, which says yes to some more: `a.*` and `a.**` are `a.%` and `a%`. */
const asLike = `replace(replace(replace(replace(replace(
        w.pattern, '\\', '\\\\'), '_', '\\_'), '%', '\\%'), '.**', '*'), '*', '%')`;

/** Looked up event by event: counted, a subquery is not turned into a join of all waits with all events. */
const isNotAskedFor = (condition: string) => `(select count(*) from (
      select from waits w where w.tenant_id = e.tenant_id and w.lookback_from <= e.received_at
        and ${condition}
      limit 1) w) = 0`;

const forgetUnwanted = prepared(
  "forget_events",
  `delete from events e
  where e.tenant_id = $1 and e.id = any ($2::text[])
    and ${isNotAskedFor("w.pattern = e.pattern")}
    and ${isNotAskedFor(`strpos(w.pattern, '*') > 0 and e.pattern like ${asLike}`)}
    and not exists (
      select from waits w
      where w.tenant_id = $1 and w.matched_event_id is not null and w.matched_event_id = e.id)
    and not exists (
      select from event_releases r where r.tenant_id = $1 and r.event_id = e.id)
  returning e.id`,
);

interface TakenRow {
  readonly tenant_id: string;
  readonly id: string;
}

interface Look<Row extends TakenRow> {
  /** Null: there was nothing to look at. */
  readonly last_at: string | null;
  readonly last_id: string | null;
  readonly behind_ms: number | null;
  readonly taken: readonly Row[] | null;
}

/** The end of a statement that has `seen` and `taken`. @param isMore Whether there may be more to see. */
function lookOf(time: string, isMore: string): string {
  return `select l.at::text as last_at, l.id::text as last_id,
    case when ${isMore} then ${behindMs("l.at")} end as behind_ms,
    (select jsonb_agg(to_jsonb(t)) from taken t) as taken
  from (select ${time} as at, id from seen order by ${time} desc, id desc limit 1) l`;
}

/** How long a row of that time has been due by `$1`. */
function behindMs(time: string): string {
  return `(extract(epoch from statement_timestamp() - ${reckonable(time)}) * 1000 - $1)::double precision`;
}

function sweptBy<Row extends TakenRow>(look: Look<Row> | undefined, deleted: number): Swept {
  if (look?.last_at == null || look.last_id === null) {
    return { deleted, place: undefined, behindMs: undefined };
  }
  const place = { at: look.last_at, id: look.last_id };
  return { deleted, place, behindMs: look.behind_ms ?? undefined };
}

function byTenant<Row extends TakenRow>(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.tenant_id);
    if (group === undefined) groups.set(row.tenant_id, [row]);
    else group.push(row);
  }
  return groups;
}
