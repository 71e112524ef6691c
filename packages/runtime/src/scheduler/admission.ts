import { wantedLimits } from "@millrace/store";
import type { LimitRef } from "@millrace/store";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { Services } from "../services.ts";
import { grantFree } from "./grant.ts";
import { each } from "./kind.ts";
import { straySlots } from "./kinds.ts";

/**
 * Admits instances as slots come free. Any number of schedulers may: a limit's lock lets one of them
 * count and grant at a time. Whoever asks for a slot or gives one up says so after its commit; all
 * limits are looked at every now and then, since such a word may be lost.
 */

/** Safety net for words that were lost. */
const longestSleepMs = 1_000;
const strayMs = 10_000;
/** Limits that are looked at side by side: each takes a connection, and may wait for its lock. */
const atOnce = 4;

export function startAdmission(services: Services): Loop {
  const { db } = services.database;
  /** Named since the last round; all of them at first, and where it is not known which. */
  let named = new Set<string>();
  let lookAtAllFrom = 0;
  let strayFrom = 0;

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
    const wanted = await wantedLimits(db);
    await admit(wanted.filter((limit) => all || asked.has(nameOf(limit))));
    return named.size > 0 ? 0 : Math.max(0, lookAtAllFrom - performance.now());
  }

  /** A batch of each in turn, so that a long queue does not hold up the others. */
  async function admit(limits: readonly LimitRef[]): Promise<void> {
    for (let from = 0; from < limits.length; from += atOnce) {
      await each(services, limits.slice(from, from + atOnce), async (limit) => {
        if (await grantFree(services, limit)) named.add(nameOf(limit));
      });
    }
  }

  const loop = startLoop(
    { name: "admission", log: services.log, maxDelayMs: longestSleepMs },
    round,
  );
  const unsubscribe = services.queue.wake.subscribe("slot", ({ tenantId, limitKey }) => {
    if (typeof tenantId === "string" && typeof limitKey === "string") {
      named.add(nameOf({ tenantId, limitKey }));
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

function nameOf({ tenantId, limitKey }: LimitRef): string {
  return JSON.stringify([tenantId, limitKey]);
}
