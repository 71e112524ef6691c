import type { Queue } from "@millrace/queue";

/** Hears that instances settled, and tells those who wait for them. One subscription serves all. */
export interface InstanceWakes {
  /** @returns Takes the listener off again. */
  listen(instanceId: string, listener: () => void): () => void;
  /** Listeners that are on now. */
  readonly size: number;
}

export function openInstanceWakes(queue: Queue): InstanceWakes {
  const listeners = new Map<string, Set<() => void>>();
  let subscribed = false;

  function subscribe(): void {
    if (subscribed) return;
    subscribed = true;
    queue.wake.subscribe("instance", ({ instanceId }) => {
      if (typeof instanceId === "string") call(listeners.get(instanceId));
      else for (const waiting of listeners.values()) call(waiting);
    });
  }

  return {
    get size() {
      return [...listeners.values()].reduce((sum, waiting) => sum + waiting.size, 0);
    },
    listen(instanceId, listener) {
      subscribe();
      const waiting = listeners.get(instanceId) ?? new Set();
      listeners.set(instanceId, waiting.add(listener));
      return () => {
        waiting.delete(listener);
        if (waiting.size === 0 && listeners.get(instanceId) === waiting)
          listeners.delete(instanceId);
      };
    },
  };
}

function call(listeners: ReadonlySet<() => void> | undefined): void {
  for (const listener of listeners ?? []) listener();
}
