import { setTimeout as sleep } from "node:timers/promises";
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

/**
 * As `persistently`, for so long and no longer: nobody's end waits for a database that is away.
 *
 * @returns Undefined where time ran out; whether it was done is not known then.
 */
export async function persistentlyFor<T>(
  log: Log,
  timeMs: number,
  act: () => Promise<T>,
): Promise<T | undefined> {
  const timeOut = new AbortController();
  const { signal } = timeOut;
  const trying = persistently(log, async () => (signal.aborted ? undefined : act()));
  // What comes of it later is nobody's business any more.
  trying.catch(() => {});
  try {
    return await Promise.race([trying, sleep(timeMs, undefined, { signal })]);
  } finally {
    timeOut.abort();
  }
}
