import {
  DatabaseUnavailableError,
  forgetDeadWorkers,
  makeAllDue,
  readSetting,
  writeSetting,
} from "@millrace/store";
import { newEventId } from "../ids.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { Services } from "../services.ts";
import type { Kind } from "./kind.ts";
import { kinds, lapsed, lapseMs } from "./kinds.ts";

/**
 * Finds what a crash or a lost message left undone, and does it. What it looks for is the table in
 * `kinds.ts`; each entry is bounded, skips what others have locked, and leaves fresh work alone. There
 * is no leader.
 */

const roundMs = 1_000;
/** Sweeps of one kind in a round: enough for what a round can do, and no kind keeps the others waiting. */
const mostSweeps = 4;
/** Workers that have been silent for so long, and hold nothing, are of no interest any more. */
const forgetMs = 600_000;

export function startReconciler(services: Services): Loop {
  const beats = openBeatTrust();
  let forgetFrom = 0;
  let isFirst = true;

  async function round(): Promise<number> {
    const canAdd = await checkQueue(services);
    // For those who have died since; and who finds it so at the start cannot know since when it is.
    if (!canAdd) services.missed.note(isFirst ? new Date(0) : undefined);
    isFirst = false;
    const swept = kinds.filter((kind) => canAdd || !kind.needsQueue);
    await sweepAll(services, swept, beats);
    const now = performance.now();
    if (now > forgetFrom) {
      await forgetDeadWorkers(services.database.db, forgetMs);
      forgetFrom = now + forgetMs;
    }
    return roundMs;
  }

  return startLoop({ name: "reconciler", log: services.log, maxDelayMs: roundMs }, round);
}

/** Whether a beat that is old says anything about its worker. */
interface BeatTrust {
  /** The database has just answered. */
  answered(): void;
  readonly holds: boolean;
}

/**
 * After a gap between the database's answers beats may be stale only because it was away, or stood still in
 * the middle of a round: let them come.
 */
function openBeatTrust(): BeatTrust {
  let answeredAt = performance.now();
  let quietUntil = 0;
  return {
    answered() {
      const now = performance.now();
      if (now - answeredAt > lapseMs) quietUntil = now + lapseMs;
      answeredAt = now;
    },
    get holds() {
      return performance.now() >= quietUntil;
    },
  };
}

/** Trouble with one kind holds up none of the others, unless the database is away. */
async function sweepAll(
  services: Services,
  swept: readonly Kind[],
  beats: BeatTrust,
): Promise<void> {
  const troubles: unknown[] = [];
  for (const kind of swept) {
    if (kind === lapsed && !beats.holds) continue;
    try {
      for (let sweeps = 0, more = true; more && sweeps < mostSweeps; sweeps++) {
        more = await kind.sweep(services);
        beats.answered();
      }
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) throw error;
      troubles.push(error);
    }
  }
  if (troubles.length > 0) throw troubles[0];
}

/**
 * Redis has lost everything when it does not have the mark that Postgres has.
 *
 * @returns Whether jobs can be added. While they cannot, rows that wait for one are left as they are:
 *   each look in vain would put off the next.
 */
async function checkQueue(services: Services): Promise<boolean> {
  const { database, queue, log } = services;
  let there: string | undefined;
  try {
    there = await queue.readEpoch();
    await queue.tryWrite();
  } catch {
    return false;
  }
  const here = await readSetting(database.db, "epoch");
  if (here !== undefined && there === here) return true;
  const epoch = newEventId();
  if (here !== undefined) {
    const due = await makeAllDue(database.db);
    log.warn({ steps: due }, "the queue has lost its jobs; adding them again");
  }
  await writeSetting(database.db, "epoch", epoch);
  await queue.writeEpoch(epoch).catch(() => {});
  return true;
}
