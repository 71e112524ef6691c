import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import type { Key } from "./commit.ts";
import type { ScheduleKey } from "./schedules.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/**
 * What has become of the ticks of a schedule: one row each, by a unique index (PROMISES P7). Written only
 * by those who hold the schedule's row.
 */
export interface ScheduleRun {
  readonly kind: ScheduleRunKind;
  readonly tickAt: Date;
  readonly status: ScheduleRunState;
  /** Why it was not started. */
  readonly reason: string | null;
  readonly message: string | null;
  readonly instanceId: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
}

export type ScheduleRunKind = "TICK" | "BACKFILL" | "MANUAL";
export type ScheduleRunState = "WAITING" | "STARTED" | "SKIPPED" | "FAILED";

export type NewScheduleRun = Omit<ScheduleRun, "startedAt">;

/**
 * A tick that was not run has another row in its place. What was written so far is of no use, should one
 * of them have run, or wait.
 */
export async function insertRuns(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  runs: readonly NewScheduleRun[],
): Promise<void> {
  if (runs.length === 0) return;
  const written = await run(trx, insert, [tenantId, id, ...runSource.values(runs)]);
  if (written.length < runs.length) throw new Error(`schedule ${id} has run one of these ticks`);
}

const runSource = rowSource<NewScheduleRun>({
  kind: { type: "text", of: ({ kind }) => kind },
  tick_at: { type: "timestamptz", of: ({ tickAt }) => tickAt },
  status: { type: "text", of: ({ status }) => status },
  reason: { type: "text", of: ({ reason }) => reason },
  message: { type: "text", of: ({ message }) => message },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  created_at: { type: "timestamptz", of: ({ createdAt }) => createdAt },
});

const insert = prepared(
  "insert_schedule_runs",
  `insert into schedule_runs (
    tenant_id, schedule_id, kind, tick_at, status, reason, message, instance_id, created_at,
    started_at)
  select $1, $2, x.kind, x.tick_at, x.status, x.reason, x.message, x.instance_id, x.created_at,
    case when x.status = 'STARTED' then x.created_at end
  from ${runSource.from("x", 3)}
  order by x.tick_at
  on conflict (tenant_id, schedule_id, tick_at) where kind <> 'MANUAL' do update
  set kind = excluded.kind, status = excluded.status, reason = excluded.reason,
    message = excluded.message, instance_id = excluded.instance_id, started_at = excluded.started_at
  where schedule_runs.status in ('SKIPPED', 'FAILED')
  returning seq`,
);

/** Of these ticks those that have a row, by what has become of them. */
export async function runsOfTicks(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  ticks: readonly Date[],
): Promise<ReadonlyMap<number, ScheduleRunState>> {
  if (ticks.length === 0) return new Map();
  const times = `{${ticks.map((tick) => tick.toISOString()).join(",")}}`;
  const rows = await run<{ tick_at: Date; status: ScheduleRunState }>(trx, ofTicks, [
    tenantId,
    id,
    times,
  ]);
  return new Map(rows.map(({ tick_at: tickAt, status }) => [tickAt.getTime(), status]));
}

const ofTicks = prepared(
  "schedule_runs_of_ticks",
  `select tick_at, status from schedule_runs
  where tenant_id = $1 and schedule_id = $2 and kind <> 'MANUAL'
    and tick_at = any ($3::timestamptz[])`,
);

/** Runs that stand in the way of others. */
export interface Standing {
  /** Instances that have not settled. */
  readonly live: readonly Key[];
  readonly waiting: number;
}

/** So many of each are counted: more make no difference to anybody. */
export const mostStanding = 1_000;

/** Notes which of its instances have settled, or have been deleted since, and counts the others. */
export async function standingOf(trx: Db, { tenantId, id }: ScheduleKey): Promise<Standing> {
  const [row] = await run<{ live: readonly string[]; waiting: number }>(trx, standing, [
    tenantId,
    id,
    mostStanding,
  ]);
  const live = (row?.live ?? []).map((instanceId) => ({ tenantId, instanceId }));
  return { live, waiting: row?.waiting ?? 0 };
}

