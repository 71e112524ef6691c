import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

export interface EventuallyOptions {
  /** 10 s when absent. */
  readonly timeoutMs?: number;
  /** 25 ms when absent. */
  readonly intervalMs?: number;
}

/**
 * Asks again and again until `check` answers something truthy without throwing, and returns that.
 *
 * @param what Completes the sentence "waited in vain for …".
 * @throws When the time is over, with the last answer or error.
 */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  { timeoutMs = 10_000, intervalMs = 25 }: EventuallyOptions = {},
): Promise<NonNullable<T>> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    let last: string;
    let cause: unknown;
    try {
      const answer = await check();
      if (answer) return answer;
      last = `the last answer was ${inspect(answer, { depth: 4, breakLength: 100 })}`;
    } catch (error) {
      cause = error;
      last = `the last try failed: ${error instanceof Error ? error.message : inspect(error)}`;
    }
    if (performance.now() >= end) {
      throw new Error(`waited ${timeoutMs} ms in vain for ${what}; ${last}`, { cause });
    }
    await sleep(intervalMs);
  }
}
