import type { JsonObject } from "@millrace/engine";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { jsonText } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";

/**
 * Schedules. Whoever makes one tick, or changes it, takes its row first, so that a tick is seen to under
 * one rule and by one process; what becomes of a tick is in `schedule-runs.ts`.
 */
export interface StoredSchedule {
  readonly tenantId: string;
  readonly id: string;
  readonly uid: string;
  /** Counts what people change, not ticks. */
  readonly version: number;
  readonly document: StoredScheduleDocument;
  readonly status: StoredScheduleStatus;
  /** The next tick that nobody has seen to. */
  readonly nextTickAt: Date | null;
  readonly lastTickAt: Date | null;
  /** The latest tick of which it is not remembered any more that it ran. */
  readonly forgottenTo: Date | null;
  readonly counts: ScheduleCounts;
  readonly trouble: string | null;
  readonly pause: SchedulePause | null;
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly updatedAt: Date;
  readonly updatedBy: string;
}

export type StoredScheduleStatus = "ACTIVE" | "PAUSED" | "COMPLETED";

/** As it was handed in, without its id. Times are ISO 8601. */
export interface StoredScheduleDocument {
  readonly type: "one-time" | "recurring";
  readonly target: { readonly type: "workflow" | "task"; readonly id: string };
  readonly timing: {
    readonly executeAt?: string | undefined;
    readonly cronExpression?: string | undefined;
    readonly interval?: string | undefined;
    readonly timezone?: string | undefined;
    readonly startDate?: string | undefined;
    readonly endDate?: string | undefined;
  };
  readonly input?: Json | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly overlapPolicy?: StoredOverlapPolicy | undefined;
  readonly catchupWindow?: string | undefined;
  readonly jitter?: string | undefined;
  readonly calendarId?: string | null | undefined;
  readonly dst?:
    | {
        readonly missing?: "SHIFT" | "SKIP" | undefined;
        readonly duplicate?: "FIRST" | "BOTH" | undefined;
      }
    | undefined;
}

export type StoredOverlapPolicy =
  | "SKIP"
  | "BUFFER_ONE"
  | "BUFFER_ALL"
  | "CANCEL_OTHER"
  | "ALLOW_ALL";

export interface ScheduleCounts {
  readonly started: number;
  readonly skipped: number;
  readonly missed: number;
  readonly failed: number;
}

export interface SchedulePause {
  readonly at: string;
  readonly by: string;
  readonly reason: string | null;
}

export interface ScheduleKey {
  readonly tenantId: string;
  readonly id: string;
}

/** When it ticks next; `dueAt` is null where nobody is to look. */
export interface NextTick {
  readonly nextTickAt: Date | null;
  readonly dueAt: Date | null;
}

export interface NewSchedule extends ScheduleKey, NextTick {
  readonly uid: string;
  readonly document: StoredScheduleDocument;
  readonly status: StoredScheduleStatus;
  readonly at: Date;
  readonly actor: string;
}

/** @returns Undefined where there is one of that id already. */
export async function insertSchedule(
  db: Db,
  schedule: NewSchedule,
): Promise<StoredSchedule | undefined> {
  const { tenantId, id, uid, document, status, nextTickAt, dueAt, at, actor } = schedule;
  const { type, id: targetId } = document.target;
  const rows = await run<ScheduleRow>(db, insert, [
    tenantId,
    id,
    uid,
    jsonText(document),
    type,
    targetId,
    status,
    nextTickAt,
    dueAt,
    at,
    actor,
  ]);
  return rows.map(scheduleOf)[0];
}

const insert = prepared(
  "insert_schedule",
  `insert into schedules (
    tenant_id, id, uid, version, document, target_type, target_id, status, next_tick_at, due_at,
    created_at, created_by, updated_at, updated_by)
  values ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11, $10, $11)
  on conflict do nothing
  returning *`,
);

export async function readSchedule(
  db: Db,
  { tenantId, id }: ScheduleKey,
): Promise<StoredSchedule | undefined> {
  return (await run<ScheduleRow>(db, read, [tenantId, id])).map(scheduleOf)[0];
}

const read = prepared("read_schedule", "select * from schedules where tenant_id = $1 and id = $2");

/** A schedule whose row this transaction has taken, and the database's time. */
export interface LockedSchedule extends StoredSchedule {
  readonly dueAt: Date | null;
  readonly now: Date;
}

