import type { Draft } from "./draft.ts";
import { isWritten, ownedSource, placeColumns, samePlace } from "./parameters.ts";
import type { From } from "./parameters.ts";

/** A timer that is set again starts anew, whoever was about to fire it. */
export function setTimers(from: From): string {
  return `timed as (
    insert into timers (tenant_id, instance_id, path, iteration, kind, attempt, due_at, look_at)
    select ${from.tenantId}, ${from.instanceId}, x.path, x.iteration, x.kind, x.attempt, x.due_at,
      case when x.held then 'infinity' else x.due_at end
    from ${from("x")}
    where ${isWritten}
    on conflict (tenant_id, instance_id, path, iteration, kind) do update
    set attempt = excluded.attempt, due_at = excluded.due_at, look_at = excluded.look_at)`;
}

export const timerInserts = ownedSource<Draft["sets"][number]>({
  ...placeColumns,
  kind: { type: "text", of: ({ timer }) => timer },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  due_at: { type: "timestamptz", of: ({ dueAt }) => dueAt },
  held: { type: "boolean", of: ({ held }) => held },
});

export function clearTimers(from: From): string {
  return `cleared as (
    delete from timers t using ${from("x")}
    where ${isWritten} and ${samePlace("t", from)} and t.kind = x.kind)`;
}

export const timerPlaces = ownedSource<Draft["clears"][number]>({
  ...placeColumns,
  kind: { type: "text", of: ({ timer }) => timer },
});

export function holdTimers(from: From): string {
  return `held_timers as (
    update timers t set look_at = case when x.held then 'infinity' else t.due_at end
    from ${from("x")}
    where ${isWritten} and ${samePlace("t", from)} and t.kind = x.kind)`;
}

export const heldTimers = ownedSource<Draft["heldTimers"][number]>({
  ...placeColumns,
  kind: { type: "text", of: ({ timer }) => timer },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});
