import type { TimerKind } from "@millrace/engine";
import { prepared, run, type Db } from "./statement.ts";

/** A timer, as the signal that fires it needs it. */
export interface DueTimer {
  readonly tenantId: string;
  readonly instanceId: string;
  /** Empty for the instance's own. */
  readonly path: string;
  readonly iteration: number;
  readonly kind: TimerKind;
  readonly attempt: number;
  readonly dueAt: Date;
}

/**
 * Timers that are due by the database's clock, taken for `holdMs`: nobody else gets them meanwhile, and
 * they come again unless the commit that fires them takes them away.
 *
 * Plan: `timers_look` up to now, as many as asked for.
 */
export async function takeDueTimers(
  db: Db,
  limit: number,
  holdMs: number,
): Promise<readonly DueTimer[]> {
  const rows = await run<TimerRow>(db, take, [limit, holdMs]);
  return rows
    .map((row) => ({
      tenantId: row.tenant_id,
      instanceId: row.instance_id,
      path: row.path,
      iteration: row.iteration,
      kind: row.kind as TimerKind,
      attempt: row.attempt,
      dueAt: row.due_at,
    }))
    .toSorted((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
}

interface TimerRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly kind: string;
  readonly attempt: number;
  readonly due_at: Date;
}

const take = prepared(
  "take_timers",
  `with due as materialized (
    select t.tenant_id, t.instance_id, t.path, t.iteration, t.kind from timers t
    where t.look_at <= statement_timestamp()
    order by t.look_at
    limit $1
    for update skip locked)
  update timers t
  set look_at = statement_timestamp() + $2::bigint * interval '1 ms'
  from due x
  where t.tenant_id = x.tenant_id and t.instance_id = x.instance_id and t.path = x.path
    and t.iteration = x.iteration and t.kind = x.kind
  returning t.tenant_id, t.instance_id, t.path, t.iteration, t.kind, t.attempt, t.due_at`,
);

/** When the next look is worth it; undefined while there are no timers. Never before it is due. */
export async function nextTimerDue(db: Db): Promise<Date | undefined> {
  const [row] = await run<{ at: Date | null }>(db, next, []);
  return row?.at ?? undefined;
}

/** Rounded up to what a `Date` can say. */
const next = prepared(
  "next_timer",
  "select date_trunc('milliseconds', min(look_at) + interval '999 microseconds') as at from timers",
);

/** Takes away a timer that was void, unless it has been set anew since it was taken. */
export async function deleteTimer(db: Db, timer: DueTimer): Promise<void> {
  const { tenantId, instanceId, path, iteration, kind, attempt, dueAt } = timer;
  await run(db, remove, [tenantId, instanceId, path, iteration, kind, attempt, dueAt]);
}

const remove = prepared(
  "delete_timer",
  `delete from timers
  where tenant_id = $1 and instance_id = $2 and path = $3 and iteration = $4 and kind = $5
    and attempt = $6 and due_at = $7`,
);
