import { createBatch, lockLimit, roomToQueue, startedUnder, typeLimitKey } from "@millrace/store";
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

/**
 * Counts and creates with the lock of the limit held: nobody else creates or admits in between. The
 * instances are committed on a connection of their own, so that one of them that Postgres refuses for
 * its values harms none of the others.
 */
async function createInRoom(
  { database, definitions }: Pick<Services, "database" | "definitions">,
  limit: LimitRef,
  starts: readonly Commit[],
): Promise<readonly (readonly [Commit, CommitOutcome | Error])[]> {
  const { db } = database;
  const { slots, maxQueued } = await limitOf({ definitions }, limit);
  const answers: (readonly [Commit, CommitOutcome | Error])[] = [];
  let left = starts;
  await db.transaction().execute(async (trx) => {
    await lockLimit(trx, limit);
    while (left.length > 0) {
      const room =
        maxQueued === undefined ? left.length : await roomToQueue(trx, limit, slots, maxQueued);
      if (room === 0) return;
      const some = left.slice(0, room);
      const outcomes = await createBatch(db, some);
      some.forEach((commit, index) => {
        answers.push([commit, outcomes[index] ?? { kind: "conflict" }]);
      });
      left = left.slice(room);
    }
  });
  for (const commit of left) {
    const { workflowId } = commit.previous;
    const started = await startedBefore(db, commit);
    answers.push([commit, started ?? new QueueFullError(workflowId, maxQueued ?? 0)]);
  }
  return answers;
}

async function startedBefore(
  db: Db,
  { previous, create }: Commit,
): Promise<CommitOutcome | undefined> {
  const key = create?.idempotency?.key;
  return key === undefined ? undefined : startedUnder(db, previous.tenantId, key);
}
