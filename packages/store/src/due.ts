import type { RetryPolicy } from "@millrace/engine";
import { lapseOf } from "./dead-letters.ts";
import { dueColumns, dueStepOf } from "./due-step.ts";
import type { DueRow, DueStep } from "./due-step.ts";
import { storedEventColumns, storedEventOf } from "./events.ts";
import type { StoredEvent, StoredEventRow } from "./events.ts";
import { wasBlocked } from "./holds.ts";
import { parseJson } from "./json.ts";
import { lookbackColumns, lookbackWaitOf } from "./lookbacks.ts";
import type { LookbackRow, LookbackWait } from "./lookbacks.ts";
import { inParts } from "./parts.ts";
import type { RowPlace, Placed } from "./parts.ts";
import { prepared, run, type Db } from "./statement.ts";
import { textArray } from "./unnest.ts";
import { wentOn } from "./workers.ts";

/**
 * Rows due for a look: what the reconciler asks (DESIGN, The state is the outbox).
 *
 * Each question is bounded and leaves out what others have locked, so that any number of processes may
 * ask at once. What stays as it was found is looked past: the next part of the question goes on behind it.
 * Each is answered from a partial index that holds only rows of that kind:
 *
 * | question             | index                                                             |
 * | -------------------- | ----------------------------------------------------------------- |
 * | steps without a job  | `step_executions_look`, up to now                                 |
 * | lapsed, overdue      | `step_executions_held`, whole: as long as the fleet is wide       |
 * | held by nobody       | `step_executions_unheld`: empty but after damage                  |
 * | events not matched   | `events_unmatched`, up to a moment ago: empty but after a crash   |
 * | lookbacks not done   | `waits_not_looked_back`, the same                                 |
 * | matches not applied  | `waits_unapplied`, the same                                       |
 * | events to hand on    | `event_releases_left`, the same (releases.ts)                     |
 */

const samePlace = `s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
    and s.path = x.path and s.iteration = x.iteration`;

/**
 * Executions whose job was not there in time, or whose retry is due. Each is asked about again after
 * 30 s, then 60 s, … 10 min, as long as it stays where it is.
 */
export async function takeDueSteps(
  db: Db,
  limit: number,
): Promise<readonly (DueStep & { readonly dueAt: Date; readonly isRetry: boolean })[]> {
  const rows = await run<DueRow & { due_at: Date; is_retry: boolean }>(db, dueSteps, [limit]);
  return rows.map((row) => ({ ...dueStepOf(row), dueAt: row.due_at, isRetry: row.is_retry }));
}

const dueSteps = prepared(
  "due_steps",
  `with due as materialized (
    select s.tenant_id, s.instance_id, s.path, s.iteration, s.look_at from step_executions s
    where s.status in ('PENDING', 'RETRYING') and s.look_at <= statement_timestamp()
    order by s.look_at
    limit $1
    for update skip locked)
  update step_executions s
  set looks = greatest(s.looks, 0) + case when ${wasBlocked} then 0 else 1 end,
    look_at = statement_timestamp()
      + least(600, 30 * 2 ^ least(greatest(s.looks, 0), 5)) * interval '1 s'
  from due x
  where ${samePlace}
  returning ${dueColumns}, x.look_at as due_at, s.status = 'RETRYING' as is_retry`,
);

export interface LapseOptions {
  /** Age of a beat beyond which its worker counts as gone. */
  readonly lapseMs: number;
  /**
   * Deaths of workers after which an execution is not handed on any more. What a worker handed back
   * itself, at its shutdown say, is none, nor is that of one that was only silent and has gone on.
   */
  readonly mostDeliveries: number;
  readonly limit: number;
  /** Of the last one of the part before; absent: from the start. */
  readonly after?: RowPlace | undefined;
}

/** An execution that its worker holds no more. */
export interface Lapsed extends DueStep, Placed {
  /** PENDING again, at the next fence; else untouched, and to be poisoned. */
  readonly isFree: boolean;
  /** Its last run came to nothing while the worker lived on: it is looked for after a pause. */
  readonly isPutOff: boolean;
  /** Deliveries of this attempt that ended so, this one included; of one to be poisoned, the deaths. */
  readonly lapses: number;
  readonly silentSince: Date;
  /** Who held it, and since when it has run: since its first run. */
  readonly heldBy: string;
  readonly startedAt: Date;
}

