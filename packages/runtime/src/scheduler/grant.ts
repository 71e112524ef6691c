import { grantSlots } from "@millrace/store";
import type { Grant, LimitSetRef } from "@millrace/store";
import { advance } from "../advance.ts";
import { InstanceNotFoundError } from "../errors.ts";
import { limitsOf } from "../limits/limit-in-force.ts";
import { perform } from "../perform.ts";
import type { Services } from "../services.ts";

/**
 * Gives away slots that are free, a batch of them, and tells those that got them.
 *
 * @param tenantId Undefined: of all tenants, some of whose instances have the global limit.
 * @param sets Those for which somebody waits.
 * @returns Whether there may be more.
 */
export async function grantFree(
  services: Services,
  tenantId: string | undefined,
  sets: readonly LimitSetRef[],
): Promise<boolean> {
  const { revision } = services.limits;
  // Before the lock: whoever has it must not need another connection.
  const limits = await limitsOf(services, sets);
  const limitOf = (name: string) => {
    const limit = limits.get(name);
    return limit && { limit: limit.slots, queue: limit.queue };
  };
  const granted = await grantSlots(services.database.db, { tenantId, sets, limitOf, revision });
  if (granted === undefined) return true;
  await Promise.all(granted.grants.map((grant) => tryToTell(services, grant)));
  return granted.hasMore;
}

/** What is granted stays granted: the reconciler tells those that could not be told now. */
async function tryToTell(services: Services, grant: Grant): Promise<void> {
  try {
    await tellGranted(services, grant);
  } catch (error) {
    const { instanceId } = grant;
    services.log.warn({ err: error, instanceId }, "not told of its slot; it is tried again");
  }
}

/**
 * Tells an instance that it has the slot it has asked for. One that does not want it any more has given
 * it up by the commit that made it so.
 *
 * @returns False where there was nobody to tell.
 */
export async function tellGranted(services: Services, grant: Grant): Promise<boolean> {
  const { tenantId, instanceId, request, wantedAt, grantedAt } = grant;
  try {
    const advanced = await advance(
      services,
      { tenantId, instanceId },
      { actor: "admission", cause: "admission", signals: () => [{ kind: "admitted", request }] },
    );
    if (advanced.kind !== "committed") return false;
    const workflow = advanced.before.workflowId;
    const waitedMs = grantedAt.getTime() - wantedAt.getTime();
    services.metrics.admissionWait.observe({ workflow }, Math.max(0, waitedMs) / 1_000);
    await perform(services, advanced.commit);
    return true;
  } catch (error) {
    if (error instanceof InstanceNotFoundError) return false;
    throw error;
  }
}
