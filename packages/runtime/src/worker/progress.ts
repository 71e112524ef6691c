import { recordProgress } from "@millrace/store";
import type { Services } from "../services.ts";
import { asShownJson } from "./json-form.ts";

interface HeldStep {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
  readonly workerId: string;
}

/** Heartbeats of one step are written at most so often. */
const writeEveryMs = 1_000;

/** Writes what tasks report, and moves their heartbeat clock on, a few times a second at most. */
export function openProgress({ database, log }: Services) {
  const writtenAt = new Map<string, number>();
  const writes = new Set<Promise<unknown>>();

  return {
    report(step: HeldStep, progress: unknown, heartbeatTimeoutMs: number | null): void {
      const key = `${step.instanceId}/${step.path}/${step.iteration}/${step.fence}`;
      const now = performance.now();
      if (now - (writtenAt.get(key) ?? -writeEveryMs) < writeEveryMs) return;
      writtenAt.set(key, now);
      if (writtenAt.size > 10_000) writtenAt.clear();
      const write: Promise<unknown> = recordProgress(
        database.db,
        step,
        asShownJson(progress),
        heartbeatTimeoutMs,
      )
        .catch((error: unknown) => log.debug({ err: error }, "progress not written"))
        .finally(() => writes.delete(write));
      writes.add(write);
    },
    async close(): Promise<void> {
      await Promise.allSettled(writes);
    },
  };
}