/** An answer that took longer says nothing of beats: the database stood still, and so nobody could beat. */
const standstillMs = 2_000;

/**
 * Frees the executions whose worker's beat is too old, or whose worker has died, as is known of it, or is
 * gone. Executions that a cancel awaits are left alone: nobody may run them again.
 *
 * In two statements. One that is under way while the database stands still finds all beats old: so what
 * is freed is only what a statement before it has found, and in time.
 */
export async function takeLapsedSteps(db: Db, options: LapseOptions): Promise<readonly Lapsed[]> {
  const { lapseMs, mostDeliveries, limit } = options;
  const after = heldInParts.values(options.after);
  const askedAt = performance.now();
  const silent = await run<{ worker_id: string }>(db, silentHolders, [lapseMs, limit, ...after]);
  if (silent.length === 0 || performance.now() - askedAt > standstillMs) return [];
  const workerIds = textArray(silent.map(({ worker_id: id }) => id));
  const values = [lapseMs, limit, ...after, mostDeliveries, workerIds];
  const rows = await run<LapsedRow>(db, lapsedSteps, values);
  return rows.map((row) => ({
    ...dueStepOf(row),
    isFree: row.is_free,
    isPutOff: row.is_put_off,
    lapses: row.counted,
    silentSince: row.silent_since,
    heldBy: row.held_by,
    startedAt: row.began_at,
    place: row.place,
  }));
}

interface LapsedRow extends DueRow, Placed {
  readonly is_free: boolean;
  readonly is_put_off: boolean;
  readonly counted: number;
  readonly silent_since: Date;
  readonly held_by: string;
  readonly began_at: Date;
}

/**
 * By holders, whose index has what runs and nothing else: in the order of the primary key all rows of the table were read where
 * most of them ran when it was last analyzed. By the fence, too: which holding of the step it is.
 */
const heldInParts = inParts(
  {
    "s.worker_id": "uuid",
    "s.tenant_id": "text",
    "s.instance_id": "uuid",
    "s.path": "text",
    "s.iteration": "integer",
    "s.fence": "integer",
  },
  3,
);

const isHeldInSilence = `s.status = 'RUNNING' and s.worker_id is not null and not s.awaited
      and (w.exit is not null
        or coalesce(w.beat_at, '-infinity') < clock_timestamp() - $1::bigint * interval '1 ms')`;

/** The holder of what nobody holds: it never beats. Whatever is given to it has lapsed by the next look. */
export const nobody = "00000000-0000-0000-0000-000000000000";

const silentHolders = prepared(
  "silent_holders",
  `with unheld as materialized (
    select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
    where s.status = 'RUNNING' and s.worker_id is null and s.queue is not null and not s.awaited
      and coalesce(s.started_at, s.created_at)
        < clock_timestamp() - $1::bigint * interval '1 ms'
    limit $2
    for update skip locked),
  given as (
    update step_executions s set worker_id = '${nobody}' from unheld x where ${samePlace})
  select distinct worker_id from (
    select s.worker_id from step_executions s
    left join workers w on w.id = s.worker_id
    where ${isHeldInSilence} and ${heldInParts.behind}
    order by ${heldInParts.order}
    limit $2) s`,
);

const lapsedSteps = prepared(
  "lapsed_steps",
  `with lapsed as materialized (
    select ${dueColumns}, ${heldInParts.place}, ${lapseOf} as lapse,
      s.lapses + 1 - case when s.lapses + 1 < $9::integer then 0 else (
        select count(*)::integer
        from jsonb_array_elements(coalesce(s.lapse_log, '[]') || ${lapseOf}) l
        join workers v on v.id = (l ->> 'workerId')::uuid
        where (l ->> 'attempt')::integer = s.attempt and v.exit = '${wentOn}') end as deaths,
      coalesce(w.beat_at, s.started_at, s.created_at) as silent_since,
      s.worker_id as held_by, coalesce(s.started_at, s.created_at) as began_at
    from step_executions s
    left join workers w on w.id = s.worker_id
    where ${isHeldInSilence} and s.worker_id = any ($10::uuid[]) and ${heldInParts.behind}
    order by ${heldInParts.order}
    limit $2
    for update of s skip locked),
  freed as (
    update step_executions s
    set status = 'PENDING', fence = s.fence + 1, worker_id = null, carrier = null,
      look_at = case when not s.held then statement_timestamp() + case when s.blocked is null
        then interval '30 s' else 4 ^ least(s.lapses + 1, 5) * interval '1 s' end end, looks = 0,
      due_at = null, due_clock = null, timeout_at = null, lapses = s.lapses + 1,
      lapse_log = coalesce(s.lapse_log, '[]') || x.lapse
    from lapsed x
    where ${samePlace} and x.deaths < $9
    returning ${dueColumns}, s.lapses as counted, x.silent_since, x.held_by, x.began_at,
      true as is_free, s.blocked is not null as is_put_off, x.place)
  select * from freed
  union all
  select ${dueColumns}, s.deaths, s.silent_since, s.held_by, s.began_at, false, false, s.place
  from lapsed s where s.deaths >= $9
  order by held_by, tenant_id, instance_id, path, iteration`,
);

