import type { EventCounts, EventSummary, StoredEvent } from "./events.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";
import { candidateColumns, candidateOf, candidates, hears, markMatched } from "./waits.ts";
import type { CandidateRow, WaitCandidate, WaitProbe, WaitRef } from "./waits.ts";

/**
 * What events that are published at the same moment do together: the same statements as for one
 * (`findWaits`, `markMatched`), over rows of many, and the last. Each event and each wait still stands
 * alone. A statement costs more by its round trip and its commit than by one more row.
 */

export interface EventSearch {
  readonly event: StoredEvent;
  readonly probes: readonly WaitProbe[];
}

/**
 * The first `limit` waits of both purposes for each event, the one that has waited longest first.
 *
 * Plan: as for one event, one descent of `waits_open` for each probe.
 */
export async function findWaitsTogether(
  db: Db,
  searches: readonly EventSearch[],
  limit: number,
): Promise<readonly (readonly WaitCandidate[])[]> {
  const found = searches.map((): WaitCandidate[] => []);
  const probes = searches.flatMap(({ event, probes: of }, ix) =>
    of.map((probe) => ({ ix, event, probe })),
  );
  if (probes.length === 0) return found;
  const rows = await run<CandidateRow & { readonly ix: number }>(db, find, [
    limit,
    ...probeSource.values(probes),
  ]);
  for (const row of rows) {
    const page = found[row.ix];
    if (page !== undefined && page.length < limit) page.push(candidateOf(row));
  }
  return found;
}

interface Probe {
  readonly ix: number;
  readonly event: StoredEvent;
  readonly probe: WaitProbe;
}

const probeSource = rowSource<Probe>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ event }) => event.tenantId },
  event_id: { type: "text", of: ({ event }) => event.id },
  pattern: { type: "text", of: ({ probe }) => probe.pattern },
  event_paths: { type: "text", of: ({ probe }) => probe.eventPaths },
  key_hash: { type: "bigint", of: ({ probe }) => probe.keyHash },
});

const find = prepared(
  "find_waits_together",
  `select k.ix, w.*
  from ${probeSource.from("k", 2)}
  cross join lateral (
    select * from events e where e.tenant_id = k.tenant_id and e.id = k.event_id offset 0) e
  cross join lateral (
    select ${candidateColumns} from ${candidates}
    where w.tenant_id = k.tenant_id and w.pattern = k.pattern and w.event_paths = k.event_paths
      and w.key_hash = k.key_hash and ${hears}
      and i.start_event_id is distinct from e.id
    order by w.opened_at, w.instance_id, w.path, w.iteration
    limit $1) w
  order by k.ix, w.opened_at, w.instance_id, w.path, w.iteration`,
);

export interface Match {
  readonly event: StoredEvent;
  readonly wait: WaitRef;
}

/**
 * Gives events to waits, each wait named at most once, and says which of them got theirs. As in
 * `markMatched`, what somebody else has locked is skipped and then taken alone, where waiting is safe.
 */
export async function markMatchedTogether(
  db: Db,
  matches: readonly Match[],
): Promise<readonly boolean[]> {
  const indexed = matches.map((match, ix) => ({ ix, match }));
  const rows = await run<{ ix: number }>(db, take, matchSource.values(indexed));
  const won = new Set(rows.map(({ ix }) => ix));
  for (const { ix, match } of indexed) {
    if (won.has(ix)) continue;
    if ((await markMatched(db, match.event, [match.wait])).length > 0) won.add(ix);
  }
  return indexed.map(({ ix }) => won.has(ix));
}

const matchSource = rowSource<{ readonly ix: number; readonly match: Match }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ match }) => match.wait.tenantId },
  event_id: { type: "text", of: ({ match }) => match.event.id },
  instance_id: { type: "uuid", of: ({ match }) => match.wait.instanceId },
  path: { type: "text", of: ({ match }) => match.wait.path },
  iteration: { type: "integer", of: ({ match }) => match.wait.iteration },
  key_hash: { type: "bigint", of: ({ match }) => match.wait.keyHash },
});

const take = prepared(
  "match_waits_together",
  `with open as materialized (
    select x.ix, x.tenant_id, x.event_id, x.instance_id, x.path, x.iteration
    from (
      select * from ${matchSource.from("x", 1)}
      order by tenant_id, instance_id, path, iteration) x
    cross join lateral (
      select * from events e where e.tenant_id = x.tenant_id and e.id = x.event_id offset 0) e
    cross join lateral (
      select * from waits w
      where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
        and w.path = x.path and w.iteration = x.iteration
      offset 0
      for update skip locked) w
    where ${hears} and w.key_hash is not distinct from x.key_hash),
  delivered as (
    insert into event_deliveries (tenant_id, instance_id, event_id, delivered_at)
    select distinct tenant_id, instance_id, event_id, statement_timestamp() from open
    order by tenant_id, instance_id, event_id
    on conflict do nothing)
  update waits w
  set matched_event_id = x.event_id, matched_at = statement_timestamp()
  from open x
  where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
    and w.path = x.path and w.iteration = x.iteration
  returning x.ix`,
);

/**
 * Notes that events, each named once, have been matched, and adds what was found to what others have
 * found: waits that looked back meanwhile, and the reconciler where it took the publisher for dead.
 * Both of those find the same instances started, so that these are not added up. Rows are locked in
 * one order.
 *
 * @returns All that each event has matched so far; undefined where there is no such event.
 */
export async function settleEvents(
  db: Db,
  summaries: readonly EventSummary[],
): Promise<readonly (EventCounts | undefined)[]> {
  const indexed = summaries.map((summary, ix) => ({ ix, summary }));
  const rows = await run<EventCounts & { readonly ix: number }>(
    db,
    settle,
    summarySource.values(indexed),
  );
  const counts = new Map(rows.map(({ ix, ...of }) => [ix, of]));
  return indexed.map(({ ix }) => counts.get(ix));
}

