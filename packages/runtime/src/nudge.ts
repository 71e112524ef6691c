import type { Services } from "./services.ts";

/**
 * Tells workers that these instances have something to apply; if that fails, it is found again.
 *
 * @returns Whether they were told.
 */
export async function nudge(
  { queue, metrics }: Services,
  { tenantId, id }: { readonly tenantId: string; readonly id: string },
  instanceIds: readonly string[],
): Promise<boolean> {
  if (instanceIds.length === 0) return true;
  const jobs = [...new Set(instanceIds)].map((instanceId) => ({
    job: { tenantId, instanceId, cause: id },
    priority: 0,
  }));
  try {
    await queue.addAdvance(jobs);
    return true;
  } catch {
    metrics.enqueueFailures.add({});
    return false;
  }
}
