import { deleteLimit as deleteStored, limitKeyOf, mostLimits, saveLimit } from "@millrace/store";
import type { LimitRef, NewLimit, StoredLimit } from "@millrace/store";
import {
  GlobalLimitError,
  LimitChangedError,
  LimitNotFoundError,
  TooManyLimitsError,
} from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { globalLimit, globalTenant } from "./limit-cache.ts";

export type LimitBody = Pick<NewLimit, "slots" | "queue" | "maxQueued">;

/**
 * Sets a limit, from now on: what runs already goes on, and is counted.
 *
 * @param id As `type:order`.
 * @param ifMatch The version that the caller has read.
 * @throws GlobalLimitError, LimitChangedError, TooManyLimitsError
 */
export async function putLimit(
  services: Services,
  caller: Caller,
  id: string,
  body: LimitBody,
  ifMatch?: number,
): Promise<{ readonly limit: StoredLimit; readonly created: boolean }> {
  const { db } = services.database;
  const saved = await saveLimit(db, { ...limitRefOf(caller, id), ...body }, ifMatch);
  if (saved.kind === "unexpected") throw new LimitChangedError(id, saved.version);
  if (saved.kind === "tooMany") throw new TooManyLimitsError(mostLimits);
  const { kind, limit } = saved;
  if (kind !== "same") {
    const { actor } = caller;
    services.log.info({ limit: id, slots: limit.slots, version: limit.version, actor }, kind);
    await announce(services);
  }
  return { limit, created: kind === "created" };
}

/**
 * Whoever waits for it alone is admitted; a workflow goes back to what its definition says.
 *
 * @throws GlobalLimitError, LimitNotFoundError, LimitChangedError
 */
export async function deleteLimit(
  services: Services,
  caller: Caller,
  id: string,
  ifMatch?: number,
): Promise<void> {
  const { db } = services.database;
  const before = await deleteStored(db, limitRefOf(caller, id), ifMatch);
  if (before === undefined) throw new LimitNotFoundError(id);
  if (!before.deleted) throw new LimitChangedError(id, before.version);
  services.log.info({ limit: id, actor: caller.actor }, "limit deleted");
  await announce(services);
}

/** @throws GlobalLimitError */
export function limitRefOf({ tenantId }: Caller, id: string): LimitRef {
  if (id !== globalLimit.limitKey) return { tenantId, limitKey: limitKeyOf(id) };
  if (tenantId !== globalTenant) throw new GlobalLimitError();
  return globalLimit;
}

/** What is committed stands, whether or not anybody hears of it. */
async function announce({ limits, database, queue, log }: Services): Promise<void> {
  await limits.reload(database.db).catch((error: unknown) => {
    log.debug({ err: error }, "limits are read again later");
  });
  queue.wake.publish("limit", {});
  queue.wake.publish("slot", {});
}
