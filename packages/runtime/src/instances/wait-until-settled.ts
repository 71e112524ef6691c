import { isSettled } from "@millrace/engine";
import { readInstance } from "@millrace/store";
import type { InstanceRead } from "@millrace/store";
import { InstanceNotFoundError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";

/** Pub/sub says when to look; this is for what it misses. */
const pollMs = 1_000;

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Steps whose outputs are read; undefined: those of all. */
  readonly outputsOf?: readonly string[] | undefined;
}

/**
 * The instance once it has settled, or as it is when the time is up or the caller has gone.
 *
 * @throws InstanceNotFoundError
 */
export async function waitUntilSettled(
  services: Services,
  { tenantId }: Caller,
  instanceId: string,
  { timeoutMs, signal, outputsOf }: WaitOptions,
): Promise<InstanceRead> {
  const key = { tenantId, instanceId };
  const until = performance.now() + timeoutMs;
  const listener = listenFor(services, instanceId);
  try {
    for (;;) {
      // Told that it has settled: the whole at once, a round trip less.
      const told = listener.heard
        ? await readInstance(services.database.db, key, outputsOf)
        : undefined;
      if (told !== undefined && isSettled(told.snapshot)) return told;
      // The snapshot alone, of all who wait in one statement: a whole instance may have many steps.
      const snapshot = await services.load.instance(key);
      if (snapshot === undefined) break;
      const leftMs = until - performance.now();
      if (isSettled(snapshot) || leftMs <= 0 || signal?.aborted === true) break;
      await listener.next(Math.min(leftMs, pollMs), signal);
    }
  } finally {
    listener.close();
  }
  const instance = await readInstance(services.database.db, key, outputsOf);
  if (instance === undefined) throw new InstanceNotFoundError(instanceId);
  return instance;
}

/** Remembers a wake that comes while nobody waits, so that none falls between two looks. */
function listenFor({ wakes }: Services, instanceId: string) {
  /** Since the last look, and before it. */
  let isNews = false;
  let heard = false;
  let wake: (() => void) | undefined;
  const close = wakes.listen(instanceId, () => {
    isNews = true;
    wake?.();
  });
  return {
    close,
    /** Whether the last wait ended by a wake. */
    get heard() {
      return heard;
    },
    next(ms: number, signal?: AbortSignal): Promise<void> {
      return new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", done);
          heard = isNews;
          isNews = false;
          wake = undefined;
          resolve();
        };
        const timer = setTimeout(done, ms);
        wake = done;
        signal?.addEventListener("abort", done);
        if (isNews || signal?.aborted === true) done();
      });
    },
  };
}
