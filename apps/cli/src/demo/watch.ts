import { setTimeout as sleep } from "node:timers/promises";
import type { MillraceClient } from "@millrace/client";
import type { InstanceView } from "@millrace/contract";

/** Between two looks at all instances, at least. */
const PAUSE_MS = 100;

/**
 * Looks at all instances of one correlation id, again and again. One look serves everybody who
 * waits for something and the progress that is shown.
 */
export interface Watch {
  /** As last seen, by id. */
  readonly instances: ReadonlyMap<string, InstanceView>;
  /**
   * The first view of an instance for which `isThere` holds.
   *
   * @param what Completes the sentence "waited in vain for …".
   * @throws When it does not come true in time, or the watch is closed before.
   */
  until(
    id: string,
    what: string,
    isThere: (instance: InstanceView) => boolean,
  ): Promise<InstanceView>;
  close(): Promise<void>;
}

export interface WatchOptions {
  readonly client: MillraceClient;
  readonly correlationId: string;
  readonly timeoutMs: number;
  readonly onLook?: ((instances: ReadonlyMap<string, InstanceView>) => void) | undefined;
}

interface Waiter {
  readonly id: string;
  readonly isThere: (instance: InstanceView) => boolean;
  readonly resolve: (instance: InstanceView) => void;
  readonly reject: (error: Error) => void;
}

export function openWatch({ client, correlationId, timeoutMs, onLook }: WatchOptions): Watch {
  const instances = new Map<string, InstanceView>();
  const waiters = new Set<Waiter>();
  const closing = new AbortController();

  const look = async () => {
    const { signal } = closing;
    for await (const each of client.instances.each({ correlationId }, { signal })) {
      instances.set(each.id, each);
    }
    for (const waiter of waiters) {
      const instance = instances.get(waiter.id);
      if (instance === undefined || !waiter.isThere(instance)) continue;
      waiters.delete(waiter);
      waiter.resolve(instance);
    }
    onLook?.(instances);
  };
  /** Why nobody looks any more. */
  let over: Error | undefined;
  const done = (async () => {
    let error = new Error("the demo was broken off");
    while (!closing.signal.aborted) {
      const began = performance.now();
      try {
        await look();
      } catch (cause) {
        if (closing.signal.aborted) break;
        error = new Error("the API can no longer be asked", { cause });
        break;
      }
      // With many instances a look takes long; the API has other things to do, too.
      await sleep(Math.max(PAUSE_MS, performance.now() - began));
    }
    over = error;
    for (const waiter of waiters) waiter.reject(error);
    waiters.clear();
  })();

  return {
    instances,
    until: async (id, what, isThere) => {
      // An order that was just being started when the watch was closed comes too late.
      if (over !== undefined) throw over;
      const { promise, resolve, reject } = withResolvers<InstanceView>();
      const waiter = { id, isThere, resolve, reject };
      waiters.add(waiter);
      const timer = setTimeout(() => {
        waiters.delete(waiter);
        const status = instances.get(id)?.status ?? "not listed";
        reject(new Error(`waited ${timeoutMs / 1_000} s in vain for ${what}; it is ${status}`));
      }, timeoutMs);
      return promise.finally(() => clearTimeout(timer));
    },
    close: () => {
      closing.abort();
      return done;
    },
  };
}

/** `Promise.withResolvers` came with Node 22. */
function withResolvers<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
