import type { HistoryEntry } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { BadCursorError } from "./errors.ts";
import { keyName, keySource } from "./load.ts";
import { overRows, prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/**
 * Commits as those read them who follow instances: one instance by its versions, all of them by their
 * transactions. Of all, only what lies below the oldest transaction that is still under way is read, so
 * that nobody passes over a row that commits later (DESIGN, Streams).
 */
export interface Change {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly correlationId: string | null;
  readonly version: number;
  readonly at: Date;
  readonly actor: string;
  /** After the commit; of one by an earlier release: as it is now. */
  readonly status: string;
  readonly entries: readonly HistoryEntry[];
}

/** Where somebody stands who follows all instances: behind `shown` entries of this row, and all before it. */
export interface ChangePlace {
  readonly tx: string;
  readonly seq: number;
  /** Undefined: behind all of them. */
  readonly shown?: number | undefined;
}

export interface PlacedChange extends Change {
  readonly tx: string;
  readonly seq: number;
  /** By the database's clock, to the microsecond; of one by an earlier release: `at`. */
  readonly writtenAt: string;
}

export interface ChangePage {
  readonly changes: readonly PlacedChange[];
  /** More is committed, which may be read once transactions that began before it have ended. */
  readonly isHeldBack: boolean;
}

/** Commits of all tenants from a place on, in the order in which all who follow see them. */
export async function readChanges(
  db: Db,
  { tx, seq, shown }: ChangePlace,
  limit: number,
): Promise<ChangePage> {
  const from = shown === undefined ? seq + 1 : seq;
  const rows = await run<PlacedRow>(db, changesFrom, [tx, from, limit]);
  return {
    changes: rows.flatMap((row) =>
      row.tx === null
        ? []
        : [{ ...changeOf(row), tx: row.tx, seq: row.seq, writtenAt: row.written }],
    ),
    isHeldBack: rows[0]?.is_held_back === true,
  };
}

/** Before whatever is not readable now. */
export async function lastPlace(db: Db): Promise<ChangePlace> {
  const [row] = await run<{ tx: string }>(db, nowPlace, []);
  return { tx: row?.tx ?? "0", seq: 0 };
}

/** @throws BadCursorError The place is ahead of this database, which may have been restored. */
export async function checkPlace(db: Db, { tx }: ChangePlace): Promise<void> {
  const [row] = await run<{ is_ahead: boolean }>(db, isAhead, [tx]);
  if (row?.is_ahead === true) throw new BadCursorError("the place is ahead of this database");
}

/** Commits of one instance after a version. */
export interface ChangesOfInstance extends Key {
  readonly afterVersion: number;
}

/**
 * For each that asks, at most so many commits, oldest first. Those who ask the same have one list: many may
 * follow one instance, and its commits may be large.
 */
export async function readChangesOf(
  db: Db,
  asked: readonly ChangesOfInstance[],
  limit: number,
): Promise<readonly (readonly Change[])[]> {
  const lists = new Map<string, Change[]>();
  const different: (ChangesOfInstance & { readonly ix: number; readonly limit: number })[] = [];
  const inOrder: Change[][] = [];
  for (const each of asked) {
    const name = `${keyName(each)}/${each.afterVersion}`;
    if (lists.has(name)) continue;
    const list: Change[] = [];
    lists.set(name, list);
    different.push({ ...each, ix: inOrder.push(list) - 1, limit });
  }
  const [text, values] = changesOf(different);
  for (const row of await run<ChangeRow & { readonly ix: number }>(db, text, values)) {
    inOrder[row.ix]?.push(changeOf(row));
  }
  return asked.map((each) => lists.get(`${keyName(each)}/${each.afterVersion}`) ?? []);
}

/** How far an instance has come, without its state. */
export interface Progress {
  readonly version: number;
  readonly status: string;
  readonly isSettled: boolean;
}

/** In the order of the keys; undefined where there is no instance. */
export async function progressOf(
  db: Db,
  keys: readonly Key[],
): Promise<readonly (Progress | undefined)[]> {
  const rows = await run<ProgressRow>(db, ...progress(keys));
  const found = new Map(
    rows.map(({ tenant_id: tenantId, id: instanceId, version, status, is_settled: isSettled }) => [
      keyName({ tenantId, instanceId }),
      { version, status, isSettled },
    ]),
  );
  return keys.map((key) => found.get(keyName(key)));
}

interface ProgressRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly version: number;
  readonly status: string;
  readonly is_settled: boolean;
}

interface ChangeRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly correlation_id: string | null;
  readonly version: number;
  readonly at: Date;
  readonly actor: string;
  readonly status: string;
  readonly entries: string;
}

type PlacedRow = ChangeRow & {
  readonly tx: string | null;
  readonly seq: number;
  readonly written: string;
  readonly is_held_back: boolean;
};

function changeOf(row: ChangeRow): Change {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    correlationId: row.correlation_id,
    version: row.version,
    at: row.at,
    actor: row.actor,
    status: row.status,
    entries: JSON.parse(row.entries) as readonly HistoryEntry[],
  };
}

const columns = `h.tenant_id, h.instance_id, i.workflow_id, i.workflow_version, i.correlation_id,
    h.version, h.at, h.actor, coalesce(h.status, i.status) as status, h.entries`;

/** Plan: `history_by_tx` from the place on, then each instance by its key. */
const changesFrom = prepared(
  "read_changes",
  `with page as materialized (
    select tx, seq, tenant_id, instance_id, version, at, written_at, actor, status, entries
    from history h
    where h.tx >= $1::xid8 and (h.tx > $1::xid8 or h.seq >= $2::bigint)
      and h.tx < pg_snapshot_xmin(pg_current_snapshot())
    order by h.tx, h.seq
    limit $3),
  held as (
    select exists (
      select from history where tx >= pg_snapshot_xmin(pg_current_snapshot())
        -- What a restored database has from another server waits for no transaction of this one.
        and tx < pg_snapshot_xmax(pg_current_snapshot())) as is_held_back)
  select held.is_held_back, h.tx::text, h.seq, coalesce(h.written_at, h.at)::text as written,
    ${columns}
  from held
  left join page h on true
  left join workflow_instances i on i.tenant_id = h.tenant_id and i.id = h.instance_id
  order by h.tx, h.seq`,
);

const nowPlace = prepared(
  "changes_place",
  "select pg_snapshot_xmin(pg_current_snapshot())::text as tx",
);

const isAhead = prepared(
  "changes_ahead",
  "select $1::xid8 > pg_snapshot_xmax(pg_current_snapshot()) as is_ahead",
);

const askedSource = rowSource<ChangesOfInstance & { readonly ix: number; readonly limit: number }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  after: { type: "integer", of: ({ afterVersion }) => afterVersion },
  most: { type: "integer", of: ({ limit }) => limit },
});

/** Plan: each instance's commits by their key. */
const changesOf = overRows(
  "read_changes_of",
  askedSource,
  (from) => `select x.ix, ${columns}
  from ${from("x")}
  join workflow_instances i on i.tenant_id = x.tenant_id and i.id = x.instance_id
  cross join lateral (
    select tenant_id, instance_id, version, at, actor, status, entries from history h
    where h.tenant_id = x.tenant_id and h.instance_id = x.instance_id and h.version > x.after
    order by h.version
    limit x.most) h
  order by x.ix, h.version`,
);

const progress = overRows(
  "read_progress",
  keySource,
  (from) => `select i.tenant_id, i.id, i.version, i.status,
    i.completed_at is not null as is_settled
  from ${from("x")}
  join workflow_instances i on i.tenant_id = x.tenant_id and i.id = x.instance_id`,
);
