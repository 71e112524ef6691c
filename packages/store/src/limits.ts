import type { QueueOrder } from "@millrace/engine";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { sharedTenant } from "./tenants.ts";
import { lockAllLimits } from "./limit-slots.ts";
import type { LimitRef } from "./limit-slots.ts";
import { prepared, run, type Db } from "./statement.ts";

/** Limits that are set by whoever runs the installation, and not by a definition. */
export interface StoredLimit extends LimitRef {
  readonly slots: number;
  readonly queue: QueueOrder;
  /** Null: any number may wait. */
  readonly maxQueued: number | null;
  /** From 1, one more with each change. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewLimit = LimitRef & Pick<StoredLimit, "slots" | "queue" | "maxQueued">;

export type LimitSaved =
  | { readonly kind: "created" | "updated" | "same"; readonly limit: StoredLimit }
  /** Something else is stored than was expected; undefined: nothing is. */
  | { readonly kind: "unexpected"; readonly version: number | undefined }
  /** The tenant has as many as it may have. */
  | { readonly kind: "tooMany" };

/** Limits that a tenant has, at most: each process has all of them at hand. */
export const mostLimits = 10_000;

/** @param expected The version that is to be there; undefined: whatever is. */
export async function saveLimit(db: Db, limit: NewLimit, expected?: number): Promise<LimitSaved> {
  const { tenantId, limitKey, slots, queue, maxQueued } = limit;
  return db.transaction().execute(async (trx): Promise<LimitSaved> => {
    const content = [tenantId, limitKey, slots, queue, maxQueued] as const;
    await beginChange(trx);
    const [row] = await run<LimitRow>(trx, lock, [tenantId, limitKey]);
    if (row === undefined) {
      // Of the limit of a definition version 0 is read.
      if (expected !== undefined && expected !== 0)
        return { kind: "unexpected", version: undefined };
      const [count] = await run<{ limits: number }>(trx, countOf, [tenantId]);
      if (count !== undefined && count.limits >= mostLimits) return { kind: "tooMany" };
      const created = await run<LimitRow>(trx, insert, content);
      return { kind: "created", limit: limitOf(onlyRow(created)) };
    }
    if (expected !== undefined && expected !== row.version) {
      return { kind: "unexpected", version: row.version };
    }
    const isSame = row.slots === slots && row.queue === queue && row.max_queued === maxQueued;
    if (isSame) return { kind: "same", limit: limitOf(row) };
    const updated = await run<LimitRow>(trx, update, content);
    return { kind: "updated", limit: limitOf(onlyRow(updated)) };
  });
}

function onlyRow([row]: readonly LimitRow[]): LimitRow {
  if (row === undefined) throw new Error("a limit that was written is not answered");
  return row;
}

/**
 * Changes come one after the other, so that the revision says the last of them; and none while slots are granted, so
 * that from its answer on nobody is admitted by what was before.
 */
async function beginChange(trx: Db): Promise<void> {
  await lockAllLimits(trx);
  await run(trx, raise, []);
}

const raise = prepared(
  "raise_limit_revision",
  "update limit_revisions set revision = revision + 1",
);

const lock = prepared(
  "lock_limit",
  "select * from limits where tenant_id = $1 and limit_key = $2 for update",
);

const countOf = prepared(
  "count_limits",
  "select count(*)::integer as limits from limits where tenant_id = $1",
);

const insert = prepared(
  "insert_limit",
  `insert into limits (tenant_id, limit_key, slots, queue, max_queued, version)
  values ($1, $2, $3, $4, $5, 1)
  returning *`,
);

const update = prepared(
  "update_limit",
  `update limits set slots = $3, queue = $4, max_queued = $5, version = version + 1,
    updated_at = now()
  where tenant_id = $1 and limit_key = $2
  returning *`,
);

/** @param ifVersion The version that is to be there. @returns What was there before, in either case. */
export async function deleteLimit(
  db: Db,
  { tenantId, limitKey }: LimitRef,
  ifVersion?: number,
): Promise<{ readonly version: number; readonly deleted: boolean } | undefined> {
  return db.transaction().execute(async (trx) => {
    await beginChange(trx);
    const [row] = await run<LimitRow>(trx, lock, [tenantId, limitKey]);
    if (row === undefined) return undefined;
    const deleted = ifVersion === undefined || ifVersion === row.version;
    if (deleted) await run(trx, remove, [tenantId, limitKey]);
    return { version: row.version, deleted };
  });
}

const remove = prepared(
  "delete_limit",
  "delete from limits where tenant_id = $1 and limit_key = $2",
);

export async function getLimit(
  db: Db,
  { tenantId, limitKey }: LimitRef,
): Promise<StoredLimit | undefined> {
  const [row] = await run<LimitRow>(db, get, [tenantId, limitKey]);
  return row && limitOf(row);
}

const get = prepared("get_limit", "select * from limits where tenant_id = $1 and limit_key = $2");

/** As it is in force; version 0: it is that of a definition. */
export type ListedLimit = Pick<
  StoredLimit,
  "limitKey" | "slots" | "queue" | "maxQueued" | "version"
> & { readonly createdAt: Date | null; readonly updatedAt: Date | null };

/**
 * The tenant's own, in order of their keys, and those of the latest versions of its definitions.
 *
 * @throws BadCursorError
 */
export async function listLimits(
  db: Db,
  tenantId: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly items: readonly ListedLimit[]; readonly nextCursor: string | null }> {
  const [after = ""] = cursor === undefined ? [] : decodeCursor("limits", cursor, 1);
  const rows = await readPage(cursor, () => run<ListedRow>(db, list, [tenantId, after, limit + 1]));
  const items = rows.slice(0, limit).map((row) => ({
    limitKey: row.limit_key,
    slots: row.slots,
    queue: row.queue,
    maxQueued: row.max_queued,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }));
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last ? encodeCursor("limits", [last.limitKey]) : null };
}

