import { isGlobal, wantedSets } from "@millrace/store";
import type { LimitSetRef } from "@millrace/store";
import { countRunning } from "../limits/count-running.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { Services } from "../services.ts";
import { grantFree } from "./grant.ts";
import { each } from "./kind.ts";
import { straySlots } from "./kinds.ts";

/**
 * Admits instances as slots come free. Any number of schedulers may: a tenant's lock lets one of them
 * count and grant at a time. Whoever asks for a slot or gives one up says so after its commit; all
 * tenants are looked at every now and then, since such a word may be lost. Where limits were set, those that run
 * already are counted before anybody is admitted.
 */

/** Safety net for words that were lost. */
const longestSleepMs = 1_000;
const strayMs = 10_000;
/** For those that began while their process did not know of a limit yet. */
const countMs = 5_000;
/** Tenants that are looked at side by side: each takes a connection, and may wait for its lock. */
const atOnce = 4;

export function startAdmission(services: Services): Loop {
  const { limits } = services;
  const { db } = services.database;
  /** Tenants named since the last round; all of them at first, and where it is not known which. */
  let named = new Set<string>();
  let lookAtAllFrom = 0;
  let strayFrom = 0;
  let countFrom = 0;
  let countedAt: string | undefined;

  async function round(): Promise<number> {
    const now = performance.now();
    if (now >= strayFrom) {
      strayFrom = now + strayMs;
      await straySlots.sweep(services);
    }
    const asked = named;
    named = new Set();
    const all = now >= lookAtAllFrom;
    if (!all && asked.size === 0) return lookAtAllFrom - now;
    if (all) lookAtAllFrom = now + longestSleepMs;
    const wanted = await wantedSets(db);
    // After that: whoever waits for a limit began when it had been set.
    await limits.reload(db);
    if (limits.revision !== countedAt || now >= countFrom) {
      const { revision } = limits;
      await countRunning(services);
      countedAt = revision;
      countFrom = now + countMs;
    }
    await admit(wanted, (tenantId) => all || asked.has(tenantId));
    return named.size > 0 ? 0 : Math.max(0, lookAtAllFrom - performance.now());
  }

  /** A batch of each tenant in turn, so that a long queue does not hold up the others. */
  async function admit(
    sets: readonly LimitSetRef[],
    isAsked: (tenantId: string) => boolean,
  ): Promise<void> {
    // Under the global limit a slot of any tenant is one for each.
    const some = sets.some(isGlobal) ? sets : sets.filter(({ tenantId }) => isAsked(tenantId));
    const scopes = sets.some(isGlobal)
      ? [undefined]
      : [...new Set(some.map(({ tenantId }) => tenantId))];
    for (let from = 0; from < scopes.length; from += atOnce) {
      await each(services, scopes.slice(from, from + atOnce), async (tenantId) => {
        const own = some.filter((set) => tenantId === undefined || set.tenantId === tenantId);
        if (!(await grantFree(services, tenantId, own))) return;
        for (const set of own) named.add(set.tenantId);
      });
    }
  }

  const loop = startLoop(
    { name: "admission", log: services.log, maxDelayMs: longestSleepMs },
    round,
  );
  const unsubscribe = services.queue.wake.subscribe("slot", ({ tenantId }) => {
    if (typeof tenantId === "string") {
      named.add(tenantId);
    } else {
      lookAtAllFrom = 0;
    }
    loop.wake();
  });
  return {
    wake: () => loop.wake(),
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}
