import { isTransient } from "@millrace/store";
import type { Log } from "@millrace/telemetry";

const firstDelayMs = 100;
const longestDelayMs = 5_000;

/**
 * Does something until it has been done, waiting out a database that is away, without spinning. What
 * is no passing trouble is thrown.
 */
export async function persistently<T>(log: Log, act: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await act();
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (failures === 1) log.warn({ err: error }, "the database is away; waiting for it");
      const delayMs = Math.min(firstDelayMs * 2 ** failures, longestDelayMs);
      await new Promise((resolve) => setTimeout(resolve, delayMs * (0.5 + Math.random() / 2)));
    }
  }
}
