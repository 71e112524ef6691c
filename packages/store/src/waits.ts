import type { Snapshot } from "@millrace/engine";
import type { StoredEvent } from "./events.ts";
import { instanceColumns, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { prepared, run, type Db } from "./statement.ts";
import { sharedTenant } from "./tenants.ts";
import { rowSource, textArray } from "./unnest.ts";

/**
 * The waits that an event satisfies. Publisher and wait may each see the other, so that a wait may be
 * found twice: it is taken by a compare-and-set.
 *
 * A wait hears what is received while it is open: `opened_at <= received_at`, both by the database's
 * clock and to the microsecond, so they are compared here and never pass through a `Date`. With a
 * lookback it also hears what came before, unless the instance has had that event before the wait
 * opened. The event that started an instance is never delivered to it.
 *
 * A wait of a paused instance hears what was received before it would have been timed out, were it not
 * for the pause. Whoever of pause and match commits second sees the first, on the wait's row.
 */

/** A pattern that is listened to, and by which event paths those that do are keyed. */
export interface ListenerShape {
  readonly pattern: string;
  /** Paths below the event joined by dots, the paths by spaces; empty for those that are not keyed. */
  readonly eventPaths: string;
}

export interface ListenerShapes {
  readonly waits: readonly ListenerShape[];
  /** Start triggers. */
  readonly starts: readonly ListenerShape[];
}

export async function listenerShapes(
  db: Db,
  tenantId: string,
  patterns: readonly string[],
): Promise<ListenerShapes> {
  const rows = await run<ShapeRow>(db, shapes, [tenantId, textArray(patterns)]);
  const shapesOf = (of: boolean) =>
    rows
      .filter(({ starts }) => starts === of)
      .map(({ pattern, event_paths: eventPaths }) => ({ pattern, eventPaths }));
  return { waits: shapesOf(false), starts: shapesOf(true) };
}

interface ShapeRow {
  readonly pattern: string;
  readonly event_paths: string;
  readonly starts: boolean;
}

const shapes = prepared(
  "listener_shapes",
  `select pattern, event_paths, false as starts from wait_shapes
  where tenant_id = $1 and pattern = any ($2::text[])
  union all
  select distinct pattern, event_paths, true from start_shapes
  where tenant_id in ($1, '${sharedTenant}') and pattern = any ($2::text[])`,
);

/** What to look up: the event's values at these paths, hashed (`keyHashOf`). */
export interface WaitProbe {
  readonly pattern: string;
  readonly eventPaths: string;
  readonly keyHash: string;
}

/** A wait as it is told apart, with what must not have changed when it is taken. */
export interface WaitRef {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly keyHash: string | null;
}

/** A wait that an event may satisfy: its whole condition is still to be evaluated. */
export interface WaitCandidate extends WaitRef {
  readonly stepId: string | null;
  readonly purpose: "STEP" | "CANCEL";
  readonly deliver: "ALL" | "ONE";
  /** Whether it has looked for events that came before it; one without a lookback has nothing to look for. */
  readonly lookedBack: boolean;
  /** When it opened, to the microsecond: where the next page begins. */
  readonly openedAt: string;
  readonly snapshot: Snapshot;
}

export interface WaitSearch {
  readonly event: StoredEvent;
  readonly probes: readonly WaitProbe[];
  /** Both when absent. */
  readonly purpose?: "STEP" | "CANCEL";
  /** The last one of the page before. */
  readonly after?: WaitCandidate | undefined;
  readonly limit: number;
}

/**
 * Open waits that an event may satisfy, the one that has waited longest first.
 *
 * Plan: for each probe one descent of `waits_open`, which is in this order and stops after
 * `limit`; so an event costs what it may match, however many others wait.
 */
export async function findWaits(db: Db, search: WaitSearch): Promise<readonly WaitCandidate[]> {
  const { event, probes, purpose, after, limit } = search;
  if (probes.length === 0) return [];
  const rows = await run<CandidateRow>(db, find, [
    event.tenantId,
    event.id,
    purpose ?? null,
    limit,
    after?.openedAt ?? "-infinity",
    after?.instanceId ?? nilUuid,
    after?.path ?? "",
    after?.iteration ?? 0,
    ...probeSource.values(probes.map((probe) => ({ tenantId: event.tenantId, probe }))),
  ]);
  return rows.map(candidateOf);
}

export function candidateOf(row: CandidateRow): WaitCandidate {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    path: row.path,
    iteration: row.iteration,
    keyHash: row.hash,
    stepId: row.step_id,
    purpose: row.purpose as WaitCandidate["purpose"],
    deliver: row.deliver as WaitCandidate["deliver"],
    lookedBack: row.looked_back,
    openedAt: row.opened,
    snapshot: snapshotOf(row),
  };
}