/** An attempt whose clock ran out, and whose worker has not said so. */
export interface OverdueAttempt extends Placed {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
  readonly clock: "timeout" | "heartbeat";
  readonly dueAt: Date;
  /** The task's own policy. */
  readonly retry: Partial<RetryPolicy> | null;
}

/** A worker fires the clocks of what it runs by itself; this long after it, nobody will. */
const overdueGraceMs = 2_000;

export async function overdueAttempts(
  db: Db,
  limit: number,
  after?: RowPlace,
): Promise<readonly OverdueAttempt[]> {
  const rows = await run<OverdueRow>(db, overdue, [limit, ...overdueInParts.values(after)]);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    stepId: row.step_id,
    path: row.path,
    iteration: row.iteration,
    attempt: row.attempt,
    fence: row.fence,
    clock: row.due_clock === "heartbeat" ? "heartbeat" : "timeout",
    dueAt: row.due_at,
    retry: (parseJson(row.task_retry) ?? null) as Partial<RetryPolicy> | null,
    place: row.place,
  }));
}

interface OverdueRow extends Placed {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly step_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
  readonly due_clock: string;
  readonly due_at: Date;
  readonly task_retry: string | null;
}

const overdueInParts = inParts(
  {
    "s.due_at": "timestamptz",
    "s.tenant_id": "text",
    "s.instance_id": "uuid",
    "s.path": "text",
    "s.iteration": "integer",
  },
  2,
);

const overdue = prepared(
  "overdue_attempts",
  `select s.tenant_id, s.instance_id, i.workflow_id, i.workflow_version, s.step_id, s.path,
    s.iteration, s.attempt, s.fence, s.due_clock, s.due_at, s.task_retry, ${overdueInParts.place}
  from step_executions s
  join workflow_instances i on i.tenant_id = s.tenant_id and i.id = s.instance_id
  where s.status = 'RUNNING' and s.worker_id is not null and not s.awaited
    and s.due_at < statement_timestamp() - interval '${overdueGraceMs} ms'
    and ${overdueInParts.behind}
  order by ${overdueInParts.order}
  limit $1`,
);

/** Events whose publisher did not come to match them. */
export async function unmatchedEvents(
  db: Db,
  olderMs: number,
  limit: number,
  after?: RowPlace,
): Promise<readonly (StoredEvent & Placed)[]> {
  const values = [olderMs, limit, ...eventsInParts.values(after)];
  const rows = await run<StoredEventRow & Placed>(db, unmatched, values);
  return rows.map((row) => ({ ...storedEventOf(row), place: row.place }));
}

const eventsInParts = inParts(
  { "e.received_at": "timestamptz", "e.tenant_id": "text", "e.id": "text" },
  3,
);

const unmatched = prepared(
  "unmatched_events",
  `select ${storedEventColumns}, ${eventsInParts.place} from events e
  where e.matched_at is null
    and e.received_at < statement_timestamp() - $1::bigint * interval '1 ms'
    and ${eventsInParts.behind}
  order by ${eventsInParts.order}
  limit $2`,
);

/** Waits whose opener did not come to look for events before them. */
export async function waitsNotLookedBack(
  db: Db,
  olderMs: number,
  limit: number,
  after?: RowPlace,
): Promise<readonly (LookbackWait & Placed)[]> {
  const values = [olderMs, limit, ...openedInParts.values(after)];
  const rows = await run<LookbackRow & Placed>(db, notLookedBack, values);
  return rows.map((row) => ({ ...lookbackWaitOf(row), place: row.place }));
}

