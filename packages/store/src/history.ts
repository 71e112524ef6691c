import type { Changes, HistoryEntry, StoredSignal } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { prepared, run, type Db } from "./statement.ts";

/** One commit of an instance. */
export interface HistoryRow {
  readonly version: number;
  readonly at: Date;
  readonly engineRev: number;
  readonly actor: string;
  readonly signals: readonly StoredSignal[];
  readonly changes: Changes;
  readonly entries: readonly HistoryEntry[];
  readonly seq: number;
}

/** @param afterVersion 0 for the beginning. */
export async function readHistory(
  db: Db,
  key: Key,
  afterVersion: number,
  limit: number,
): Promise<readonly HistoryRow[]> {
  const values = [key.tenantId, key.instanceId, afterVersion, limit];
  const rows = await run<StoredRow>(db, read, values);
  return rows.map((row) => ({
    version: row.version,
    at: row.at,
    engineRev: row.engine_rev,
    actor: row.actor,
    signals: listIn(row.signals) as readonly StoredSignal[],
    changes: (isObject(JSON.parse(row.changes)) ? JSON.parse(row.changes) : {}) as Changes,
    entries: listIn(row.entries) as readonly HistoryEntry[],
    seq: row.seq,
  }));
}

/** What else stands there is for the consistency check to tell of; all other rows are read without it. */
function listIn(text: string): readonly object[] {
  const list: unknown = JSON.parse(text);
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

interface StoredRow {
  readonly version: number;
  readonly at: Date;
  readonly engine_rev: number;
  readonly actor: string;
  readonly signals: string;
  readonly changes: string;
  readonly entries: string;
  readonly seq: number;
}

const read = prepared(
  "read_history",
  `select version, at, engine_rev, actor, signals, changes, entries, seq from history
  where tenant_id = $1 and instance_id = $2 and version > $3
  order by version
  limit $4`,
);
