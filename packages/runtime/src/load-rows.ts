import { executionKey, mergeReads, noReads } from "@millrace/engine";
import type { ReadRequest, Reads } from "@millrace/engine";
import { loadReads } from "@millrace/store";
import type { Db, Json, Key } from "@millrace/store";
import { loadCalendars } from "./calendars/load-calendars.ts";

/**
 * What a decision asks for: rows, and calendars. The items of a MAP are kept: each of its steps reads them, they may
 * be a megabyte, and they never change.
 */

/** MAPs whose items a process keeps, the latest used. */
const mostMaps = 50;

const itemsOfMaps = new Map<string, Json>();

export async function loadRows(db: Db, key: Key, requests: readonly ReadRequest[]): Promise<Reads> {
  const ids = requests.flatMap((request) =>
    request.kind === "calendar" ? request.calendarId : [],
  );
  if (ids.length > 0) {
    const rest = requests.filter(({ kind }) => kind !== "calendar");
    const calendars = await loadCalendars(db, key.tenantId, ids);
    return { ...(await loadRows(db, key, rest)), calendars };
  }
  const kept = new Map<string, Json>();
  const missing = requests.filter((request) => {
    const items = request.kind === "input" ? itemsOfMaps.get(nameOf(key, request)) : undefined;
    if (request.kind === "input" && items !== undefined) {
      kept.set(executionKey(request.path, request.iteration), items);
      keep(nameOf(key, request), items);
    }
    return items === undefined;
  });
  const known = { ...noReads, inputs: kept };
  if (missing.length === 0) return known;
  const loaded = await loadReads(db, key, missing);
  for (const request of missing) {
    if (request.kind !== "input") continue;
    const items = loaded.inputs.get(executionKey(request.path, request.iteration));
    if (items !== undefined) keep(nameOf(key, request), items);
  }
  return mergeReads(known, loaded);
}

function nameOf(
  { tenantId, instanceId }: Key,
  { path, iteration }: { readonly path: string; readonly iteration: number },
): string {
  return `${tenantId}/${instanceId}/${executionKey(path, iteration)}`;
}

function keep(name: string, items: Json): void {
  itemsOfMaps.delete(name);
  itemsOfMaps.set(name, items);
  const [oldest] = itemsOfMaps.keys();
  if (itemsOfMaps.size > mostMaps && oldest !== undefined) itemsOfMaps.delete(oldest);
}
