import {
  createBatch,
  DatabaseUnavailableError,
  limitSetOf,
  limitsOfSet,
  lockLimits,
  roomToQueue,
  startedUnder,
} from "@millrace/store";
import type { Commit, CommitOutcome, Db, LimitRef, LimitSetRef } from "@millrace/store";
import { QueueFullError } from "../errors.ts";
import { groupCalls } from "../group.ts";
import type { Services } from "../services.ts";
import { globalLimit } from "../limits/limit-cache.ts";
import { limitOf } from "../limits/limit-in-force.ts";
import type { LimitInForce } from "../limits/limit-in-force.ts";

/** Starts under limits with a `maxQueued`: those for which there is no room are refused. */

const maxBatch = 200;

/**
 * As `Services.create`. Those of this process take turns: a connection each that waits for the lock of
 * a limit would leave none for whoever has it.
 */
export function openQueuedStarts(
  services: Pick<Services, "database" | "definitions" | "limits">,
): (commit: Commit) => Promise<CommitOutcome> {
  return groupCalls<Commit, CommitOutcome>({ lanes: 1, maxBatch }, async (commits) => {
    const outcomes = new Map<Commit, CommitOutcome | Error>();
    for (const [set, starts] of bySet(commits)) {
      for (const [commit, outcome] of await createInRoom(services, set, starts)) {
        outcomes.set(commit, outcome);
      }
    }
    return commits.map((commit) => outcomes.get(commit) ?? { kind: "conflict" });
  });
}

function bySet(commits: readonly Commit[]): Iterable<readonly [LimitSetRef, readonly Commit[]]> {
  const groups = new Map<string, readonly [LimitSetRef, Commit[]]>();
  for (const commit of commits) {
    const { snapshot } = commit.decision;
    const { tenantId } = snapshot;
    const limitSet = limitSetOf(snapshot);
    const name = JSON.stringify([tenantId, limitSet]);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [{ tenantId, limitSet }, [commit]]);
    else group[1].push(commit);
  }
  return groups.values();
}

type Answers = readonly (readonly [Commit, CommitOutcome | Error])[];

/** One that Postgres refuses for its values takes its transaction along: then each has its own. */
async function createInRoom(
  services: Pick<Services, "database" | "definitions" | "limits">,
  set: LimitSetRef,
  starts: readonly Commit[],
): Promise<Answers> {
  try {
    return await createTogether(services, set, starts);
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) throw error;
    const [start, ...others] = starts;
    if (start === undefined || !(error instanceof Error)) throw error;
    if (others.length === 0) return [[start, error]];
    const answers: Answers[] = [];
    for (const each of starts) answers.push(await createInRoom(services, set, [each]));
    return answers.flat();
  }
}

/** A limit that bounds how many wait under it. */
interface Bound extends LimitRef {
  readonly slots: number;
  readonly maxQueued: number;
}

/** Counts and creates with the locks of the limits held: nobody else creates under them in between. */
async function createTogether(
  services: Pick<Services, "database" | "definitions" | "limits">,
  set: LimitSetRef,
  starts: readonly Commit[],
): Promise<Answers> {
  const { db } = services.database;
  const bounds = await boundsOf(services, set);
  const answers: (readonly [Commit, CommitOutcome])[] = [];
  let left = starts;
  let full: Bound | undefined;
  await db.transaction().execute(async (trx) => {
    await lockLimits(trx, bounds);
    while (left.length > 0) {
      let room = left.length;
      for (const bound of bounds) {
        const own = await roomToQueue(trx, bound, bound.slots, bound.maxQueued);
        if (own === 0) full = bound;
        room = Math.min(room, own);
      }
      if (room === 0) return;
      const some = left.slice(0, room);
      for (const [index, outcome] of (await createBatch(trx, some)).entries()) {
        if (outcome instanceof Error) throw outcome;
        answers.push([some[index] as Commit, outcome]);
      }
      left = left.slice(room);
    }
  });
  return [...answers, ...(await Promise.all(left.map((start) => refused(db, start, full))))];
}

async function boundsOf(
  services: Pick<Services, "definitions" | "limits">,
  { tenantId, limitSet }: LimitSetRef,
): Promise<readonly Bound[]> {
  const bounds: Bound[] = [];
  for (const limitKey of limitsOfSet(limitSet)) {
    const { slots, maxQueued }: LimitInForce = await limitOf(services, { tenantId, limitKey });
    if (maxQueued === undefined) continue;
    const isGlobal = limitKey === globalLimit.limitKey;
    bounds.push({ ...(isGlobal ? globalLimit : { tenantId, limitKey }), slots, maxQueued });
  }
  return bounds;
}

async function refused(
  db: Db,
  start: Commit,
  full: Bound | undefined,
): Promise<readonly [Commit, CommitOutcome | Error]> {
  const { workflowId } = start.previous;
  const { limitKey = "", maxQueued = 0 } = full ?? {};
  const error = new QueueFullError(workflowId, limitKey, maxQueued);
  return [start, (await startedBefore(db, start)) ?? error];
}

/** What is there already is answered, however full the queue is. */
async function startedBefore(
  db: Db,
  { previous, create }: Commit,
): Promise<CommitOutcome | undefined> {
  const key = create?.idempotency?.key;
  return key === undefined ? undefined : startedUnder(db, previous.tenantId, key);
}
