import { TransactionConflictError } from "./errors.ts";
import { prepared, run, type Db } from "./statement.ts";

/**
 * Queues of which no worker takes a step. Every statement that gives a step to a worker, a claim or the commit that
 * carries one on, asks `paused_queues` itself.
 */

export interface PausedQueue {
  readonly queue: string;
  readonly at: Date;
  readonly by: string;
  readonly reason: string | null;
}

/** In order of their names. */
export async function pausedQueues(db: Db): Promise<readonly PausedQueue[]> {
  const rows = await run<PausedRow>(db, all, []);
  return rows.map(({ queue, paused_at, paused_by, reason }) => ({
    queue,
    at: paused_at,
    by: paused_by,
    reason,
  }));
}

interface PausedRow {
  readonly queue: string;
  readonly paused_at: Date;
  readonly paused_by: string;
  readonly reason: string | null;
}

const all = prepared(
  "paused_queues",
  "select queue, paused_at, paused_by, reason from paused_queues order by queue",
);

/** Longest wait for statements that were under way. */
const mostWaitMs = 500;

/**
 * Once it has settled no step of the queue begins: the lock is had when all statements have ended that were under
 * way and may not have seen the row, and each that comes after it takes its snapshot when it has its own lock. Where
 * somebody reads the table for longer, a backup say, that is not waited for.
 *
 * @returns Whether it was not paused before; what was said then stays.
 */
export async function pauseQueue(
  db: Db,
  { queue, by, reason }: Omit<PausedQueue, "at">,
): Promise<boolean> {
  const rows = await run(db, insert, [queue, by, reason]);
  await db
    .transaction()
    .execute(async (trx) => {
      await run(trx, `set local lock_timeout = '${mostWaitMs} ms'`, []);
      await run(trx, "lock table paused_queues in access exclusive mode", []);
    })
    .catch((error: unknown) => {
      if (!(error instanceof TransactionConflictError)) throw error;
    });
  return rows.length > 0;
}

const insert = prepared(
  "pause_queue",
  `insert into paused_queues (queue, paused_by, reason) values ($1, $2, $3)
  on conflict do nothing
  returning 1`,
);

/** @returns Whether it was paused. */
export async function resumeQueue(db: Db, queue: string): Promise<boolean> {
  return (await run(db, remove, [queue])).length > 0;
}

const remove = prepared("resume_queue", "delete from paused_queues where queue = $1 returning 1");

/** SQL: whether the queue that a column names is paused. */
export function isPaused(column: string): string {
  return `exists (select from paused_queues p where p.queue = ${column})`;
}