const nilUuid = "00000000-0000-0000-0000-000000000000";

/**
 * With the tenant in each row, and not as a constant of the statement. Against a constant the planner
 * of a young database, which takes every table for tiny, looks up waits and instances by the tenant
 * alone and so reads all of them: 500 blocks an event among 1,000 waiters. For the same reason
 * `offset 0` keeps a look-up by the whole key from being merged into the query around it.
 */
const probeSource = rowSource<{ readonly tenantId: string; readonly probe: WaitProbe }>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  pattern: { type: "text", of: ({ probe }) => probe.pattern },
  event_paths: { type: "text", of: ({ probe }) => probe.eventPaths },
  key_hash: { type: "bigint", of: ({ probe }) => probe.keyHash },
});

export interface WaitRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly hash: string | null;
}

export interface CandidateRow extends WaitRow, InstanceRow {
  readonly step_id: string | null;
  readonly purpose: string;
  readonly deliver: string;
  readonly looked_back: boolean;
  readonly opened: string;
}

export function waitRefOf(row: WaitRow): WaitRef {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    path: row.path,
    iteration: row.iteration,
    keyHash: row.hash,
  };
}

/** Whether an instance has had an event before a wait of it opened; one that was for it alone says so itself. */
export const hasHadEvent = `(exists (
        select from event_deliveries d
        where d.tenant_id = w.tenant_id and d.instance_id = w.instance_id
          and d.event_id = e.id and d.delivered_at < w.opened_at)
        or coalesce(e.taken_by = w.instance_id and e.taken_at < w.opened_at, false))`;

/**
 * Whether the time of a wait that a pause holds was over when the event `e` came, by its own clock or that
 * of what it is in. Nothing is looked up for a wait that is not held.
 */
const isOverdue = `(w.held and exists (
        select from timers t
        where t.tenant_id = w.tenant_id and t.instance_id = w.instance_id
          and t.kind in ('wait', 'total', 'timeout') and t.due_at <= e.received_at
          and (t.path in ('', split_part(w.path, '|', 1))
            or starts_with(w.path, t.path || '.') or starts_with(w.path, t.path || '['))))`;

/** Whether an open wait hears the event `e`, its condition apart. */
export const hears = `w.matched_event_id is null
      and (w.opened_at <= e.received_at
        or (w.lookback_from <= e.received_at and not ${hasHadEvent}))
      and not ${isOverdue}`;

/** For `select`, from `candidates`. */
export const candidateColumns = `w.tenant_id, w.instance_id, w.path, w.iteration,
      w.key_hash::text as hash, w.step_id, w.purpose, w.deliver, w.looked_back, w.opened_at,
      w.opened_at::text as opened, ${instanceColumns}`;

/** Waits with their instances. */
export const candidates = `waits w
    cross join lateral (
      select * from workflow_instances i
      where i.tenant_id = w.tenant_id and i.id = w.instance_id
      offset 0) i`;

const find = prepared(
  "find_waits",
  `select w.*
  from events e
  cross join ${probeSource.from("k", 9)}
  cross join lateral (
    select ${candidateColumns} from ${candidates}
    where w.tenant_id = k.tenant_id and w.pattern = k.pattern and w.event_paths = k.event_paths
      and w.key_hash = k.key_hash and ($3::text is null or w.purpose = $3) and ${hears}
      and i.start_event_id is distinct from e.id
      and w.opened_at >= $5::timestamptz
      and (w.opened_at, w.instance_id, w.path, w.iteration) >
        ($5::timestamptz, $6::uuid, $7::text, $8::integer)
    order by w.opened_at, w.instance_id, w.path, w.iteration
    limit $4) w
  where e.tenant_id = $1 and e.id = $2
  order by w.opened_at, w.instance_id, w.path, w.iteration
  limit $4`,
);

/**
 * Gives an event to waits, and returns those that got it. Each is taken by compare-and-set: no other
 * event has it, it hears this one, and its key is the one that was found.
 *
 * Waits that somebody else has locked are skipped at first, so that this cannot block with others in a
 * circle; those are then taken one by one, where waiting is safe. Either way each wait is decided upon
 * for good: what is not returned did not get the event.
 */
export async function markMatched<Wait extends WaitRef>(
  db: Db,
  event: StoredEvent,
  waits: readonly Wait[],
): Promise<readonly Wait[]> {
  const indexed = waits.map((wait, ix) => ({ ix, wait }));
  const won = new Set(await take(db, skipTaken, event, indexed));
  for (const each of indexed) {
    if (won.has(each.ix)) continue;
    for (const ix of await take(db, waitTaken, event, [each])) won.add(ix);
  }
  return waits.filter((_wait, ix) => won.has(ix));
}

