import type { Snapshot } from "@millrace/engine";
import { limitSetOf } from "../limit-key.ts";
import type { Draft } from "./draft.ts";
import { isWritten, ownedSource } from "./parameters.ts";
import type { From, Parameters } from "./parameters.ts";

/**
 * What a commit writes of the instance's place under its limits: none of this where
 * there is no limit. It has one row for all of them, which names them. The row is its own alone, and admission waits for none that it holds, so that
 * commits wait for it a moment at most.
 */
export interface SlotChange {
  /** "put": the row is there from then on, whatever was there before. */
  readonly kind: "put" | "hold" | "giveUp" | "reorder";
  readonly limitKey: string;
  readonly status: "WANTED" | "HELD";
  readonly request: number;
  readonly hasRun: boolean;
  readonly priority: number;
  /** Since when it has its place in the queue; null: from now on. */
  readonly wantedAt: Date | null;
  /** When it was put at the head; null: it was not. */
  readonly promotedAt: Date | null;
  /** Of a first commit; an instance that exists has its own. */
  readonly deadline: Date | null;
}

export function slotChangesOf({
  previous,
  decision,
  create,
  at,
}: Draft["commit"]): readonly SlotChange[] {
  const { snapshot, commands } = decision;
  const isMended = commands.some(({ kind }) => kind === "placeSlot");
  if (!isMended && previous.slot === null && snapshot.slot === null) return none;
  const { slotRequests: request, priority, slot } = snapshot;
  const since = snapshot.slotWantedAt === null ? at : new Date(snapshot.slotWantedAt);
  const kinds = isMended ? [mendingOf(snapshot)] : changesOf(previous, snapshot);
  return kinds.map((kind) => {
    const isLeft = kind === "giveUp" && !isMended;
    return {
      kind,
      limitKey: limitSetOf(isLeft ? previous : snapshot),
      status: slot ?? "WANTED",
      request,
      hasRun: snapshot.status !== "CREATED",
      priority,
      wantedAt: since < at ? since : null,
      promotedAt: snapshot.slotPromotedAt === null ? null : new Date(snapshot.slotPromotedAt),
      deadline: create?.deadline ?? null,
    };
  });
}

function mendingOf({ slot }: Snapshot): SlotChange["kind"] {
  return slot === null ? "giveUp" : "put";
}

function changesOf(before: Snapshot, after: Snapshot): readonly SlotChange["kind"][] {
  if (after.slot === null) return ["giveUp"];
  if (before.slot === null) return ["put"];
  // The row that names other limits is another one.
  if (limitSetOf(before) !== limitSetOf(after)) return ["giveUp", "put"];
  // Within one decision it may have asked and not have been answered: nobody could have granted it.
  if (before.slotRequests !== after.slotRequests) return ["put"];
  if (before.slot !== after.slot) return [after.slot === "WANTED" ? "put" : "hold"];
  const isInPlace =
    before.priority === after.priority && before.slotPromotedAt === after.slotPromotedAt;
  return isInPlace ? [] : ["reorder"];
}

const none: readonly SlotChange[] = [];

export function slotWrites(parameters: Parameters): () => readonly string[] {
  const rowsOf = (kind: SlotChange["kind"]) => (draft: Draft) =>
    draft.slots.length === 0 ? none : draft.slots.filter((change) => change.kind === kind);
  const puts = parameters.addRows(whole, rowsOf("put"));
  const holds = parameters.addRows(taken, rowsOf("hold"));
  const givesUp = parameters.addRows(places, rowsOf("giveUp"));
  const reorders = parameters.addRows(ordered, rowsOf("reorder"));
  return () => [
    ...(puts === undefined ? [] : [putSlots(puts)]),
    ...(holds === undefined ? [] : [holdSlots(holds)]),
    ...(givesUp === undefined ? [] : [deleteSlots(givesUp)]),
    ...(reorders === undefined ? [] : [reorderSlots(reorders)]),
  ];
}

/** Where it has given its slot up and asks for one again in a single commit, the row is there. */
function putSlots(from: From): string {
  return `put_slots as (
    insert into limit_slots (
      tenant_id, limit_key, instance_id, status, request, has_run, priority, deadline, wanted_at,
      promoted_at)
    select ${from.tenantId}, x.limit_key, ${from.instanceId}, x.status, x.request, x.has_run, x.priority,
      coalesce(x.deadline, (select i.deadline from workflow_instances i
        where i.tenant_id = ${from.tenantId} and i.id = ${from.instanceId})),
      coalesce(x.wanted_at, statement_timestamp()), coalesce(x.promoted_at, '-infinity')
    from ${from("x")}
    where ${isWritten}
    on conflict (tenant_id, limit_key, instance_id) do update
    set status = excluded.status, request = excluded.request, has_run = excluded.has_run,
      priority = excluded.priority, deadline = excluded.deadline, wanted_at = excluded.wanted_at,
      promoted_at = excluded.promoted_at, granted_at = null, look_at = null)`;
}

const place = {
  limit_key: { type: "text", of: ({ limitKey }: SlotChange) => limitKey },
} as const;

const request = {
  request: { type: "integer", of: (change: SlotChange) => change.request },
} as const;

const priority = {
  priority: { type: "integer", of: (change: SlotChange) => change.priority },
} as const;

const promotion = {
  promoted_at: { type: "timestamptz", of: ({ promotedAt }: SlotChange) => promotedAt },
} as const;

const whole = ownedSource<SlotChange>({
  ...place,
  status: { type: "text", of: ({ status }) => status },
  ...request,
  ...priority,
  ...promotion,
  has_run: { type: "boolean", of: ({ hasRun }) => hasRun },
  deadline: { type: "timestamptz", of: ({ deadline }) => deadline },
  wanted_at: { type: "timestamptz", of: ({ wantedAt }) => wantedAt },
});

/** It takes note of what was granted. */
function holdSlots(from: From): string {
  return `holding as (
    update limit_slots l set status = 'HELD', look_at = null from ${from("x")}
    where ${isWritten} and ${sameSlot(from)} and l.request = x.request)`;
}

const taken = ownedSource<SlotChange>({ ...place, ...request });

function deleteSlots(from: From): string {
  return `given_up as (
    delete from limit_slots l using ${from("x")} where ${isWritten} and ${sameSlot(from)})`;
}

const places = ownedSource<SlotChange>(place);

function reorderSlots(from: From): string {
  return `reordered as (
    update limit_slots l set priority = x.priority,
      promoted_at = coalesce(x.promoted_at, '-infinity') from ${from("x")}
    where ${isWritten} and ${sameSlot(from)})`;
}

const ordered = ownedSource<SlotChange>({ ...place, ...priority, ...promotion });

function sameSlot({ tenantId, instanceId }: From): string {
  return `l.tenant_id = ${tenantId} and l.limit_key = x.limit_key and l.instance_id = ${instanceId}`;
}
