import type { Decision, Signal, Snapshot } from "@millrace/engine";
import { commitStatement } from "./commit/commit-statement.ts";
import { createStatement } from "./commit/create-statement.ts";
import { draftOf, type Draft } from "./commit/draft.ts";
import {
  brokenConstraintOf,
  DataRefusedError,
  HistoryAheadError,
  TransactionConflictError,
} from "./errors.ts";
import { explainCommits, explainCreates } from "./commit/explain.ts";
import { loadInbox } from "./inbox.ts";
import type { MatchedWait } from "./inbox.ts";
import type { Json } from "./json.ts";
import { loadInstanceForUpdate } from "./load.ts";
import { prepared, run, type Db } from "./statement.ts";
import { inTurn } from "./turns.ts";

/**
 * The commit: what one decision implies, written in one round trip and one transaction, or not at all.
 *
 * Guarded by the instance's version; by its holds, the step rows whose results it carries; and by the
 * decision's guards. Commits that come together share one statement, in which each still stands or
 * falls alone (see commit-statement.ts).
 *
 * Committing is repeatable: the same `Commit` object given twice is written once and answered
 * "committed" both times. A connection that is lost on the way leaves the commit in doubt; the caller hands it in
 * again when the database is back.
 */
export interface Commit {
  /** As decided upon. Version 0: the instance is created by this commit. */
  readonly previous: Snapshot;
  readonly decision: Decision;
  /** What was folded, in order. Outputs are not kept with them: those are in the step rows. */
  readonly signals: readonly Signal[];
  /** The time that `decide` was given. */
  readonly at: Date;
  readonly actor: string;
  /** Step results count only while this worker still holds their rows. */
  readonly holds: readonly Hold[];
  /** New executions that this worker goes on with: inserted RUNNING, and no job. */
  readonly carry: readonly Carry[];
  /** What children and parent have told the instance, and this commit has taken note of. */
  readonly received?: readonly ReceivedSignal[];
  /** Of a first commit only. */
  readonly create?: {
    readonly metadata: Json;
    readonly deadline: Date | null;
    readonly idempotency?: { readonly key: string; readonly bodyHash: string };
    /** It is a conflict where the definition has a later version by now: nobody asked before. */
    readonly ifLatest?: boolean;
  };
}

export interface Hold {
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
  readonly workerId: string;
}

export interface Carry {
  readonly path: string;
  readonly iteration: number;
  readonly workerId: string;
  /** Id of the job under which the chain travels. */
  readonly carrier: string;
  /** The task's own limits, for what the step leaves open. */
  readonly timeoutMs: number | null;
  readonly heartbeatTimeoutMs: number | null;
  /** The task's own policy, for whoever fires the clock when this worker is gone. */
  readonly retry: Json | null;
}

/** Names a row of `child_signals` that is for the instance. */
export interface ReceivedSignal {
  readonly kind: "CANCEL" | "END";
  readonly childId: string;
  readonly sentVersion: number;
}

export type CommitOutcome =
  | { readonly kind: "committed"; readonly version: number }
  /** Somebody else was first: load again, decide again. */
  | { readonly kind: "conflict" }
  /** The queue of a step that it carries is paused: decide again, and carry nothing. */
  | { readonly kind: "queuePaused" }
  /** A hold was lost: the result no longer counts, and never will. */
  | { readonly kind: "void" }
  /** The idempotency key had created another instance before. */
  | { readonly kind: "idempotent"; readonly instanceId: string; readonly bodyHash: string };

/** Most commits in one statement, most rows beside them, and most characters of JSON. */
const mostCommits = 200;
const mostRows = 5_000;
const mostCharacters = 16_000_000;

/** Tries of a statement that was given up for another transaction's sake. */
const mostTries = 5;

/**
 * Commits decisions on existing instances. Outcomes come in the order of the commits; an Error stands
 * for one that Postgres refuses for its values, whatever becomes of the others.
 *
 * @throws DatabaseUnavailableError Each of them may or may not be written: hand in all of them again.
 */
export function commitBatch(
  db: Db,
  commits: readonly Commit[],
): Promise<readonly (CommitOutcome | Error)[]> {
  return writeAll(db, commits, writeCommits);
}

