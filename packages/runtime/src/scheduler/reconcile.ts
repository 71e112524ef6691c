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
  let lastRound = performance.now();
  let quietUntil = 0;
  let forgetFrom = 0;
  let isFirst = true;

  async function round(): Promise<number> {
    const now = performance.now();
    // After a gap of its own, beats may be stale only because the database was away: let them come.
    if (now - lastRound > lapseMs) quietUntil = now + lapseMs;
    const canAdd = await checkQueue(services);
    // For those who have died since; and who finds it so at the start cannot know since when it is.
    if (!canAdd) services.missed.note(isFirst ? new Date(0) : undefined);
    isFirst = false;
    const swept = kinds.filter(
      (kind) => (canAdd || !kind.needsQueue) && (now >= quietUntil || kind !== lapsed),
    );
    await sweepAll(services, swept);
    if (now > forgetFrom) {
      await forgetDeadWorkers(services.database.db, forgetMs);
      forgetFrom = now + forgetMs;
    }
    lastRound = performance.now();
    return roundMs;
  }

  return startLoop({ name: "reconciler", log: services.log, maxDelayMs: roundMs }, round);
}

/** Trouble with one kind holds up none of the others, unless the database is away. */
async function sweepAll(services: Services, swept: readonly Kind[]): Promise<void> {
  const troubles: unknown[] = [];
  for (const kind of swept) {
    try {
      for (let sweeps = 0; sweeps < mostSweeps && (await kind.sweep(services)); sweeps++);
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
