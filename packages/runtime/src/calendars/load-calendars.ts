import { compileCalendar } from "@millrace/engine";
import type { Calendar } from "@millrace/engine";
import { loadCalendars as loadStored } from "@millrace/store";
import type { Db } from "@millrace/store";

/** Calendars as they are now, compiled. Those that a process has are kept while they stay as they are. */

/** The latest used. */
const mostCalendars = 100;

interface KeptCalendar {
  readonly stamp: string;
  readonly calendar: Calendar;
}

const kept = new Map<string, KeptCalendar>();

/** By id; null where there is none. */
export async function loadCalendars(
  db: Db,
  tenantId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Calendar | null>> {
  const found = new Map<string, Calendar | null>(ids.map((id) => [id, null]));
  if (ids.length === 0) return found;
  const known = new Map(ids.map((id) => [id, kept.get(`${tenantId}/${id}`)]));
  const stamps = new Map([...known].flatMap(([id, each]) => (each ? [[id, each.stamp]] : [])));
  for (const { id, stamp, calendar: stored } of await loadStored(db, tenantId, ids, stamps)) {
    const calendar = stored
      ? compileCalendar(stored.document, stored.version, stored.holidays)
      : known.get(id)?.calendar;
    if (calendar === undefined) continue;
    found.set(id, calendar);
    keep(`${tenantId}/${id}`, { stamp, calendar });
  }
  return found;
}

function keep(name: string, calendar: KeptCalendar): void {
  kept.delete(name);
  kept.set(name, calendar);
  const [oldest] = kept.keys();
  if (kept.size > mostCalendars && oldest !== undefined) kept.delete(oldest);
}
