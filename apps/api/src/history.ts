import type { HistoryEntry, HistoryPage, HistoryQuery } from "@millrace/contract";
import { BadCursorError, readHistory } from "@millrace/store";
import type { Db, HistoryRow } from "@millrace/store";

const DEFAULT_LIMIT = 100;

/** Where a page ends: within a commit, which may have brought about several entries. */
export interface Place {
  /** The last version of which every entry has been shown. */
  readonly version: number;
  /** Entries of the next version that have been shown. */
  readonly shown: number;
  /** Number of the last entry shown. */
  readonly seq: number;
}

const BEGINNING: Place = { version: 0, shown: 0, seq: 0 };

/**
 * One page of the audit. The store has a row per commit; a caller sees its entries one by one,
 * numbered from 1.
 *
 * @throws BadCursorError
 */
export async function historyPage(
  db: Db,
  key: { readonly tenantId: string; readonly instanceId: string },
  { limit = DEFAULT_LIMIT, cursor }: HistoryQuery,
): Promise<HistoryPage> {
  const start = cursor === undefined ? BEGINNING : placeOf(cursor);
  // A commit has one entry at least, but for the few that tell nothing; one more says whether it ends.
  const rows = await readHistory(db, key, start.version, limit + 1);
  return pageOfRows(rows, limit, start);
}

/** @param rows One more than `limit`, where there are so many, from where `start` left off. */
export function pageOfRows(
  rows: readonly HistoryRow[],
  limit: number,
  start: Place = BEGINNING,
): HistoryPage {
  const items: HistoryEntry[] = [];
  let place = start;
  for (const row of rows) {
    const entries = row.entries.slice(place.shown);
    const taken = entries.slice(0, limit - items.length);
    items.push(...taken.map((entry, index) => entryOf(row, entry, place.seq + index + 1)));
    const seq = place.seq + taken.length;
    if (taken.length < entries.length) {
      return { items, nextCursor: cursorOf({ ...place, shown: place.shown + taken.length, seq }) };
    }
    place = { version: row.version, shown: 0, seq };
  }
  return { items, nextCursor: rows.length > limit ? cursorOf(place) : null };
}

function entryOf(
  row: HistoryRow,
  { type, stepId, path, iteration, actor, data }: HistoryRow["entries"][number],
  seq: number,
): HistoryEntry {
  return {
    seq,
    version: row.version,
    at: row.at.toISOString(),
    type,
    stepId: stepId ?? null,
    ...(path !== undefined && { path }),
    ...(iteration !== undefined && { iteration }),
    actor: actor ?? row.actor,
    data: data ?? null,
  };
}

export function cursorOf({ version, shown, seq }: Place): string {
  return Buffer.from(`h.${version}.${shown}.${seq}`).toString("base64url");
}

/** @throws BadCursorError */
export function placeOf(cursor: string): Place {
  const text = Buffer.from(cursor, "base64url").toString();
  const [, version, shown, seq] = /^h\.(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/.exec(text) ?? [];
  if (seq === undefined) throw new BadCursorError("the cursor was not given out by this API");
  return { version: Number(version), shown: Number(shown), seq: Number(seq) };
}