/**
 * Does something to a schedule while nobody else can, in one transaction.
 *
 * @param ifFree Does not wait for others who have it: they see to what there is to do.
 * @returns Undefined where there is no such schedule, or somebody else has it.
 */
export async function withSchedule<T>(
  db: Db,
  { tenantId, id }: ScheduleKey,
  { ifFree = false }: { readonly ifFree?: boolean },
  act: (trx: Db, schedule: LockedSchedule) => Promise<T>,
): Promise<T | undefined> {
  return db.transaction().execute(async (trx) => {
    const text = ifFree ? lockFree : lock;
    const rows = await run<ScheduleRow & { readonly now: Date }>(trx, text, [tenantId, id]);
    const [row] = rows;
    if (row === undefined) return undefined;
    return act(trx, { ...scheduleOf(row), dueAt: row.due_at, now: row.now });
  });
}

/** For the rest of this transaction nobody else has it. @returns Whether it is there and was free. */
export async function lockIfFree(trx: Db, { tenantId, id }: ScheduleKey): Promise<boolean> {
  return (await run(trx, lockFree, [tenantId, id])).length > 0;
}

/** Of the time what a `Date` can say, rounded down: never ahead of the database. */
const locking = `select *, date_trunc('milliseconds', clock_timestamp()) as now
  from schedules where tenant_id = $1 and id = $2 for update`;
const lock = prepared("lock_schedule", locking);
const lockFree = prepared("lock_schedule_if_free", `${locking} skip locked`);

/** What is due, longest first. Plan: `schedules_due`. */
export async function dueSchedules(db: Db, limit: number): Promise<readonly StoredSchedule[]> {
  return (await run<ScheduleRow>(db, due, [limit])).map(scheduleOf);
}

const due = prepared(
  "due_schedules",
  `select * from schedules where due_at <= statement_timestamp()
  order by due_at limit $1`,
);

/** When the next look is worth it. */
export interface ScheduleOutlook {
  /** Never before something is due. */
  readonly dueAt: Date | null;
  /** There are runs that wait for others to settle, of which nobody tells. */
  readonly isWaiting: boolean;
}

export async function scheduleOutlook(db: Db): Promise<ScheduleOutlook> {
  const [row] = await run<{ due_at: Date | null; is_waiting: boolean }>(db, outlook, []);
  return { dueAt: row?.due_at ?? null, isWaiting: row?.is_waiting ?? false };
}

/** Rounded up to what a `Date` can say. */
const outlook = prepared(
  "schedule_outlook",
  `select
    (select date_trunc('milliseconds', min(due_at) + interval '999 microseconds')
      from schedules where due_at is not null) as due_at,
    exists (select from schedule_runs where status = 'WAITING') as is_waiting`,
);

/** What has come of the ticks up to now. */
export interface Ticked extends NextTick {
  readonly status: StoredScheduleStatus;
  readonly lastTickAt: Date | null;
  /** To be added to what there is. */
  readonly counts: ScheduleCounts;
}

export async function noteTicks(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  { status, nextTickAt, dueAt, lastTickAt, counts }: Ticked,
): Promise<void> {
  const { started, skipped, missed, failed } = counts;
  const values = [tenantId, id, status, nextTickAt, dueAt, lastTickAt];
  await run(trx, note, [...values, started, skipped, missed, failed]);
}

const note = prepared(
  "note_ticks",
  `update schedules set status = $3, next_tick_at = $4, due_at = $5,
    last_tick_at = greatest(last_tick_at, $6), started = started + $7, skipped = skipped + $8,
    missed = missed + $9, failed = failed + $10, trouble = null
  where tenant_id = $1 and id = $2`,
);

/** What somebody has made of a schedule. */
export interface ScheduleChange extends NextTick {
  readonly document: StoredScheduleDocument;
  readonly status: StoredScheduleStatus;
  readonly pause: SchedulePause | null;
  readonly at: Date;
  readonly actor: string;
}

export async function changeSchedule(
  trx: Db,
  { tenantId, id }: ScheduleKey,
  { document, status, pause, nextTickAt, dueAt, at, actor }: ScheduleChange,
): Promise<StoredSchedule> {
  const { type, id: targetId } = document.target;
  const rows = await run<ScheduleRow>(trx, change, [
    tenantId,
    id,
    jsonText(document),
    type,
    targetId,
    status,
    pause === null ? null : jsonText(pause),
    nextTickAt,
    dueAt,
    at,
    actor,
  ]);
  const [changed] = rows.map(scheduleOf);
  if (changed === undefined) throw new Error(`schedule ${id} is gone while its row is held`);
  return changed;
}

