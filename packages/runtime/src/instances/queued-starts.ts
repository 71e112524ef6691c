import {
  createBatch,
  DatabaseUnavailableError,
  lockLimit,
  roomToQueue,
  startedUnder,
  typeLimitKey,
} from "@millrace/store";
import type { Commit, CommitOutcome, Db, LimitRef } from "@millrace/store";
import { QueueFullError } from "../errors.ts";
import { groupCalls } from "../group.ts";
import type { Services } from "../services.ts";
import { limitOf } from "./limit.ts";

/** Starts of workflows with a `maxQueued`: those for which there is no room are refused. */

const maxBatch = 200;

/**
 * As `Services.create`. Those of this process take turns: a connection each that waits for the lock of
 * a limit would leave none for whoever has it.
 */
export function openQueuedStarts(
  services: Pick<Services, "database" | "definitions">,
): (commit: Commit) => Promise<CommitOutcome> {
  return groupCalls<Commit, CommitOutcome>({ lanes: 1, maxBatch }, async (commits) => {
    const outcomes = new Map<Commit, CommitOutcome | Error>();
    for (const [limit, starts] of byLimit(commits)) {
      for (const [commit, outcome] of await createInRoom(services, limit, starts)) {
        outcomes.set(commit, outcome);
      }
    }
    return commits.map((commit) => outcomes.get(commit) ?? { kind: "conflict" });
  });
}

function byLimit(commits: readonly Commit[]): Iterable<readonly [LimitRef, readonly Commit[]]> {
  const groups = new Map<string, readonly [LimitRef, Commit[]]>();
  for (const commit of commits) {
    const { tenantId, workflowId } = commit.previous;
    const limit = { tenantId, limitKey: typeLimitKey(workflowId) };
    const name = JSON.stringify([tenantId, workflowId]);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [limit, [commit]]);
    else group[1].push(commit);
  }
  return groups.values();
}

type Answers = readonly (readonly [Commit, CommitOutcome | Error])[];

/** One that Postgres refuses for its values takes its transaction along: then each has its own. */
async function createInRoom(
  services: Pick<Services, "database" | "definitions">,
  limit: LimitRef,
  starts: readonly Commit[],
): Promise<Answers> {
  try {
    return await createTogether(services, limit, starts);
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) throw error;
    const [start, ...others] = starts;
    if (start === undefined || !(error instanceof Error)) throw error;
    if (others.length === 0) return [[start, error]];
    const answers: Answers[] = [];
    for (const each of starts) answers.push(await createInRoom(services, limit, [each]));
    return answers.flat();
  }
}

/** Counts and creates with the lock of the limit held: nobody else creates or admits in between. */
async function createTogether(
  { database, definitions }: Pick<Services, "database" | "definitions">,
  limit: LimitRef,
  starts: readonly Commit[],
): Promise<Answers> {
  const { db } = database;
  const { slots, maxQueued } = await limitOf({ definitions }, limit);
  const answers: (readonly [Commit, CommitOutcome])[] = [];
  let left = starts;
  await db.transaction().execute(async (trx) => {
    await lockLimit(trx, limit);
    while (left.length > 0) {
      const room =
        maxQueued === undefined ? left.length : await roomToQueue(trx, limit, slots, maxQueued);
      if (room === 0) return;
      const some = left.slice(0, room);
      for (const [index, outcome] of (await createBatch(trx, some)).entries()) {
        if (outcome instanceof Error) throw outcome;
        answers.push([some[index] as Commit, outcome]);
      }
      left = left.slice(room);
    }
  });
  return [...answers, ...(await Promise.all(left.map((start) => refused(db, start, maxQueued))))];
}

async function refused(
  db: Db,
  start: Commit,
  maxQueued = 0,
): Promise<readonly [Commit, CommitOutcome | Error]> {
  const { workflowId } = start.previous;
  return [start, (await startedBefore(db, start)) ?? new QueueFullError(workflowId, maxQueued)];
}

/** What is there already is answered, however full the queue is. */
async function startedBefore(
  db: Db,
  { previous, create }: Commit,
): Promise<CommitOutcome | undefined> {
  const key = create?.idempotency?.key;
  return key === undefined ? undefined : startedUnder(db, previous.tenantId, key);
}
