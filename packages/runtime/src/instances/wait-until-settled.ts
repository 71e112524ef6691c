import { isSettled } from "@millrace/engine";
import { readInstance } from "@millrace/store";
import type { InstanceRead } from "@millrace/store";
import { openBell } from "../bell.ts";
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
  const bell = openBell();
  const close = services.wakes.listen(instanceId, bell.ring);
  let isTold = false;
  try {
    for (;;) {
      // Told that it has settled: the whole at once, a round trip less.
      const told = isTold ? await readInstance(services.database.db, key, outputsOf) : undefined;
      if (told !== undefined && isSettled(told.snapshot)) return told;
      // The snapshot alone, of all who wait in one statement: a whole instance may have many steps.
      const snapshot = await services.load.instance(key);
      if (snapshot === undefined) break;
      const leftMs = until - performance.now();
      if (isSettled(snapshot) || leftMs <= 0 || signal?.aborted === true) break;
      isTold = await bell.next(Math.min(leftMs, pollMs), signal);
    }
  } finally {
    close();
  }
  const instance = await readInstance(services.database.db, key, outputsOf);
  if (instance === undefined) throw new InstanceNotFoundError(instanceId);
  return instance;
}
