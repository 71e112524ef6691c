import { decide, noReads } from "@millrace/engine";
import type { Decision, Definition, Reads, Signal, Snapshot } from "@millrace/engine";
import { commitLocked } from "@millrace/store";
import type { Commit, CommitOutcome, Db, Key, MatchedWait } from "@millrace/store";
import { answerLoading } from "./answer.ts";
import type { Answered } from "./answer.ts";
import { BusyError, InstanceNotFoundError } from "./errors.ts";
import { loadRows } from "./load-rows.ts";
import type { Services } from "./services.ts";

/**
 * Load, decide, commit, and again when somebody else was first.
 *
 * A conflict is told by the version alone: the decision is thrown away whole and taken anew from what
 * is stored now. After the second conflict the instance's row is taken first, so that everybody gets
 * through in turn.
 */

/** Conflicts met without the row lock before it is taken. */
const freeTries = 2;
/**
 * With the row taken the version cannot move any more; a claim or a match can still change a step or
 * a wait that the decision relied on. Each of these happens once.
 */
const lockedTries = 10;

export interface Intent {
  readonly actor: string;
  /** What is to be committed, for the metric of conflicts. */
  readonly cause: "result" | "event" | "timer" | "verb" | "cancel" | "admission" | "reconciler";
  /** What happened, given the instance as it is now; none: nothing is to be done. */
  readonly signals: (snapshot: Snapshot, inbox: readonly MatchedWait[]) => readonly Signal[];
  /** Also hand over matched waits that are not applied yet. */
  readonly inbox?: boolean;
  /** Also where nothing has happened: it may have limits to take note of. */
  readonly alsoLimits?: boolean;
  /** What else is written in the transaction of the commit, which then takes the row first. */
  readonly within?: ((trx: Db) => Promise<void>) | undefined;
  /** What stands for a definition that is not stored any more; without it nothing can be decided then. */
  readonly remains?: Definition | undefined;
  /**
   * Parts of the commit that only the caller knows: holds, carry.
   *
   * @param mayCarry Not once the queue of what was to be carried was found paused.
   */
  readonly extend?: (commit: Commit, definition: Definition, mayCarry: boolean) => Commit;
}

export type Advanced =
  | { readonly kind: "committed"; readonly before: Snapshot; readonly commit: Commit }
  /** The signals changed nothing. */
  | { readonly kind: "void"; readonly snapshot: Snapshot }
  /** A hold was lost: somebody else has the step now. */
  | { readonly kind: "lost"; readonly snapshot: Snapshot };

/** @throws InstanceNotFoundError, BusyError */
export async function advance(services: Services, key: Key, intent: Intent): Promise<Advanced> {
  let mayCarry = true;
  for (let attempt = 0; attempt < freeTries + lockedTries; attempt++) {
    const isFree = attempt < freeTries && intent.within === undefined;
    const attemptOnce = isFree ? tryOnce : tryLocked;
    const advanced = await attemptOnce(services, key, intent, mayCarry);
    if (advanced.kind !== "conflict" && advanced.kind !== "queuePaused") return advanced;
    if (advanced.kind === "queuePaused") mayCarry = false;
    services.metrics.commitConflicts.add({ cause: intent.cause });
  }
  throw new BusyError(key.instanceId);
}

type Tried = Advanced | Extract<CommitOutcome, { readonly kind: "conflict" | "queuePaused" }>;

async function tryOnce(
  services: Services,
  key: Key,
  intent: Intent,
  mayCarry: boolean,
): Promise<Tried> {
  // Side by side: the commit's version and its guards on waits tell whether they belong together.
  const [snapshot, inbox] = await Promise.all([
    services.load.instance(key),
    intent.inbox === true ? services.load.inbox(key) : [],
  ]);
  if (snapshot === undefined) throw new InstanceNotFoundError(key.instanceId);
  const commit = await draft(services, key, snapshot, inbox, { intent, mayCarry });
  if (commit === undefined) return { kind: "void", snapshot };
  return advancedBy(await services.commit(commit), snapshot, commit);
}

/** Takes the row first: slower, but only rows that the version does not guard can get ahead. */
async function tryLocked(
  services: Services,
  key: Key,
  intent: Intent,
  mayCarry: boolean,
): Promise<Tried> {
  const drafted: { advanced?: Advanced } = {};
  const outcome = await services.missed.aware(() =>
    commitLocked(services.database.db, key, async ({ snapshot, inbox: matched, trx }) => {
      const inbox = intent.inbox === true ? matched : [];
      const commit = await draft(services, key, snapshot, inbox, { intent, mayCarry }, trx);
      drafted.advanced =
        commit === undefined
          ? { kind: "void", snapshot }
          : { kind: "committed", before: snapshot, commit };
      if (commit !== undefined) await intent.within?.(trx);
      return commit;
    }),
  );
  const { advanced } = drafted;
  if (advanced === undefined) throw new InstanceNotFoundError(key.instanceId);
  if (advanced.kind !== "committed" || outcome === undefined) return advanced;
  return advancedBy(outcome, advanced.before, advanced.commit);
}

function advancedBy(outcome: CommitOutcome, before: Snapshot, commit: Commit): Tried {
  if (outcome.kind === "committed") return { kind: "committed", before, commit };
  if (outcome.kind === "void") return { kind: "lost", snapshot: before };
  return { kind: outcome.kind === "queuePaused" ? "queuePaused" : "conflict" };
}

async function draft(
  services: Services,
  key: Key,
  snapshot: Snapshot,
  inbox: readonly MatchedWait[],
  { intent, mayCarry }: { readonly intent: Intent; readonly mayCarry: boolean },
  db = services.database.db,
): Promise<Commit | undefined> {
  const given = intent.signals(snapshot, inbox);
  if (given.length === 0 && intent.alsoLimits !== true) return undefined;
  const { workflowId, workflowVersion } = snapshot;
  const definition =
    intent.remains ??
    (await services.definitions.get(key.tenantId, workflowId, workflowVersion)).definition;
  const { limits } = services;
  const isOld = limits.refresh(db);
  if (isOld !== undefined) await isOld;
  const noted =
    intent.remains === undefined ? limits.noteFor(definition, snapshot, given) : undefined;
  const signals = noted === undefined ? given : [noted, ...given];
  if (signals.length === 0) return undefined;
  const at = services.clock.now();
  const { answer: decision } = await decideLoading(db, key, definition, snapshot, signals, at);
  if (decision.snapshot === snapshot) return undefined;
  const commit: Commit = {
    previous: snapshot,
    decision,
    signals,
    at,
    actor: intent.actor,
    holds: [],
    carry: [],
  };
  return intent.extend?.(commit, definition, mayCarry) ?? commit;
}

/** Decides, loading what the decision says it needs. */
export function decideLoading(
  db: Services["database"]["db"],
  key: Key,
  definition: Definition,
  snapshot: Snapshot,
  signals: readonly Signal[],
  now: Date,
  known: Reads = noReads,
): Answered<Decision> | Promise<Answered<Decision>> {
  return answerLoading(
    `instance ${key.instanceId}`,
    (given) => decide(definition, snapshot, signals, given, now),
    (requests) => loadRows(db, key, requests),
    known,
  );
}
