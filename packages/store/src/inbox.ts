import type { EventFact } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { eventFactColumns, eventFactOf } from "./event-fact.ts";
import type { EventFactRow } from "./event-fact.ts";
import { keyName, keySource } from "./load.ts";
import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";

/** A wait that an event has taken, and whose instance has not moved on yet. */
export interface MatchedWait {
  readonly path: string;
  readonly iteration: number;
  readonly stepId: string | null;
  readonly purpose: "STEP" | "CANCEL";
  /** The instance was paused when the event took it. */
  readonly held: boolean;
  readonly event: EventFact;
}

interface MatchedRow extends EventFactRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly step_id: string | null;
  readonly purpose: string;
  readonly held: boolean;
}

/** In the order in which they were matched, but a cancel before everything else. */
export async function loadInbox(db: Db, key: Key): Promise<readonly MatchedWait[]> {
  return (await loadInboxes(db, [key])).get(keyName(key)) ?? [];
}

/** By `keyName`; an instance for which nothing waits is not in it. */
export async function loadInboxes(
  db: Db,
  keys: readonly Key[],
): Promise<ReadonlyMap<string, readonly MatchedWait[]>> {
  const found = new Map<string, MatchedWait[]>();
  for (const row of await run<MatchedRow>(db, inboxes, keySource.values(keys))) {
    const name = keyName({ tenantId: row.tenant_id, instanceId: row.instance_id });
    const waits = found.get(name) ?? [];
    found.set(name, waits);
    waits.push(matchedWaitOf(row));
  }
  return found;
}

function matchedWaitOf(row: MatchedRow): MatchedWait {
  return {
    path: row.path,
    iteration: row.iteration,
    stepId: row.step_id,
    purpose: row.purpose as MatchedWait["purpose"],
    held: row.held,
    event: eventFactOf(row),
  };
}

/** `offset 0` keeps this at one descent of the primary key an instance, whatever the estimates say. */
const inboxes = prepared(
  "load_inboxes",
  `select w.*, ${eventFactColumns}
  from (select distinct tenant_id, instance_id from ${keySource.from("k", 1)}) x
  cross join lateral (
    select w.tenant_id, w.instance_id, w.path, w.iteration, w.step_id, w.purpose,
      w.matched_event_id, w.matched_at, w.held
    from waits w
    where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
      and w.matched_event_id is not null
    offset 0) w
  join events e on e.tenant_id = w.tenant_id and e.id = w.matched_event_id
  order by w.purpose = 'CANCEL' desc, w.matched_at, w.path, w.iteration`,
);
