import { makeMissedDue } from "@millrace/store";
import type { Db } from "@millrace/store";
import type { Queue } from "@millrace/queue";
import type { Log } from "@millrace/telemetry";
import type { Clock } from "./clock.ts";
import { startLoop } from "./loop.ts";

/**
 * Remembers since when this process could add no jobs. Once the queue takes them again, the steps of
 * that time are due at once, rather than when their rows would be looked at. A process that dies
 * meanwhile forgets, and then that is when they are found.
 */
export interface MissedJobs {
  /** Jobs cannot be added, as it seems since then; when absent, since just now. */
  note(since?: Date): void;
  close(): Promise<void>;
}

const retryMs = 500;
const idleMs = 60_000;
/** A job is added so long after its row was committed, at most. */
const lagMs = 5_000;

export function openMissedJobs({
  db,
  queue,
  clock,
  log,
}: {
  readonly db: Db;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly log: Log;
}): MissedJobs {
  let missed: { readonly from: Date; readonly to: Date } | undefined;

  async function round(): Promise<number> {
    if (missed === undefined) return idleMs;
    const canAdd = await queue.tryWrite().then(
      () => true,
      () => false,
    );
    if (!canAdd) return retryMs;
    const { from, to } = missed;
    const steps = await makeMissedDue(db, from, to);
    if (missed.to > to) return retryMs;
    missed = undefined;
    log.info({ steps }, "the queue takes jobs again; adding those that it missed");
    return idleMs;
  }

  const loop = startLoop({ name: "missed jobs", log, maxDelayMs: idleMs }, round);
  return {
    note(since) {
      const now = clock.now();
      const isFirst = missed === undefined;
      const from = since ?? missed?.from ?? new Date(now.getTime() - lagMs);
      missed = { from: missed !== undefined && missed.from < from ? missed.from : from, to: now };
      if (isFirst) loop.wake();
    },
    close: () => loop.stop(),
  };
}