const list = prepared(
  "list_limits",
  `select * from (
    select limit_key, slots, queue, max_queued, version, created_at, updated_at from limits
    where tenant_id = $1
    union all
    select 'type:' || d.id, (c.own->>'limit')::integer, coalesce(c.own->>'queue', 'PRIORITY'),
      (c.own->>'maxQueued')::integer, 0, null, null
    from (
      select distinct on (id) id, tenant_id, version from workflow_definitions
      where tenant_id in ($1, '${sharedTenant}')
      order by id, tenant_id = $1 desc, version desc) l
    join workflow_definitions d using (tenant_id, id, version)
    cross join lateral (select d.document->'concurrency' as own offset 0) c
    where c.own is not null and not exists (
      select from limits s where s.tenant_id = $1 and s.limit_key = 'type:' || d.id)) k
  where limit_key > $2
  order by limit_key limit $3`,
);

type ListedRow = Omit<LimitRow, "tenant_id" | "created_at" | "updated_at"> & {
  readonly created_at: Date | null;
  readonly updated_at: Date | null;
};

/**
 * All that there are, of all tenants.
 *
 * @param known Revision of those that the caller has.
 * @returns Undefined where those are still the ones.
 */
export async function loadLimits(
  db: Db,
  known: string | undefined,
): Promise<{ readonly revision: string; readonly limits: readonly StoredLimit[] } | undefined> {
  const rows = await run<
    LimitRow & { readonly revision: string; readonly tenant_id: string | null }
  >(db, load, [known ?? null]);
  const [first] = rows;
  if (first === undefined) return undefined;
  const limits = rows.filter(({ tenant_id: tenantId }) => tenantId !== null).map(limitOf);
  return { revision: first.revision, limits };
}

/** One row at least, where the revision is another: of one snapshot, so that they belong together. */
const load = prepared(
  "load_limits",
  `select r.revision::text as revision, l.* from limit_revisions r
  left join limits l on true
  where r.revision::text is distinct from $1`,
);

interface LimitRow {
  readonly tenant_id: string;
  readonly limit_key: string;
  readonly slots: number;
  readonly queue: QueueOrder;
  readonly max_queued: number | null;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

function limitOf(row: LimitRow): StoredLimit {
  return {
    tenantId: row.tenant_id,
    limitKey: row.limit_key,
    slots: row.slots,
    queue: row.queue,
    maxQueued: row.max_queued,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
