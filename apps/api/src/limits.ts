import { DEFAULT_PAGE_SIZE, type LimitKind, type LimitView } from "@millrace/contract";
import {
  definedLimit,
  deleteLimit,
  globalLimit,
  limitRefOf,
  type LimitUse,
  limitUses,
  LimitNotFoundError,
  putLimit,
  type Services,
} from "@millrace/runtime";
import {
  getLimit,
  listLimits,
  type ListedLimit,
  shownLimit,
  userOfLimit,
  workflowOfLimit,
} from "@millrace/store";
import type { Caller, Runtime } from "./runtime.ts";

export function limitsOf(
  services: Services,
): Pick<Runtime, "putLimit" | "readLimit" | "listLimits" | "deleteLimit"> {
  const { db } = services.database;

  async function viewOf(tenantId: string, limit: ListedLimit): Promise<LimitView> {
    const { limitKey } = limit;
    const useOf = await limitUses(services, tenantId, limitKey === globalLimit.limitKey);
    return limitView(limit, useOf(limitKey));
  }

  return {
    async putLimit(caller, id, { limit: slots, queue, maxQueued }, ifMatch) {
      const saved = await putLimit(services, caller, id, { slots, queue, maxQueued }, ifMatch);
      return { limit: await viewOf(caller.tenantId, saved.limit), created: saved.created };
    },
    async readLimit(caller, id) {
      const limit = limitRefOf(caller, id);
      const stored = (await getLimit(db, limit)) ?? (await definedBy(services, caller, id));
      if (stored === undefined) throw new LimitNotFoundError(id);
      return viewOf(caller.tenantId, stored);
    },
    async listLimits({ tenantId }, { limit = DEFAULT_PAGE_SIZE, cursor }) {
      const { items, nextCursor } = await listLimits(db, tenantId, { limit, cursor });
      const isGlobal = items.some(({ limitKey }) => limitKey === globalLimit.limitKey);
      const useOf = await limitUses(services, tenantId, isGlobal);
      return { items: items.map((item) => limitView(item, useOf(item.limitKey))), nextCursor };
    },
    deleteLimit: (caller, id, ifMatch) => deleteLimit(services, caller, id, ifMatch),
  };
}

async function definedBy(
  services: Services,
  { tenantId }: Caller,
  id: string,
): Promise<ListedLimit | undefined> {
  const workflowId = workflowOfLimit(id);
  if (workflowId === undefined) return undefined;
  const defined = await definedLimit(services, tenantId, workflowId);
  if (defined === undefined) return undefined;
  const { slots, queue, maxQueued = null } = defined;
  const common = { version: 0, createdAt: null, updatedAt: null };
  return { limitKey: id, slots, queue, maxQueued, ...common };
}

function limitView(
  { limitKey, slots: limit, queue, maxQueued, version, createdAt, updatedAt }: ListedLimit,
  { taken, queued }: LimitUse,
): LimitView {
  return {
    id: shownLimit(limitKey),
    kind: kindOf(limitKey),
    workflowId: workflowOfLimit(limitKey) ?? null,
    userId: userOfLimit(limitKey) ?? null,
    source: version === 0 ? "DEFINITION" : "SET",
    limit,
    queue,
    maxQueued,
    usage: { held: taken, queued },
    version,
    createdAt: createdAt?.toISOString() ?? null,
    updatedAt: updatedAt?.toISOString() ?? null,
  };
}

function kindOf(limitKey: string): LimitKind {
  if (limitKey === globalLimit.limitKey) return "GLOBAL";
  if (workflowOfLimit(limitKey) !== undefined) return "TYPE";
  return userOfLimit(limitKey) === undefined ? "TENANT" : "USER";
}
