import {
  forgetEvents,
  forgetKeys,
  forgetRuns,
  forgetSettled,
  oldestUnreadMs,
} from "@millrace/store";
import type { Db, Place, RetentionLook, Swept } from "@millrace/store";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { Services } from "../services.ts";

/**
 * Deletes what has ended and been kept for its time. Any number of schedulers may: each look takes the oldest
 * rows that nobody else has. Looks follow one another as fast as there is something to delete, with pauses in
 * between that leave the database to those who work.
 */

/** What goes by a time of its own. */
export interface Sort {
  /** Label of its metrics. */
  readonly kind: string;
  /** It stays for so long, whatever the setting says. */
  readonly leastMs: number;
  /** Rows that one look takes in. */
  readonly limit: number;
  /** Between a look that found no more and the next one. */
  readonly restMs: number;
  readonly sweep: (db: Db, look: RetentionLook) => Promise<Swept>;
}

const dayMs = 86_400_000;

/** What is shorter than is promised of starts and events (CONTRACT 3) lasts as long as is promised. */
export const sorts: readonly Sort[] = [
  { kind: "instances", leastMs: 0, limit: 500, restMs: 1_000, sweep: forgetTold },
  { kind: "keys", leastMs: dayMs, limit: 1_000, restMs: 10_000, sweep: forgetKeys },
  { kind: "events", leastMs: 7 * dayMs, limit: 1_000, restMs: 10_000, sweep: forgetEvents },
  { kind: "runs", leastMs: dayMs, limit: 100, restMs: 60_000, sweep: forgetRuns },
];

/**
 * Instances of which nothing is still to be told: after a time without schedulers what has had its time meanwhile
 * waits for those who listen to it.
 */
async function forgetTold(db: Db, look: RetentionLook): Promise<Swept> {
  const unreadMs = await oldestUnreadMs(db);
  if (unreadMs !== undefined && unreadMs >= look.olderMs)
    return { deleted: 0, place: undefined, behindMs: undefined };
  return forgetSettled(db, look);
}

/** After a look that deleted, the database has this many times as long for others. */
const pauseFactor = 2;
const leastPauseMs = 20;
/** What was kept back, or passed over, is looked at again after so long. */
const passMs = 30_000;

export function startRetention(services: Services, retentionMs: number): Loop {
  const turns = sorts.map((sort) => openTurns(services, sort, retentionMs));

  async function round(): Promise<number> {
    for (const turn of turns) if (turn.dueAt <= performance.now()) await turn.take();
    return Math.min(...turns.map(({ dueAt }) => dueAt)) - performance.now();
  }

  const options = { name: "retention", log: services.log, maxDelayMs: passMs };
  return startLoop(options, round);
}

interface Turns {
  readonly dueAt: number;
  take(): Promise<void>;
}

function openTurns({ database, metrics }: Services, sort: Sort, retentionMs: number): Turns {
  const { kind, leastMs, limit, restMs, sweep } = sort;
  const olderMs = Math.max(leastMs, retentionMs);
  let dueAt = performance.now();
  let after: Place | undefined;
  let passFrom = dueAt;
  return {
    get dueAt() {
      return dueAt;
    },
    async take() {
      const from = performance.now();
      // Should it fail, the others have their turn first.
      dueAt = from + restMs;
      const { deleted, place, behindMs } = await sweep(database.db, { olderMs, after, limit });
      if (deleted > 0) metrics.retentionDeleted.add({ kind }, deleted);
      metrics.retentionBehind.set({ kind }, (behindMs ?? 0) / 1_000);
      after = place ?? after;
      const now = performance.now();
      if (behindMs === undefined && now - passFrom > passMs) {
        after = undefined;
        passFrom = now;
      }
      const pauseMs = Math.max(leastPauseMs, (now - from) * pauseFactor);
      dueAt = now + (behindMs === undefined ? restMs : pauseMs);
    },
  };
}