type IndexedWait = { readonly ix: number; readonly wait: WaitRef };

async function take(
  db: Db,
  text: string,
  event: StoredEvent,
  waits: readonly IndexedWait[],
): Promise<readonly number[]> {
  if (waits.length === 0) return [];
  const values = [event.tenantId, event.id, ...refSource.values(waits)];
  return (await run<{ ix: number }>(db, text, values)).map(({ ix }) => ix);
}

/** With the tenant in each row: see `probeSource`. */
const refSource = rowSource<IndexedWait>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ wait }) => wait.tenantId },
  instance_id: { type: "uuid", of: ({ wait }) => wait.instanceId },
  path: { type: "text", of: ({ wait }) => wait.path },
  iteration: { type: "integer", of: ({ wait }) => wait.iteration },
  key_hash: { type: "bigint", of: ({ wait }) => wait.keyHash },
});

const takeStatement = (lock: string, eventLock = "", alsoTaking = "") => `with e as materialized (
    select tenant_id, id, received_at, taken_by, taken_at from events
    where tenant_id = $1 and id = $2 ${eventLock}),
  open as materialized (
    select x.ix, x.tenant_id, x.instance_id, x.path, x.iteration
    from e
    cross join (
      select * from ${refSource.from("x", 3)} order by instance_id, path, iteration) x
    cross join lateral (
      select * from waits w
      where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
        and w.path = x.path and w.iteration = x.iteration
        -- The event comes first: where it is locked, it is locked before the wait.
        and e.id is not null
      offset 0
      for update ${lock}) w
    where ${hears} and w.key_hash is not distinct from x.key_hash),
  delivered as (
    insert into event_deliveries (tenant_id, instance_id, event_id, delivered_at)
    select distinct $1, instance_id, $2, statement_timestamp() from open order by instance_id
    on conflict do nothing)${alsoTaking}
  update waits w
  set matched_event_id = $2, matched_at = statement_timestamp()
  from open x
  where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
    and w.path = x.path and w.iteration = x.iteration
  returning x.ix`;

/**
 * Gives a past event to a wait that looks back. Where the event's publisher is still looking, this is
 * what it would have found in a moment, so that it belongs into the publisher's count. The event is
 * locked before the wait, as `takeOne` does.
 */
export async function matchPast(db: Db, event: StoredEvent, wait: WaitRef): Promise<boolean> {
  return (await take(db, pastTaken, event, [{ ix: 0, wait }])).length > 0;
}

const skipTaken = prepared("match_waits", takeStatement("skip locked"));
const waitTaken = prepared("match_wait", takeStatement(""));
const pastTaken = prepared(
  "match_past",
  takeStatement(
    "",
    "for update",
    `,
  counted as (
    update events e set delivered = e.delivered + 1 from open x
    where e.tenant_id = $1 and e.id = $2 and e.matched_at is null
      -- A wait for several events, of which it is more than one, is one wait.
      and not exists (
        select from waits w
        where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
          and w.iteration = x.iteration and w.matched_event_id = $2
          and split_part(w.path, '|', 1) = split_part(x.path, '|', 1)))`,
  ),
);

/**
 * Gives an event to one wait that wants it for itself (`deliver: "ONE"`), unless another instance has
 * it already. The event's row is locked first, so that of several waits one gets it. That it has been
 * delivered is in the event's row alone, so that it can be taken back (releases.ts).
 */
export async function takeOne(db: Db, event: StoredEvent, wait: WaitRef): Promise<boolean> {
  const { instanceId, path, iteration, keyHash } = wait;
  const rows = await run<{ ok: boolean }>(db, takeAlone, [
    event.tenantId,
    event.id,
    instanceId,
    path,
    iteration,
    keyHash,
  ]);
  return rows.length > 0;
}

const takeAlone = prepared(
  "take_one",
  `with e as materialized (
    select tenant_id, id, received_at, taken_by, taken_at from events
    where tenant_id = $1 and id = $2 and taken_by is null
    for update),
  open as materialized (
    select w.instance_id
    from e
    join waits w on w.tenant_id = $1 and w.instance_id = $3 and w.path = $4 and w.iteration = $5
    where ${hears} and w.key_hash is not distinct from $6::bigint
    for update of w),
  taken as (
    update events set taken_by = open.instance_id, taken_at = statement_timestamp()
    from open where tenant_id = $1 and id = $2)
  update waits w
  set matched_event_id = $2, matched_at = statement_timestamp()
  from open
  where w.tenant_id = $1 and w.instance_id = $3 and w.path = $4 and w.iteration = $5
  returning true as ok`,
);
