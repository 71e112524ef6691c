import type { Draft } from "./draft.ts";
import { isWritten, ownedSource, placeColumns, samePlace } from "./parameters.ts";
import type { Columns, From } from "./parameters.ts";

/**
 * `opened_at` is the time of this statement, not of its transaction: one that waited for the
 * instance's row began before events that came while it waited, and did not have this wait open then.
 */
export function openWaits(from: From, emitting: boolean): string {
  const openedAt = emitting ? momentBefore("2 * x.emits_after") : "statement_timestamp()";
  return `opened as (
    insert into waits (
      tenant_id, instance_id, path, iteration, step_id, purpose, pattern, event_paths, key_hash,
      deliver, opened_at, lookback_from, looked_back, held)
    select ${from.tenantId}, ${from.instanceId}, x.path, x.iteration, x.step_id, x.purpose, x.pattern,
      x.event_paths, x.key_hash, x.deliver, ${openedAt}, x.lookback_from,
      x.lookback_from is null, x.held is not null
    from ${from("x")}
    where ${isWritten}
    on conflict (tenant_id, instance_id, path, iteration) do update
    set step_id = excluded.step_id, purpose = excluded.purpose, pattern = excluded.pattern,
      event_paths = excluded.event_paths, key_hash = excluded.key_hash,
      deliver = excluded.deliver, opened_at = excluded.opened_at,
      lookback_from = excluded.lookback_from, looked_back = excluded.looked_back,
      held = excluded.held, matched_event_id = null, matched_at = null)`;
}

/**
 * Waits that a commit opens hear the events that it emits after them, and not those before: they are
 * set apart by microseconds, which is all that an order of time needs.
 */
function momentBefore(microseconds: string): string {
  return `statement_timestamp() - (${microseconds}) * interval '1 microsecond'`;
}

/** Its row is the promise that it is matched. */
export function emitEvents(from: From): string {
  return `emitted as (
    insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor)
    select ${from.tenantId}, x.id, x.pattern, x.payload, ${from.at},
      ${momentBefore("2 * x.emits_after + 1")}, 'instance:' || ${from.instanceId}
    from ${from("x")}
    where ${isWritten}
    on conflict do nothing)`;
}

export const eventInserts = ownedSource<Draft["emits"][number]>({
  id: { type: "text", of: ({ event }) => event.id },
  pattern: { type: "text", of: ({ event }) => event.pattern },
  payload: { type: "jsonb", of: ({ payload }) => payload },
  emits_after: { type: "integer", of: ({ after }) => after },
});

const waitColumns: Columns<Draft["opens"][number]> = {
  path: { type: "text", of: ({ wait }) => wait.path },
  iteration: { type: "integer", of: ({ wait }) => wait.iteration },
  step_id: { type: "text", of: ({ wait }) => wait.stepId },
  purpose: { type: "text", of: ({ wait }) => wait.purpose },
  pattern: { type: "text", of: ({ wait }) => wait.pattern },
  event_paths: { type: "text", of: ({ eventPaths }) => eventPaths },
  key_hash: { type: "bigint", of: ({ keyHash }) => keyHash },
  deliver: { type: "text", of: ({ wait }) => wait.deliver },
  lookback_from: { type: "timestamptz", of: ({ wait }) => wait.lookbackFrom },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
};

export const waitInserts = ownedSource<Draft["opens"][number]>(waitColumns);

export const waitInsertsAmongEvents = ownedSource<Draft["opens"][number]>({
  ...waitColumns,
  emits_after: { type: "integer", of: ({ emitsAfter }) => emitsAfter },
});

export function rekeyWaits(from: From): string {
  return `rekeyed as (
    update waits w set key_hash = x.key_hash,
      held = case when w.matched_event_id is null then coalesce(x.held, w.held) else w.held end
    from ${from("x")}
    where ${isWritten} and ${samePlace("w", from)})`;
}

export const waitKeys = ownedSource<Draft["rekeys"][number]>({
  ...placeColumns,
  key_hash: { type: "bigint", of: ({ keyHash }) => keyHash },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

/** One that an event has taken stays as it was then: that says whether the pause came first. */
export function holdWaits(from: From): string {
  return `held_waits as (
    update waits w set held = x.held from ${from("x")}
    where ${isWritten} and ${samePlace("w", from)} and w.matched_event_id is null)`;
}

export const heldWaits = ownedSource<Draft["heldWaits"][number]>({
  ...placeColumns,
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

export const places = ownedSource<Draft["closes"][number]>({
  ...placeColumns,
});

export function closeWaits(from: From, isReleasing: boolean): string {
  return `closed as (
    delete from waits w using ${from("x")}
    where ${isWritten} and ${samePlace("w", from)}
    ${isReleasing ? `returning ${whatTook("w")}` : ""})`;
}

const whatTook = (alias: string) =>
  ["tenant_id", "instance_id", "path", "iteration", "matched_event_id", "matched_at"]
    .map((column) => `${alias}.${column}`)
    .join(", ");

/**
 * Events that were for one wait alone, and whose wait goes without having used them. As the deletion
 * finds the wait and not as it was when the statement began: it may have been taken in between. The
 * event itself is not touched here: those who take it lock it before the wait.
 */
export function releaseEvents(from: From, closes: unknown, settles: unknown): string {
  const gone = [closes && "select * from closed", settles && "select * from settled_waits"];
  return `released as (
    insert into event_releases (tenant_id, instance_id, event_id, taken_at, released_at)
    select w.tenant_id, w.instance_id, w.matched_event_id, w.matched_at, statement_timestamp()
    from ${from("x")}
    join (${gone.filter(Boolean).join(" union all ")}) w on ${samePlace("w", from)}
    where w.matched_event_id is not null
    on conflict do nothing)`;
}

/**
 * Waits that were taken while the commit that settles their instance was under way: \`v\` is the wait as it
 * was when the statement began, which also is as late as \`settled_event_deliveries\` sees.
 */
export function releaseLate(from: From): string {
  return `released_late as (
    insert into event_releases (tenant_id, instance_id, event_id, taken_at, released_at)
    select w.tenant_id, w.instance_id, w.matched_event_id, w.matched_at, statement_timestamp()
    from ${from("x")}
    join settled_waits w on w.tenant_id = ${from.tenantId} and w.instance_id = ${from.instanceId}
    cross join lateral (
      select v.matched_event_id from waits v
      where v.tenant_id = w.tenant_id and v.instance_id = w.instance_id
        and v.path = w.path and v.iteration = w.iteration
      -- Looked up row by row: joined, all that wait may be read for it.
      offset 0) v
    where w.matched_event_id is not null and v.matched_event_id is null
    on conflict do nothing)`;
}

/** Nothing waits for an instance that has settled. @param isReleasing Whether what took its waits is asked for. */
export function settle(from: From, isReleasing: boolean): readonly string[] {
  const settled = (table: string, returning = "") => `settled_${table} as (
    delete from ${table} t using ${from("x")}
    where ${isWritten} and t.tenant_id = ${from.tenantId} and t.instance_id = ${from.instanceId}
    ${returning})`;
  return [
    settled("waits", isReleasing ? `returning ${whatTook("t")}` : ""),
    settled("timers"),
    settled("event_deliveries"),
  ];
}

export const settled = ownedSource<undefined>({});
