import type { RetentionLook, Swept } from "./retention.ts";
import { lockIfFree } from "./schedules.ts";
import { prepared, run, type Db } from "./statement.ts";

/** Rows of a schedule that stay, however old: its latest. */
const keptRuns = 100;
/** Rows of one schedule that go at once: more than a schedule comes to between two looks. */
const mostRuns = 1_000;

/**
 * What has become of ticks long ago. A run goes after its instance. Of those that ran the latest tick is
 * remembered in the schedule, so that no backfill repeats one (PROMISES P7). Looks at `limit` schedules,
 * in order of their keys.
 */
export async function forgetRuns(db: Db, { olderMs, after, limit }: RetentionLook): Promise<Swept> {
  const { at: tenantId, id } = after ?? { at: "", id: "" };
  const found = await run<FoundSchedule>(db, schedulesWithOld, [
    olderMs,
    tenantId,
    id,
    limit,
    keptRuns,
  ]);
  let deleted = 0;
  for (const schedule of found) {
    if (!schedule.has_old) continue;
    deleted += await forgetRunsOf(db, schedule, olderMs);
  }
  const last = found.at(-1);
  const place = last && { at: last.tenant_id, id: last.id };
  return { deleted, place, behindMs: found.length >= limit ? 0 : undefined };
}

interface FoundSchedule {
  readonly tenant_id: string;
  readonly id: string;
  readonly has_old: boolean;
}

/** By the place after which the latest ones begin. Plan: the primary key, from its oldest end. */
const oldRuns = (tenantId: string, id: string, olderMs: string, kept: string) => `
      select r.seq from schedule_runs r
      where r.tenant_id = ${tenantId} and r.schedule_id = ${id}
        and r.seq <= (
          select l.seq from schedule_runs l
          where l.tenant_id = ${tenantId} and l.schedule_id = ${id}
          order by l.seq desc
          offset ${kept} limit 1)
        and r.created_at < statement_timestamp() - ${olderMs}::bigint * interval '1 ms'
        and r.status <> 'WAITING'
        and not exists (
          select from workflow_instances i where i.tenant_id = r.tenant_id and i.id = r.instance_id)
      order by r.seq`;

const schedulesWithOld = prepared(
  "schedules_with_old_runs",
  `select s.tenant_id, s.id,
    exists (${oldRuns("s.tenant_id", "s.id", "$1", "$5")} limit 1) as has_old
  from (
    select tenant_id, id from schedules where (tenant_id, id) > ($2, $3)
    order by tenant_id, id
    limit $4) s
  order by s.tenant_id, s.id`,
);

async function forgetRunsOf(
  db: Db,
  { tenant_id: tenantId, id }: FoundSchedule,
  olderMs: number,
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    if (!(await lockIfFree(trx, { tenantId, id }))) return 0;
    const values = [tenantId, id, olderMs, keptRuns, mostRuns];
    const [row] = await run<{ deleted: number }>(trx, forgetOldRuns, values);
    return row?.deleted ?? 0;
  });
}

const forgetOldRuns = prepared(
  "forget_runs",
  `with old as materialized (${oldRuns("$1", "$2", "$3", "$4")}
      limit $5),
  gone as (
    delete from schedule_runs
    where tenant_id = $1 and schedule_id = $2 and seq = any (array(select seq from old))
    returning kind, status, tick_at),
  noted as (
    update schedules set forgotten_to = greatest(forgotten_to, g.tick_at)
    from (select max(tick_at) as tick_at from gone
      where status = 'STARTED' and kind <> 'MANUAL') g
    where tenant_id = $1 and id = $2 and g.tick_at is not null)
  select count(*)::integer as deleted from gone`,
);
