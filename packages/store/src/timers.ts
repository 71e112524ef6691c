import type { TimerKind } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { prepared, run, type Db } from "./statement.ts";
import { reckonable } from "./stored-time.ts";
import { rowSource } from "./unnest.ts";

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
  { atLeastMs = 0, lessThanMs }: DueFor = {},
): Promise<readonly DueTimer[]> {
  return timersOf(await run<TimerRow>(db, take, [limit, holdMs, lessThanMs ?? null, atLeastMs]));
}

/** For how long timers have been due. */
export interface DueFor {
  readonly atLeastMs?: number;
  readonly lessThanMs?: number;
}

/**
 * Takes every due timer of these instances, so that theirs fire in order of time. Plan: the primary
 * key, the timers of one instance at a time.
 */
export async function takeDueTimersOf(
  db: Db,
  instances: readonly Key[],
  holdMs: number,
): Promise<readonly DueTimer[]> {
  if (instances.length === 0) return [];
  const values = [holdMs, ...instanceSource.values(instances)];
  return timersOf(await run<TimerRow>(db, takeOf, values));
}

const instanceSource = rowSource<Key>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
});

function timersOf(rows: readonly TimerRow[]): readonly DueTimer[] {
  return rows.map(timerOf).toSorted((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
}

export function timerOf(row: TimerRow): DueTimer {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    path: row.path,
    iteration: row.iteration,
    kind: row.kind as TimerKind,
    attempt: row.attempt,
    dueAt: row.due_at,
  };
}

export interface TimerRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly kind: string;
  readonly attempt: number;
  readonly due_at: Date;
}

/** For `select`, from a table `t`. */
export const timerColumns =
  "t.tenant_id, t.instance_id, t.path, t.iteration, t.kind, t.attempt, t.due_at";

const take = prepared(
  "take_timers",
  `with due as materialized (
    select t.tenant_id, t.instance_id, t.path, t.iteration, t.kind from timers t
    where t.look_at <= statement_timestamp() - $4::bigint * interval '1 ms'
      and t.look_at > coalesce(statement_timestamp() - $3::bigint * interval '1 ms', '-infinity')
    order by t.look_at
    limit $1
    for update skip locked)
  ${hold("$2")}`,
);

const takeOf = prepared(
  "take_timers_of",
  `with due as materialized (
    select t.tenant_id, t.instance_id, t.path, t.iteration, t.kind
    from ${instanceSource.from("x", 2)}
    join timers t on t.tenant_id = x.tenant_id and t.instance_id = x.instance_id
    where t.look_at <= statement_timestamp()
    order by t.tenant_id, t.instance_id, t.path, t.iteration, t.kind
    for update of t skip locked)
  ${hold("$1")}`,
);

function hold(holdMs: string): string {
  return `update timers t
  set look_at = statement_timestamp() + ${holdMs}::bigint * interval '1 ms'
  from due x
  where t.tenant_id = x.tenant_id and t.instance_id = x.instance_id and t.path = x.path
    and t.iteration = x.iteration and t.kind = x.kind
  returning ${timerColumns}`;
}

/**
 * Timers that nobody can fire as things stand are looked at less and less often: after a pause as long as they
 * are late, 10 min at most.
 */
export async function putOffTimers(db: Db, timers: readonly DueTimer[]): Promise<void> {
  await run(db, putOff, placeSource.values(timers));
}

const placeSource = rowSource<DueTimer>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  kind: { type: "text", of: ({ kind }) => kind },
});

const putOff = prepared(
  "put_off_timers",
  `update timers t
  set look_at = statement_timestamp()
    + least(greatest(statement_timestamp() - ${reckonable("t.due_at")}, interval '5 s'), interval '10 min')
  from ${placeSource.from("x", 1)}
  where t.tenant_id = x.tenant_id and t.instance_id = x.instance_id and t.path = x.path
    and t.iteration = x.iteration and t.kind = x.kind and t.look_at < 'infinity'`,
);

/**
 * When the next look is worth it; undefined while there are no timers, or only such as a pause holds.
 * Never before it is due.
 */
export async function nextTimerDue(db: Db): Promise<Date | undefined> {
  const [row] = await run<{ at: Date | null }>(db, next, []);
  return row?.at ?? undefined;
}

/** Rounded up to what a `Date` can say. */
const next = prepared(
  "next_timer",
  `select date_trunc('milliseconds', min(look_at) + interval '999 microseconds') as at from timers
  where look_at < 'infinity'`,
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
