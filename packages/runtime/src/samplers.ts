import {
  countByStatus,
  limitsOfSet,
  oldestUnreadMs,
  setsInUse,
  workflowOfLimit,
} from "@millrace/store";
import { limitOf } from "./limits/limit-in-force.ts";
import type { Services } from "./services.ts";

/** Pool use of this process, read when metrics are asked for. */
export function samplePool({ metrics, database }: Services): void {
  metrics.addSampler(() => {
    const { open, idle, waiting } = database.stats();
    metrics.pool.set({ state: "open" }, open);
    metrics.pool.set({ state: "idle" }, idle);
    metrics.pool.set({ state: "waiting" }, waiting);
  });
}

/** Calls that wait in this process, and those that follow, counted when metrics are asked for. */
export function sampleWaitingCalls({ metrics, wakes, watch }: Services): void {
  metrics.addSampler(() => {
    metrics.waitingCalls.set({}, wakes.size);
    metrics.streams.set({}, watch.size);
  });
}

/** Figures of the installation as a whole: instances by status, jobs by queue and state. */
export function sampleInstallation(services: Services, queues: readonly string[]): void {
  const { metrics, database, queue } = services;
  metrics.addSampler(async () => {
    const counts = await countByStatus(database.db);
    metrics.instances.replace(
      [...counts].map(([status, value]) => ({ labels: { status }, value })),
    );
  });
  metrics.addSampler(() => sampleLimits(services));
  metrics.addSampler(async () => {
    metrics.lifecycleLag.set({}, ((await oldestUnreadMs(database.db)) ?? 0) / 1_000);
  });
  metrics.addSampler(async () => {
    const depths = await queue.depths(queues);
    metrics.queueDepth.replace(
      depths.flatMap(({ queue: name, ...states }) =>
        Object.entries(states).map(([state, value]) => ({ labels: { queue: name, state }, value })),
      ),
    );
  });
}

/** By workflow, that of all tenants together. */
async function sampleLimits(services: Services): Promise<void> {
  const { metrics, database, limits } = services;
  await limits.refresh(database.db);
  const counts = new Map<
    string,
    { tenantId: string; limitKey: string; taken: number; queued: number }
  >();
  for (const { tenantId, limitSet, taken, queued } of await setsInUse(database.db)) {
    const limitKey = limitsOfSet(limitSet).find((key) => workflowOfLimit(key) !== undefined);
    if (limitKey === undefined) continue;
    const name = JSON.stringify([tenantId, limitKey]);
    const before = counts.get(name) ?? { tenantId, limitKey, taken: 0, queued: 0 };
    counts.set(name, { ...before, taken: before.taken + taken, queued: before.queued + queued });
  }
  const uses = await Promise.all(
    [...counts.values()].map(async (use) => {
      const { slots } = await limitOf(services, use);
      return { ...use, slots, labels: { workflow: workflowOfLimit(use.limitKey) ?? "" } };
    }),
  );
  metrics.slots.replace(uses.map(({ labels, slots: value }) => ({ labels, value })));
  metrics.slotsTaken.replace(uses.map(({ labels, taken: value }) => ({ labels, value })));
  metrics.queued.replace(uses.map(({ labels, queued: value }) => ({ labels, value })));
}