/** As `commitBatch`, for first commits: their instances do not exist yet. */
export function createBatch(
  db: Db,
  commits: readonly Commit[],
): Promise<readonly (CommitOutcome | Error)[]> {
  return writeAll(db, commits, writeCreates);
}

/**
 * First commits as a part of a transaction: they are written with it, or not at all.
 *
 * @throws DataRefusedError The transaction is of no more use.
 */
export async function createWithin(
  trx: Db,
  commits: readonly Commit[],
): Promise<readonly CommitOutcome[]> {
  if (commits.length === 0) return [];
  const drafts = commits.map(draftOf);
  // What a transaction writes may be undone: nothing of it is remembered.
  const { text, values } = createStatement(drafts, undefined);
  const [answer] = await run<Written>(trx, text, values);
  return outcomesOf(trx, drafts, answer, explainCreates);
}

/** The instance that an idempotency key has started, if it has started one. */
export async function startedUnder(
  db: Db,
  tenantId: string,
  key: string,
): Promise<Extract<CommitOutcome, { kind: "idempotent" }> | undefined> {
  const rows = await run<{ instance_id: string; body_hash: string }>(db, startedUnderKey, [
    tenantId,
    key,
  ]);
  const [row] = rows;
  return row && { kind: "idempotent", instanceId: row.instance_id, bodyHash: row.body_hash };
}

const startedUnderKey = prepared(
  "started_under",
  "select instance_id, body_hash from idempotency_keys where tenant_id = $1 and key = $2",
);

export interface Locked {
  readonly snapshot: Snapshot;
  readonly inbox: readonly MatchedWait[];
  /** For whatever else the decision reads. */
  readonly trx: Db;
}

/**
 * Takes the instance's row, decides, and commits, in one transaction: slower, but nobody can come
 * between. Calls for one instance take turns within the process, so that those who wait for the row
 * do not use up the pool.
 *
 * @param build Answers undefined where there is nothing to commit.
 * @returns Undefined where there is no such instance, or nothing to commit.
 * @throws DataRefusedError, HistoryAheadError
 */
export async function commitLocked(
  db: Db,
  key: Key,
  build: (locked: Locked) => Promise<Commit | undefined>,
): Promise<CommitOutcome | undefined> {
  return inTurn(`${key.tenantId}/${key.instanceId}`, () =>
    db.transaction().execute(async (trx) => {
      const snapshot = await loadInstanceForUpdate(trx, key);
      if (snapshot === undefined) return undefined;
      const inbox = await loadInbox(trx, key);
      const commit = await build({ snapshot, inbox, trx });
      if (commit === undefined) return undefined;
      const draft = draftOf(commit);
      const drafts = [draft];
      const { text, values } = commitStatement(drafts, "wait", undefined);
      const [answer] = await run<Written>(trx, text, values).catch((error: unknown) => {
        throw error instanceof DataRefusedError ? refusalOf(error, draft) : error;
      });
      const [outcome] = await outcomesOf(trx, drafts, answer, explainCommits);
      return outcome;
    }),
  );
}

/** Names an instance. */
export interface Key {
  readonly tenantId: string;
  readonly instanceId: string;
}

/** Indexes of the commits that were written. */
export interface Written {
  readonly written: readonly number[];
}

type Write = (db: Db, drafts: readonly Draft[]) => Promise<readonly CommitOutcome[]>;

async function writeAll(
  db: Db,
  commits: readonly Commit[],
  write: Write,
): Promise<readonly (CommitOutcome | Error)[]> {
  const outcomes: (CommitOutcome | Error)[] = [];
  const seen = new Set<string>();
  const drafts: { readonly index: number; readonly draft: Draft }[] = [];
  for (const [index, commit] of commits.entries()) {
    const key = `${commit.previous.tenantId}/${commit.previous.id}`;
    // Of two on one instance only one can be first.
    if (seen.has(key)) outcomes[index] = { kind: "conflict" };
    seen.add(key);
    if (outcomes[index] !== undefined) continue;
    try {
      drafts.push({ index, draft: draftOf(commit) });
    } catch (error) {
      outcomes[index] = new DataRefusedError(
        `instance ${commit.previous.id}: ${error instanceof Error ? error.message : String(error)}`,
        error,
      );
    }
  }
  for (const chunk of chunksOf(drafts)) {
    const answers = await writeHalving(
      db,
      chunk.map(({ draft }) => draft),
      write,
    );
    for (const [at, { index }] of chunk.entries()) {
      outcomes[index] = answers[at] as CommitOutcome | Error;
    }
  }
  return outcomes;
}

