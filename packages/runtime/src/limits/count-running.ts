import { tenantsOfInstances, uncounted } from "@millrace/store";
import type { LimitsSet } from "@millrace/store";
import { advance } from "../advance.ts";
import { InstanceNotFoundError } from "../errors.ts";
import { perform } from "../perform.ts";
import { each } from "../scheduler/kind.ts";
import type { Services } from "../services.ts";

const atOnce = 100;

/**
 * Has all that run under limits which were set after they began counted: each takes note of its limits, and goes on
 * with a slot, be there more of them then than the limit allows. Those that wait or are queued take note of them with
 * their next change.
 */
export async function countRunning(services: Services): Promise<void> {
  const { database, limits } = services;
  const tenants = limits.tenants();
  if (tenants.length === 0) return;
  for (const tenant of tenants) await countOf(services, tenant);
  if (!limits.hasGlobal) return;
  const seen = new Set(tenants.map(({ tenantId }) => tenantId));
  for (const tenantId of await tenantsOfInstances(database.db)) {
    if (seen.has(tenantId)) continue;
    const none = { isTenant: false, workflowIds: [], userIds: [] };
    await countOf(services, { tenantId, isGlobal: true, ...none });
  }
}

/**
 * All that there are, whatever becomes of some of them meanwhile: one that has ended, or has taken note by itself,
 * takes none now, and one that nobody can decide about never does.
 */
async function countOf(services: Services, limits: LimitsSet): Promise<void> {
  const seen: string[] = [];
  for (;;) {
    const found = await uncounted(services.database.db, limits, seen, atOnce);
    await each(services, found, async (key) => {
      try {
        const advanced = await advance(services, key, {
          actor: "admission",
          cause: "admission",
          alsoLimits: true,
          signals: () => [],
        });
        if (advanced.kind !== "committed") return false;
        await perform(services, advanced.commit);
        return true;
      } catch (error) {
        if (error instanceof InstanceNotFoundError) return false;
        throw error;
      }
    });
    if (found.length < atOnce) return;
    seen.push(...found.map(({ instanceId }) => instanceId));
  }
}
