import { executionKey } from "@millrace/engine";
import type { Held } from "./held.ts";

/**
 * What this worker process holds right now: who gets an abort signal, what is handed back at
 * shutdown, and what the watch asks about.
 */
export interface Holdings {
  readonly size: number;
  add(held: Held): void;
  remove(held: Held): void;
  all(): readonly Held[];
  find(tenantId: string, instanceId: string, path: string, iteration: number): Held | undefined;
  /**
   * What was taken under this id no longer counts: another worker has, or will have, all of it. What the
   * process has taken under a newer id is its own, and goes on: a handler that was told to stop fails,
   * and with the row still its own that would be an attempt of the step.
   */
  abortOf(workerId: string, reason: string): void;
}

export function openHoldings(): Holdings {
  const held = new Map<string, Held>();
  return {
    get size() {
      return held.size;
    },
    add: (holding) => void held.set(keyOf(holding), holding),
    remove: (holding) => {
      const key = keyOf(holding);
      if (held.get(key) === holding) held.delete(key);
    },
    all: () => [...held.values()],
    find: (tenantId, instanceId, path, iteration) =>
      held.get(`${tenantId}/${instanceId}/${executionKey(path, iteration)}`),
    abortOf(workerId, reason) {
      for (const holding of held.values()) {
        if (holding.workerId === workerId) holding.abort.abort(new Error(reason));
      }
    },
  };
}

function keyOf({ snapshot, step }: Held): string {
  return `${snapshot.tenantId}/${snapshot.id}/${executionKey(step.path, step.iteration)}`;
}