const change = prepared(
  "change_schedule",
  `update schedules set version = version + 1, document = $3, target_type = $4, target_id = $5,
    status = $6, pause = $7, next_tick_at = $8, due_at = $9, updated_at = $10, updated_by = $11,
    trouble = null
  where tenant_id = $1 and id = $2
  returning *`,
);

/** It could not be made to tick: the next look is after `delayMs`, and the others have their turn. */
export async function putOffSchedule(
  db: Db,
  { tenantId, id }: ScheduleKey,
  delayMs: number,
  trouble: string,
): Promise<void> {
  await run(db, putOff, [tenantId, id, delayMs, trouble]);
}

const putOff = prepared(
  "put_off_schedule",
  `update schedules set due_at = statement_timestamp() + $3::bigint * interval '1 ms', trouble = $4
  where tenant_id = $1 and id = $2 and due_at <= statement_timestamp()`,
);

/** With all that is known of its runs. Instances that it has started stay. */
export async function deleteSchedule(trx: Db, { tenantId, id }: ScheduleKey): Promise<void> {
  await run(trx, removeRuns, [tenantId, id]);
  await run(trx, remove, [tenantId, id]);
}

const removeRuns = prepared(
  "delete_schedule_runs",
  "delete from schedule_runs where tenant_id = $1 and schedule_id = $2",
);
const remove = prepared(
  "delete_schedule",
  "delete from schedules where tenant_id = $1 and id = $2",
);

export interface ScheduleFilter {
  readonly status?: StoredScheduleStatus | undefined;
  readonly targetType?: string | undefined;
  readonly targetId?: string | undefined;
}

/** In order of their ids. @throws BadCursorError */
export async function listSchedules(
  db: Db,
  tenantId: string,
  { status, targetType, targetId }: ScheduleFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly items: readonly StoredSchedule[]; readonly nextCursor: string | null }> {
  const [after = ""] = cursor === undefined ? [] : decodeCursor("schedules", cursor, 1);
  const values = [tenantId, after, limit + 1, status, targetType, targetId];
  const rows = await readPage(cursor, () =>
    run<ScheduleRow>(
      db,
      list,
      values.map((value) => value ?? null),
    ),
  );
  const items = rows.slice(0, limit).map(scheduleOf);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last ? encodeCursor("schedules", [last.id]) : null };
}

const list = prepared(
  "list_schedules",
  `select * from schedules
  where tenant_id = $1 and id > $2
    and ($4::text is null or status = $4)
    and ($5::text is null or target_type = $5)
    and ($6::text is null or target_id = $6)
  order by id
  limit $3`,
);

interface KeyRow {
  readonly tenant_id: string;
  readonly id: string;
}

function keyOf({ tenant_id: tenantId, id }: KeyRow): ScheduleKey {
  return { tenantId, id };
}

interface ScheduleRow extends KeyRow, ScheduleCounts {
  readonly uid: string;
  readonly version: number;
  readonly document: string;
  readonly status: StoredScheduleStatus;
  readonly next_tick_at: Date | null;
  readonly due_at: Date | null;
  readonly last_tick_at: Date | null;
  readonly forgotten_to: Date | null;
  readonly trouble: string | null;
  readonly pause: string | null;
  readonly created_at: Date;
  readonly created_by: string;
  readonly updated_at: Date;
  readonly updated_by: string;
}

function scheduleOf(row: ScheduleRow): StoredSchedule {
  const { started, skipped, missed, failed } = row;
  return {
    ...keyOf(row),
    uid: row.uid,
    version: row.version,
    document: JSON.parse(row.document) as StoredScheduleDocument,
    status: row.status,
    nextTickAt: row.next_tick_at,
    lastTickAt: row.last_tick_at,
    forgottenTo: row.forgotten_to,
    counts: { started, skipped, missed, failed },
    trouble: row.trouble,
    pause: row.pause === null ? null : (JSON.parse(row.pause) as SchedulePause),
    createdAt: row.created_at,
    createdBy: row.created_by,
    updatedAt: row.updated_at,
    updatedBy: row.updated_by,
  };
}