const waitKey = {
  "w.tenant_id": "text",
  "w.instance_id": "uuid",
  "w.path": "text",
  "w.iteration": "integer",
} as const;

const openedInParts = inParts({ "w.opened_at": "timestamptz", ...waitKey }, 3);

const notLookedBack = prepared(
  "waits_not_looked_back",
  `select ${lookbackColumns}, ${openedInParts.place} from waits w
  join workflow_instances i on i.tenant_id = w.tenant_id and i.id = w.instance_id
  where not w.looked_back and w.matched_event_id is null
    and w.opened_at < statement_timestamp() - $1::bigint * interval '1 ms'
    and ${openedInParts.behind}
  order by ${openedInParts.order}
  limit $2`,
);

export interface UnappliedMatch extends Placed {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly eventId: string;
  readonly matchedAt: Date;
}

/** Waits that an event has taken, and whose instances were not told. Paused ones hold theirs. */
export async function unappliedMatches(
  db: Db,
  olderMs: number,
  limit: number,
  after?: RowPlace,
): Promise<readonly UnappliedMatch[]> {
  const values = [olderMs, limit, ...matchesInParts.values(after)];
  const rows = await run<UnappliedRow>(db, unapplied, values);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    eventId: row.matched_event_id,
    matchedAt: row.matched_at,
    place: row.place,
  }));
}

interface UnappliedRow extends Placed {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly matched_event_id: string;
  readonly matched_at: Date;
}

const matchesInParts = inParts({ "w.matched_at": "timestamptz", ...waitKey }, 3);

const unapplied = prepared(
  "unapplied_matches",
  `select w.tenant_id, w.instance_id, w.matched_event_id, w.matched_at, ${matchesInParts.place}
  from waits w
  join workflow_instances i on i.tenant_id = w.tenant_id and i.id = w.instance_id
  where w.matched_event_id is not null and i.status <> 'PAUSED'
    and w.matched_at < statement_timestamp() - $1::bigint * interval '1 ms'
    and ${matchesInParts.behind}
  order by ${matchesInParts.order}
  limit $2`,
);

/** Jobs a second that are asked for again, so that a Redis that comes back empty is not flooded. */
const duePerSecond = 2_000;
const dueChunk = 5_000;

/**
 * After the queue has lost everything: each execution that is to run is due, the oldest first, spread
 * over time. A retry that is not due yet comes by itself.
 *
 * @returns How many.
 */
export async function makeAllDue(db: Db): Promise<number> {
  return makeDue(db, "-infinity", "infinity");
}

/**
 * After jobs could not be added for a while: each execution that became PENDING in that time, as its
 * first look tells, is due, the oldest first, spread over time. Those whose job was added all the same
 * get it a second time, which does nothing.
 *
 * @returns How many.
 */
export async function makeMissedDue(db: Db, from: Date, to: Date): Promise<number> {
  const firstLook = (at: Date) => new Date(at.getTime() + firstLookMs).toISOString();
  return makeDue(db, firstLook(from), firstLook(to));
}

/** When a new PENDING row is looked at (writes.ts). */
const firstLookMs = 30_000;

/** @param from Of the time when they would have been looked at. */
async function makeDue(db: Db, from: string, to: string): Promise<number> {
  const [start] = await run<{ at: string }>(db, "select clock_timestamp()::text as at", []);
  let total = 0;
  for (;;) {
    const values = [start?.at, dueChunk, total, duePerSecond, from, to];
    const rows = await run<{ n: number }>(db, nowDue, values);
    const count = rows[0]?.n ?? 0;
    total += count;
    if (count < dueChunk) return total;
  }
}

/** `looks` of -1 marks what an earlier chunk has placed. */
const nowDue = prepared(
  "make_due",
  `with missing as materialized (
    select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
    where (s.status = 'PENDING' or s.status = 'RETRYING' and s.retry_at <= $1::timestamptz)
      and s.looks >= 0 and not s.held
      and s.look_at between $5::timestamptz and $6::timestamptz
    order by s.look_at
    limit $2
    for update skip locked),
  numbered as (select *, row_number() over () as n from missing),
  moved as (
    update step_executions s
    set looks = -1,
      look_at = $1::timestamptz + ($3::integer + x.n) * interval '1 s' / $4::integer
    from numbered x
    where ${samePlace}
    returning 1)
  select count(*)::integer as n from moved`,
);
