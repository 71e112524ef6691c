import type { CalendarDocument, KnownHolidays } from "@millrace/engine";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { canonicalJson, jsonText } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";
import { sharedTenant } from "./tenants.ts";

/** Calendars of tenants. As with definitions, the shared ones serve every tenant that has none of that id. */
export interface StoredCalendar {
  readonly id: string;
  /** From 1, one more with each change. */
  readonly version: number;
  readonly document: CalendarDocument;
  /** Null where it has no public ones. */
  readonly holidays: KnownHolidays | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface NewCalendar extends Pick<StoredCalendar, "document" | "holidays"> {
  readonly tenantId: string;
}

export type CalendarSaved =
  | { readonly kind: "created" | "updated" | "same"; readonly calendar: StoredCalendar }
  /** Something else is stored than was expected; undefined: nothing is. */
  | { readonly kind: "unexpected"; readonly version: number | undefined };

/**
 * Stores a calendar under its id, in place of the one that is there.
 *
 * @param expected The version that is to be there, or that there is to be none; undefined: whatever is.
 */
export async function saveCalendar(
  db: Db,
  { tenantId, document, holidays }: NewCalendar,
  expected?: number | "NONE",
): Promise<CalendarSaved> {
  const { id } = document;
  const content = [jsonText(document), holidays && jsonText(holidays)] as const;
  return db.transaction().execute(async (trx): Promise<CalendarSaved> => {
    if (typeof expected !== "number") {
      const [created] = await run<CalendarRow>(trx, insert, [tenantId, id, ...content]);
      if (created !== undefined) return { kind: "created", calendar: calendarOf(created) };
    }
    const [row] = await run<CalendarRow>(trx, lock, [tenantId, id]);
    if (row === undefined || (expected !== undefined && expected !== row.version)) {
      return { kind: "unexpected", version: row?.version };
    }
    const stored = calendarOf(row);
    if (canonicalJson([stored.document, stored.holidays]) === canonicalJson([document, holidays])) {
      return { kind: "same", calendar: stored };
    }
    const [updated = row] = await run<CalendarRow>(trx, update, [tenantId, id, ...content]);
    return { kind: "updated", calendar: calendarOf(updated) };
  });
}

const insert = prepared(
  "insert_calendar",
  `insert into calendars (tenant_id, id, version, document, holidays, created_at, updated_at)
  values ($1, $2, 1, $3, $4, clock_timestamp(), clock_timestamp())
  on conflict do nothing
  returning *`,
);

const lock = prepared(
  "lock_calendar",
  "select * from calendars where tenant_id = $1 and id = $2 for update",
);

const update = prepared(
  "update_calendar",
  `update calendars
  set version = version + 1, document = $3, holidays = $4, updated_at = clock_timestamp()
  where tenant_id = $1 and id = $2
  returning *`,
);

/** The tenant's own, else the shared one. */
export async function getCalendar(
  db: Db,
  tenantId: string,
  id: string,
): Promise<StoredCalendar | undefined> {
  const [row] = await run<CalendarRow>(db, get, [tenantId, id]);
  return row && calendarOf(row);
}

const get = prepared(
  "get_calendar",
  `select * from calendars
  where tenant_id in ($1, '${sharedTenant}') and id = $2
  order by tenant_id = $1 desc
  limit 1`,
);

/** @param ifVersion The version that is to be there. @returns What was there before, in either case. */
export async function deleteCalendar(
  db: Db,
  tenantId: string,
  id: string,
  ifVersion?: number,
): Promise<{ readonly version: number; readonly deleted: boolean } | undefined> {
  return db.transaction().execute(async (trx) => {
    const [row] = await run<CalendarRow>(trx, lock, [tenantId, id]);
    if (row === undefined) return undefined;
    const deleted = ifVersion === undefined || ifVersion === row.version;
    if (deleted) await run(trx, remove, [tenantId, id]);
    return { version: row.version, deleted };
  });
}

const remove = prepared(
  "delete_calendar",
  "delete from calendars where tenant_id = $1 and id = $2",
);

/** The tenant's own, in order of their ids. @throws BadCursorError */
export async function listCalendars(
  db: Db,
  tenantId: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly items: readonly StoredCalendar[]; readonly nextCursor: string | null }> {
  const [after = ""] = cursor === undefined ? [] : decodeCursor("calendars", cursor, 1);
  const rows = await readPage(cursor, () =>
    run<CalendarRow>(db, list, [tenantId, after, limit + 1]),
  );
  const items = rows.slice(0, limit).map(calendarOf);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last ? encodeCursor("calendars", [last.id]) : null };
}

const list = prepared(
  "list_calendars",
  "select * from calendars where tenant_id = $1 and id > $2 order by id limit $3",
);

/** A calendar as it is now. */
export interface CalendarNow {
  readonly id: string;
  /** Another one with each change, and when the id is used again. */
  readonly stamp: string;
  /** Undefined where it is the one that the caller knows. */
  readonly calendar: StoredCalendar | undefined;
}

/** The tenant's own, else the shared ones. @param known By id, the stamps of those that the caller has. */
export async function loadCalendars(
  db: Db,
  tenantId: string,
  ids: readonly string[],
  known: ReadonlyMap<string, string>,
): Promise<readonly CalendarNow[]> {
  const rows = await run<CalendarNowRow>(db, load, [
    tenantId,
    ids,
    ids.map((id) => known.get(id) ?? ""),
  ]);
  return rows.map(({ stamp, is_known: isKnown, ...row }) => ({
    id: row.id,
    stamp,
    calendar: isKnown ? undefined : calendarOf(row),
  }));
}

const stampOf = "concat_ws(' ', c.tenant_id, c.version, c.updated_at)";
const load = prepared(
  "load_calendars",
  `select distinct on (c.id) c.id, c.version, c.created_at, c.updated_at,
    ${stampOf} as stamp, ${stampOf} = k.stamp as is_known,
    case when ${stampOf} = k.stamp then null else c.document end as document,
    case when ${stampOf} = k.stamp then null else c.holidays end as holidays
  from unnest($2::text[], $3::text[]) as k (id, stamp)
  join calendars c on c.tenant_id in ($1, '${sharedTenant}') and c.id = k.id
  order by c.id, c.tenant_id = $1 desc`,
);

interface CalendarRow {
  readonly id: string;
  readonly version: number;
  readonly document: string;
  readonly holidays: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

interface CalendarNowRow extends CalendarRow {
  readonly stamp: string;
  readonly is_known: boolean;
}

function calendarOf(row: CalendarRow): StoredCalendar {
  return {
    id: row.id,
    version: row.version,
    document: JSON.parse(row.document) as CalendarDocument,
    holidays: row.holidays === null ? null : (JSON.parse(row.holidays) as KnownHolidays),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
