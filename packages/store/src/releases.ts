import { storedEventColumns, storedEventOf } from "./events.ts";
import type { StoredEvent, StoredEventRow } from "./events.ts";
import type { Key } from "./commit.ts";
import { inParts } from "./parts.ts";
import type { RowPlace, Placed } from "./parts.ts";
import { prepared, run, type Db } from "./statement.ts";

/**
 * Events that took a wait and came to nothing, since it was closed meanwhile: of `deliver: "ONE"`, and
 * all that came in beside the end of their instance. The commit that closes the wait writes a row;
 * whoever has handed the event on, and has taken away what it left, deletes it.
 */
export interface Release extends Key {
  readonly eventId: string;
  /** To the microsecond: which taking of the event has come to nothing. */
  readonly takenAt: string;
}

export async function releasesOf(
  db: Db,
  { tenantId, instanceId }: Key,
): Promise<readonly Release[]> {
  return (await run<ReleaseRow>(db, ofInstance, [tenantId, instanceId])).map(releaseOf);
}

/** Those that nobody came to hand on. */
export async function releasesLeft(
  db: Db,
  olderMs: number,
  limit: number,
  after?: RowPlace,
): Promise<readonly (Release & Placed & { readonly releasedAt: Date })[]> {
  const values = [olderMs, limit, ...leftInParts.values(after)];
  const rows = await run<ReleaseRow & Placed & { released_at: Date }>(db, left, values);
  return rows.map((row) => ({
    ...releaseOf(row),
    releasedAt: row.released_at,
    place: row.place,
  }));
}

interface ReleaseRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly event_id: string;
  readonly taken: string;
}

function releaseOf(row: ReleaseRow): Release {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    eventId: row.event_id,
    takenAt: row.taken,
  };
}

const columns = "tenant_id, instance_id, event_id, taken_at::text as taken";

const ofInstance = prepared(
  "releases_of",
  `select ${columns} from event_releases where tenant_id = $1 and instance_id = $2
  order by taken_at`,
);

const leftInParts = inParts(
  {
    released_at: "timestamptz",
    tenant_id: "text",
    instance_id: "uuid",
    event_id: "text",
    taken_at: "timestamptz",
  },
  3,
);

const left = prepared(
  "releases_left",
  `select ${columns}, released_at, ${leftInParts.place} from event_releases
  where released_at < statement_timestamp() - $1::bigint * interval '1 ms'
    and ${leftInParts.behind}
  order by ${leftInParts.order}
  limit $2`,
);

/**
 * Takes back an event from the instance that could not use it.
 *
 * @returns The event, if nobody has it now. Undefined: somebody has handed it on before.
 */
export async function takeBack(
  db: Db,
  { tenantId, instanceId, eventId, takenAt }: Release,
): Promise<StoredEvent | undefined> {
  const rows = await run<StoredEventRow>(db, back, [tenantId, eventId, instanceId, takenAt]);
  return rows[0] && storedEventOf(rows[0]);
}

/** Without a time where a process of an earlier release has taken it. */
const back = prepared(
  "take_back",
  `update events e set taken_by = null, taken_at = null
  where e.tenant_id = $1 and e.id = $2 and (e.taken_by is null
    or (e.taken_by = $3 and coalesce(e.taken_at, $4::timestamptz) = $4::timestamptz))
  returning ${storedEventColumns}`,
);

export async function forgetRelease(
  db: Db,
  { tenantId, instanceId, eventId, takenAt }: Release,
): Promise<void> {
  await run(db, forget, [tenantId, instanceId, eventId, takenAt]);
}

const forget = prepared(
  "forget_release",
  `delete from event_releases
  where tenant_id = $1 and instance_id = $2 and event_id = $3 and taken_at = $4::timestamptz`,
);
