import { isTransient, makeMissedDue } from "@millrace/store";
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
  /**
   * Commits. Where the answer is lost what was asked for may be committed, and nobody performs it: whoever
   * tries again finds that somebody was first.
   */
  aware<T>(commit: () => Promise<T>): Promise<T>;
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
    log.info({ steps }, "adding the jobs that may have been missed for a while");
    return idleMs;
  }

  const loop = startLoop({ name: "missed jobs", log, maxDelayMs: idleMs }, round);
  function note(since?: Date): void {
    const now = clock.now();
    const isFirst = missed === undefined;
    const from = since ?? missed?.from ?? new Date(now.getTime() - lagMs);
    missed = { from: missed !== undefined && missed.from < from ? missed.from : from, to: now };
    if (isFirst) loop.wake();
  }
  return {
    note,
    async aware(commit) {
      const begunAt = performance.now();
      try {
        return await commit();
      } catch (error) {
        if (isTransient(error)) {
          note(new Date(clock.now().getTime() - (performance.now() - begunAt) - lagMs));
        }
        throw error;
      }
    },
    close: () => loop.stop(),
  };
}
