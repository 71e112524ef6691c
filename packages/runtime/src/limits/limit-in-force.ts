import { limitName, limitsOfSet, setsInUse, workflowOfLimit } from "@millrace/store";
import type { LimitRef, LimitSetRef, LimitSetUse } from "@millrace/store";
import type { QueueOrder } from "@millrace/engine";
import { WorkflowNotFoundError } from "../errors.ts";
import type { Services } from "../services.ts";
import { globalLimit } from "./limit-cache.ts";

/** A limit as it is now. */
export interface LimitInForce {
  readonly slots: number;
  readonly queue: QueueOrder;
  /** Undefined: any number may be queued. */
  readonly maxQueued: number | undefined;
}

/** As many as Postgres counts: those that were queued before the limit was taken away go on. */
const unlimited: LimitInForce = { slots: 2_147_483_647, queue: "PRIORITY", maxQueued: undefined };

/**
 * What was set for it, else, for a workflow, what the latest version of its definition says, whichever version the
 * instances are bound to.
 */
export async function limitOf(
  { definitions, limits }: Pick<Services, "definitions" | "limits">,
  limit: LimitRef,
): Promise<LimitInForce> {
  const set = limits.get(limit.limitKey === globalLimit.limitKey ? globalLimit : limit);
  if (set !== undefined) {
    return { slots: set.slots, queue: set.queue, maxQueued: set.maxQueued ?? undefined };
  }
  const workflowId = workflowOfLimit(limit.limitKey);
  if (workflowId === undefined) return unlimited;
  return (await definedLimit({ definitions }, limit.tenantId, workflowId)) ?? unlimited;
}

/** Undefined: its definition sets none. */
export async function definedLimit(
  { definitions }: Pick<Services, "definitions">,
  tenantId: string,
  workflowId: string,
): Promise<LimitInForce | undefined> {
  try {
    const { definition } = await definitions.latest(tenantId, workflowId);
    if (definition.concurrency === undefined) return undefined;
    const { limit: slots, queue, maxQueued } = definition.concurrency;
    return { slots, queue, maxQueued };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** All limits of these sets, by `limitName`. */
export async function limitsOf(
  services: Pick<Services, "definitions" | "limits">,
  sets: readonly LimitSetRef[],
): Promise<ReadonlyMap<string, LimitInForce>> {
  const refs = new Map<string, LimitRef>();
  for (const { tenantId, limitSet } of sets) {
    for (const limitKey of limitsOfSet(limitSet)) {
      refs.set(limitName(tenantId, limitKey), { tenantId, limitKey });
    }
  }
  const entries = [...refs].map(
    async ([name, ref]) => [name, await limitOf(services, ref)] as const,
  );
  return new Map(await Promise.all(entries));
}

/** What is taken of a limit, and by whom. */
export interface LimitUse {
  readonly taken: number;
  readonly queued: number;
  /** Sets of limits that it is one of. */
  readonly sets: readonly LimitSetUse[];
}

/**
 * Of the limits of a tenant, by their keys.
 *
 * @param isGlobal Also of the global one, which means to count all tenants.
 */
export async function limitUses(
  { database: { db } }: Pick<Services, "database">,
  tenantId: string,
  isGlobal: boolean,
): Promise<(limitKey: string) => LimitUse> {
  const all = await setsInUse(db, isGlobal ? undefined : tenantId);
  return (limitKey) => {
    const isOfAll = limitKey === globalLimit.limitKey;
    const sets = all.filter(
      (set) =>
        (isOfAll || set.tenantId === tenantId) && limitsOfSet(set.limitSet).includes(limitKey),
    );
    return {
      taken: sets.reduce((sum, { taken }) => sum + taken, 0),
      queued: sets.reduce((sum, { queued }) => sum + queued, 0),
      sets,
    };
  };
}
