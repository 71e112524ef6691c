import * as store from "@millrace/store";
import type { Caller, Services } from "../services.ts";

/**
 * No step of it begins on any worker until it is resumed; what runs goes on. Queues are shared by all tenants. One that
 * is paused stays as it is.
 */
export async function pauseQueue(
  { database, queue: { wake }, log }: Services,
  { actor }: Caller,
  queue: string,
  { reason = null }: { readonly reason?: string | null | undefined },
): Promise<void> {
  const isNew = await store.pauseQueue(database.db, { queue, by: actor, reason });
  if (isNew) log.info({ queue, actor, reason }, "queue paused");
  wake.publish("queue", { queue });
}

/** Its steps go on as if there had been no pause, in the order of their priority. */
export async function resumeQueue(
  { database, queue: { wake }, log }: Services,
  { actor }: Caller,
  queue: string,
): Promise<void> {
  const wasPaused = await store.resumeQueue(database.db, queue);
  if (wasPaused) log.info({ queue, actor }, "queue resumed");
  wake.publish("queue", { queue });
}
