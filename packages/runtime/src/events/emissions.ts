import type { EventKey } from "@millrace/store";

/**
 * Events that instances have emitted, on their way to those that they concern. A commit has stored
 * them; they are matched soon after it and apart from whoever performs it: an event may start instances
 * that emit the next one, and whoever published the first must not wait for the last. What is lost here
 * is found by the reconciler.
 */
export interface Emissions {
  match(keys: readonly EventKey[]): void;
  /** Takes no more, and waits for what is under way. */
  close(): Promise<void>;
}

/** Batches under way at once, events in one, and events that wait before any more are left out. */
const lanes = 2;
const mostTogether = 50;
const mostWaiting = 10_000;

/** @param matchAll Never rejects. */
export function openEmissions(matchAll: (keys: readonly EventKey[]) => Promise<void>): Emissions {
  const waiting: EventKey[] = [];
  const running = new Set<Promise<void>>();
  let closed = false;

  function pump(): void {
    while (!closed && running.size < lanes && waiting.length > 0) {
      void begin(waiting.splice(0, mostTogether));
    }
  }

  async function begin(keys: readonly EventKey[]): Promise<void> {
    const batch = matchAll(keys);
    running.add(batch);
    await batch;
    running.delete(batch);
    pump();
  }

  return {
    match(keys) {
      waiting.push(...keys.slice(0, mostWaiting - waiting.length));
      pump();
    },
    async close() {
      closed = true;
      await Promise.all(running);
    },
  };
}