function chunksOf<T extends { readonly draft: Draft }>(drafts: readonly T[]): T[][] {
  const chunks: T[][] = [];
  let [rows, size] = [0, 0];
  for (const each of drafts) {
    rows += each.draft.rows;
    size += each.draft.size;
    const last = chunks.at(-1);
    if (
      last !== undefined &&
      last.length < mostCommits &&
      rows <= mostRows &&
      size <= mostCharacters
    ) {
      last.push(each);
    } else {
      chunks.push([each]);
      [rows, size] = [each.draft.rows, each.draft.size];
    }
  }
  return chunks;
}

/** Where the values of one are refused, the batch is halved until that one stands alone. */
async function writeHalving(
  db: Db,
  drafts: readonly Draft[],
  write: Write,
): Promise<readonly (CommitOutcome | Error)[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await write(db, drafts);
    } catch (error) {
      if (error instanceof DataRefusedError) return writeHalves(db, drafts, write, error);
      if (!(error instanceof TransactionConflictError) || tries === mostTries) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 10 * 2 ** tries));
    }
  }
}

async function writeHalves(
  db: Db,
  drafts: readonly Draft[],
  write: Write,
  error: DataRefusedError,
): Promise<readonly (CommitOutcome | Error)[]> {
  const [draft] = drafts;
  if (draft !== undefined && drafts.length === 1) return [refusalOf(error, draft)];
  const half = Math.ceil(drafts.length / 2);
  return [
    ...(await writeHalving(db, drafts.slice(0, half), write)),
    ...(await writeHalving(db, drafts.slice(half), write)),
  ];
}

/** Who takes a version from another one does so in the instance's row: nobody else can be first in the history. */
function refusalOf(error: DataRefusedError, { instanceId, version }: Draft): Error {
  const isAhead = brokenConstraintOf(error) === "history_pkey";
  return isAhead ? new HistoryAheadError(instanceId, version, error.cause) : error;
}

async function writeCommits(db: Db, drafts: readonly Draft[]): Promise<readonly CommitOutcome[]> {
  const { text, values, remember } = commitStatement(drafts, "skip", db);
  const [answer] = await run<Written>(db, text, values);
  remember?.();
  return outcomesOf(db, drafts, answer, explainCommits);
}

async function writeCreates(db: Db, drafts: readonly Draft[]): Promise<readonly CommitOutcome[]> {
  const { text, values, remember } = createStatement(drafts, db);
  const [answer] = await run<Written>(db, text, values);
  remember?.();
  return outcomesOf(db, drafts, answer, explainCreates);
}

/** Only what was not written is asked about again, why: nearly always nothing, and then nothing is waited for. */
function outcomesOf(
  db: Db,
  drafts: readonly Draft[],
  answer: Written | undefined,
  explain: (db: Db, drafts: readonly Draft[]) => Promise<readonly CommitOutcome[]>,
): readonly CommitOutcome[] | Promise<readonly CommitOutcome[]> {
  const written = new Set(answer?.written);
  const left = drafts.filter((_draft, index) => !written.has(index));
  if (left.length > 0) {
    return explain(db, left).then((explained) => outcomesBy(drafts, written, explained));
  }
  return outcomesBy(drafts, written, []);
}

function outcomesBy(
  drafts: readonly Draft[],
  written: ReadonlySet<number>,
  explained: readonly CommitOutcome[],
): readonly CommitOutcome[] {
  let next = 0;
  return drafts.map((draft, index) =>
    written.has(index)
      ? { kind: "committed", version: draft.version + 1 }
      : (explained[next++] ?? { kind: "conflict" }),
  );
}
