import { storedEventColumns, storedEventOf } from "./events.ts";
import type { StoredEvent, StoredEventRow } from "./events.ts";
import { likeOf, regexOf } from "./lookbacks.ts";
import { prepared, run, type Db } from "./statement.ts";

/** Events of a prefix that are looked at where a pattern has wildcards. */
const mostOfPrefix = 2_000;

/**
 * The last events of a pattern, the latest first, whether or not a wait heard them.
 *
 * Plan: `events_pattern` backwards as far as the page; for a pattern with wildcards a bounded part of
 * what begins alike.
 */
export async function recentEvents(
  db: Db,
  tenantId: string,
  pattern: string,
  limit: number,
): Promise<readonly StoredEvent[]> {
  const rows = pattern.includes("*")
    ? await run<StoredEventRow>(db, ofPattern, [
        tenantId,
        likeOf(pattern),
        regexOf(pattern),
        mostOfPrefix,
        limit,
      ])
    : await run<StoredEventRow>(db, ofName, [tenantId, pattern, limit]);
  return rows.map(storedEventOf);
}

const ofName = prepared(
  "recent_events",
  `select ${storedEventColumns} from events e
  where e.tenant_id = $1 and e.pattern = $2
  order by e.received_at desc, e.id desc
  limit $3`,
);

const ofPattern = prepared(
  "recent_events_like",
  `select ${storedEventColumns} from (
    select * from events e
    where e.tenant_id = $1 and e.pattern like $2 and e.pattern ~ $3
    limit $4) e
  order by e.received_at desc, e.id desc
  limit $5`,
);