const standing = prepared(
  "standing_runs",
  `with open as materialized (
    select seq, instance_id from schedule_runs
    where tenant_id = $1 and schedule_id = $2 and status = 'STARTED' and ended_at is null
    order by seq
    limit $3),
  ended as (
    update schedule_runs r set ended_at = coalesce(i.completed_at, statement_timestamp())
    from open o
    left join workflow_instances i on i.tenant_id = $1 and i.id = o.instance_id
    where r.tenant_id = $1 and r.schedule_id = $2 and r.seq = o.seq
      and (i.id is null or i.completed_at is not null)
    returning r.seq)
  select
    array(select instance_id::text from open where seq not in (select seq from ended)) as live,
    (select count(*) from (select 1 from schedule_runs
      where tenant_id = $1 and schedule_id = $2 and status = 'WAITING' limit $3) w) as waiting`,
);

/**
 * Ticks that wait are given up for a later one, or for the last of them; a backfill keeps what it has
 * promised.
 *
 * @returns How many.
 */
export async function giveUpWaiting(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  reason: string,
  { butLast = false }: { readonly butLast?: boolean } = {},
): Promise<number> {
  return (await run(trx, giveUp, [tenantId, id, reason, butLast])).length;
}

const giveUp = prepared(
  "give_up_waiting_runs",
  `update schedule_runs r set status = 'SKIPPED', reason = $3
  where tenant_id = $1 and schedule_id = $2 and status = 'WAITING' and kind = 'TICK'
    and (not $4::boolean or exists (
      select from schedule_runs l
      where l.tenant_id = $1 and l.schedule_id = $2 and l.status = 'WAITING' and l.kind = 'TICK'
        and l.seq > r.seq))
  returning seq`,
);

/** A run that waits for its turn. */
export interface WaitingRun {
  readonly seq: number;
  readonly kind: ScheduleRunKind;
  readonly tickAt: Date;
}

/**
 * The one whose turn is next: a tick before what a backfill has asked for. A paused schedule starts only
 * the latter.
 */
export async function nextWaiting(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  isPaused: boolean,
): Promise<WaitingRun | undefined> {
  const rows = await run<{ seq: number; kind: ScheduleRunKind; tick_at: Date }>(trx, next, [
    tenantId,
    id,
    isPaused,
  ]);
  return rows.map(({ seq, kind, tick_at: tickAt }) => ({ seq, kind, tickAt }))[0];
}

const next = prepared(
  "next_waiting_run",
  `select seq, kind, tick_at from schedule_runs
  where tenant_id = $1 and schedule_id = $2 and status = 'WAITING'
    and (not $3::boolean or kind = 'BACKFILL')
  order by kind = 'BACKFILL', seq limit 1`,
);

/** What has come of a run that waited. */
export interface WaitingOutcome {
  readonly status: "STARTED" | "FAILED";
  readonly reason: string | null;
  readonly message: string | null;
  readonly instanceId: string | null;
  readonly at: Date;
}

export async function settleWaiting(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  { seq }: WaitingRun,
  { status, reason, message, instanceId, at }: WaitingOutcome,
): Promise<void> {
  await run(trx, settle, [tenantId, id, seq, status, reason, message, instanceId, at]);
}

const settle = prepared(
  "settle_waiting_run",
  `update schedule_runs set status = $4, reason = $5, message = $6, instance_id = $7,
    started_at = case when $4 = 'STARTED' then $8::timestamptz end
  where tenant_id = $1 and schedule_id = $2 and seq = $3`,
);

/** A schedule with a run that waits, and either nothing to wait for or somebody to cancel. */
export interface WaitingSchedule extends ScheduleKey {
  /** Instances that are to make room. Empty: the run can be started. */
  readonly toCancel: readonly Key[];
}