const summarySource = rowSource<{ readonly ix: number; readonly summary: EventSummary }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ summary }) => summary.tenantId },
  id: { type: "text", of: ({ summary }) => summary.id },
  delivered: { type: "integer", of: ({ summary }) => summary.delivered },
  cancelled: { type: "integer", of: ({ summary }) => summary.cancelled },
  started: { type: "integer", of: ({ summary }) => summary.started },
});

const settle = prepared(
  "settle_events",
  `with mine as materialized (
    select x.*
    from (select * from ${summarySource.from("x", 1)} order by tenant_id, id) x
    cross join lateral (
      select 1 from events e where e.tenant_id = x.tenant_id and e.id = x.id
      offset 0 for update) e)
  update events e
  set matched_at = coalesce(e.matched_at, statement_timestamp()),
    delivered = e.delivered + x.delivered, cancelled = e.cancelled + x.cancelled,
    started = greatest(e.started, x.started), starts_done = true
  from mine x
  where e.tenant_id = x.tenant_id and e.id = x.id
  returning x.ix, e.delivered, e.cancelled, e.started`,
);

/** An event, and the one wait that it may satisfy. */
export interface Delivery extends Match {
  readonly wait: WaitRef & Pick<WaitCandidate, "purpose">;
  /** Instances that it has started. */
  readonly started: number;
}

export interface Delivered {
  /** Whether the wait got the event. */
  readonly isTaken: boolean;
  /** As of `settleEvents`. */
  readonly counts: EventCounts | undefined;
}

/**
 * `markMatchedTogether` and `settleEvents` at once, for events that each have one wait alone to go to, and waits that
 * are named once: a commit less for each.
 *
 * It waits for nobody. The event is locked, then the wait; where somebody else has one of them neither is touched,
 * and both are seen to by themselves, one after the other.
 */
export async function deliverTogether(
  db: Db,
  deliveries: readonly Delivery[],
): Promise<readonly Delivered[]> {
  const indexed = deliveries.map((delivery, ix) => ({ ix, delivery }));
  const rows = await run<EventCounts & { readonly ix: number; readonly is_taken: boolean }>(
    db,
    deliver,
    deliverySource.values(indexed),
  );
  const delivered = new Map<number, Delivered>();
  for (const { ix, is_taken: isTaken, ...counts } of rows) delivered.set(ix, { isTaken, counts });
  for (const { ix, delivery } of indexed) {
    if (!delivered.has(ix)) delivered.set(ix, await deliverAlone(db, delivery));
  }
  return indexed.map(({ ix }) => delivered.get(ix) as Delivered);
}

async function deliverAlone(db: Db, { event, wait, started }: Delivery): Promise<Delivered> {
  const isTaken = (await markMatched(db, event, [wait])).length > 0;
  const { tenantId, id } = event;
  const found = isTaken ? 1 : 0;
  const [delivered, cancelled] = wait.purpose === "STEP" ? [found, 0] : [0, found];
  const [counts] = await settleEvents(db, [{ tenantId, id, delivered, cancelled, started }]);
  return { isTaken, counts };
}

const deliverySource = rowSource<{ readonly ix: number; readonly delivery: Delivery }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ delivery }) => delivery.wait.tenantId },
  event_id: { type: "text", of: ({ delivery }) => delivery.event.id },
  instance_id: { type: "uuid", of: ({ delivery }) => delivery.wait.instanceId },
  path: { type: "text", of: ({ delivery }) => delivery.wait.path },
  iteration: { type: "integer", of: ({ delivery }) => delivery.wait.iteration },
  key_hash: { type: "bigint", of: ({ delivery }) => delivery.wait.keyHash },
  is_step: { type: "boolean", of: ({ delivery }) => delivery.wait.purpose === "STEP" },
  started: { type: "integer", of: ({ delivery }) => delivery.started },
});

/** Of an event that is named twice one row is noted, and only what is noted is taken. */
const deliver = prepared(
  "deliver_together",
  `with open as materialized (
    select x.*,
      coalesce(${hears} and w.key_hash is not distinct from x.key_hash, false) as is_taken
    from (
      select * from ${deliverySource.from("x", 1)}
      order by tenant_id, instance_id, path, iteration) x
    cross join lateral (
      select tenant_id, id, received_at, taken_by, taken_at from events e
      where e.tenant_id = x.tenant_id and e.id = x.event_id
      offset 0
      for update skip locked) e
    cross join lateral (
      select * from waits w
      where w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
        and w.path = x.path and w.iteration = x.iteration
        and e.id is not null
      offset 0
      for update skip locked) w),
  noted as (
    update events e
    set matched_at = coalesce(e.matched_at, statement_timestamp()),
      delivered = e.delivered + (x.is_taken and x.is_step)::integer,
      cancelled = e.cancelled + (x.is_taken and not x.is_step)::integer,
      started = greatest(e.started, x.started), starts_done = true
    from open x
    where e.tenant_id = x.tenant_id and e.id = x.event_id
    returning x.*, e.delivered, e.cancelled, e.started as all_started),
  recorded as (
    insert into event_deliveries (tenant_id, instance_id, event_id, delivered_at)
    select tenant_id, instance_id, event_id, statement_timestamp() from noted where is_taken
    order by tenant_id, instance_id, event_id
    on conflict do nothing),
  taken as (
    update waits w
    set matched_event_id = x.event_id, matched_at = statement_timestamp()
    from noted x
    where x.is_taken and w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
      and w.path = x.path and w.iteration = x.iteration)
  select ix, is_taken, delivered, cancelled, all_started as started from noted`,
);