export async function waitingSchedules(db: Db, limit: number): Promise<readonly WaitingSchedule[]> {
  const rows = await run<WaitingRow>(db, waitingOnes, [limit]);
  return rows.map(({ tenant_id: tenantId, id, live }) => ({
    tenantId,
    id,
    toCancel: live.map((instanceId) => ({ tenantId, instanceId })),
  }));
}

interface WaitingRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly live: readonly string[];
}

const waitingOnes = prepared(
  "waiting_schedules",
  `select s.tenant_id, s.id, l.cancellable as live
  from (select distinct tenant_id, schedule_id from schedule_runs where status = 'WAITING') w
  join schedules s on s.tenant_id = w.tenant_id and s.id = w.schedule_id
  cross join lateral (
    select count(*) as live, coalesce(array_agg(i.id::text) filter (
      where i.status in ('CREATED', 'RUNNING', 'WAITING_FOR_EVENT', 'PAUSED')), '{}') as cancellable
    from schedule_runs r
    join workflow_instances i on i.tenant_id = r.tenant_id and i.id = r.instance_id
    where r.tenant_id = w.tenant_id and r.schedule_id = w.schedule_id and r.status = 'STARTED'
      and r.ended_at is null and i.completed_at is null) l
  where (s.status <> 'PAUSED' or exists (
      select from schedule_runs b
      where b.tenant_id = w.tenant_id and b.schedule_id = w.schedule_id and b.status = 'WAITING'
        and b.kind = 'BACKFILL'))
    and (l.live = 0
      or s.document ->> 'overlapPolicy' = 'CANCEL_OTHER' and cardinality(l.cancellable) > 0
        and exists (
          select from schedule_runs t
          where t.tenant_id = w.tenant_id and t.schedule_id = w.schedule_id and t.status = 'WAITING'
            and t.kind = 'TICK'))
  limit $1`,
);

/** The run that started an instance. Plan: from the latest run on back to it. */
export async function runOfInstance(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  instanceId: string,
): Promise<ScheduleRun | undefined> {
  return (await run<RunRow>(trx, ofInstance, [tenantId, id, instanceId])).map(runOf)[0];
}

const ofInstance = prepared(
  "schedule_run_of_instance",
  `select * from schedule_runs
  where tenant_id = $1 and schedule_id = $2 and instance_id = $3
  order by seq desc
  limit 1`,
);

/** The latest first. @throws BadCursorError */
export async function listScheduleRuns(
  db: Db,
  { tenantId, id }: ScheduleKey,
  { status }: { readonly status?: ScheduleRunState | undefined },
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly items: readonly ScheduleRun[]; readonly nextCursor: string | null }> {
  const [before = null] = cursor === undefined ? [] : decodeCursor("schedule-runs", cursor, 1);
  const rows = await readPage(cursor, () =>
    run<RunRow>(db, list, [tenantId, id, before, limit + 1, status ?? null]),
  );
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    items: rows.slice(0, limit).map(runOf),
    nextCursor: last ? encodeCursor("schedule-runs", [String(last.seq)]) : null,
  };
}

const list = prepared(
  "list_schedule_runs",
  `select * from schedule_runs
  where tenant_id = $1 and schedule_id = $2 and ($3::bigint is null or seq < $3)
    and ($5::text is null or status = $5)
  order by seq desc
  limit $4`,
);

interface RunRow {
  readonly seq: number;
  readonly kind: ScheduleRunKind;
  readonly tick_at: Date;
  readonly status: ScheduleRunState;
  readonly reason: string | null;
  readonly message: string | null;
  readonly instance_id: string | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
}

function runOf(row: RunRow): ScheduleRun {
  return {
    kind: row.kind,
    tickAt: row.tick_at,
    status: row.status,
    reason: row.reason,
    message: row.message,
    instanceId: row.instance_id,
    createdAt: row.created_at,
    startedAt: row.started_at,
  };
}
