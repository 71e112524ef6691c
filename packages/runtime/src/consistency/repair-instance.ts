import { setTimeout as sleep } from "node:timers/promises";
import type { Finding, Repair, Signal, Snapshot } from "@millrace/engine";
import {
  adoptChild,
  deleteForeignSlots,
  forgetDeliveries,
  listenAgain,
  lookForSteps,
  rebuildInstance,
  releaseLostStep,
  reportChildEnd,
  removeChild,
  removeStep,
  restartClock,
  restoreChild,
  restoreFence,
  restoreActors,
  restoreHistory,
  restorePatched,
  restoreStep,
  restoreTimes,
} from "@millrace/store";
import type { Commit, Key } from "@millrace/store";
import { advance, decideLoading } from "../advance.ts";
import { PreconditionFailedError } from "../errors.ts";
import { signalsOf } from "../events/inbox.ts";
import { lookBack } from "../events/look-back.ts";
import { matchEmitted } from "../events/match-emitted.ts";
import { deliver } from "../instances/children.ts";
import { enqueueDue, perform, performAll } from "../perform.ts";
import { lapsed, lapseMs } from "../scheduler/kinds.ts";
import type { Caller, Services } from "../services.ts";
import { checkInstance, isAmong } from "./check-instance.ts";
import type { ConsistencyReport } from "./check-instance.ts";

export interface Repaired {
  readonly before: ConsistencyReport;
  /** Of those findings the ones that are no more. */
  readonly repaired: readonly Finding[];
  readonly after: ConsistencyReport;
}

/** What is mended can bring to light what else is wrong. */
const mostRounds = 4;
/** Some repairs are a worker's to finish. */
const settleMs = 2_000;

/**
 * Makes good what can be made good without an operator's judgement.
 *
 * Rows of the instance are written by a commit of its own, at the version at which they were found
 * wrong, with a line in its history; everything else is a statement that looks again whether it is
 * still so. Whatever has moved on meanwhile is left alone.
 *
 * @param ifMatch The version that the caller has read.
 * @throws InstanceNotFoundError, PreconditionFailedError
 */
export async function repairInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  ifMatch?: number,
): Promise<Repaired> {
  const { tenantId, actor } = caller;
  const key = { tenantId, instanceId };
  const before = await checkInstance(services, key);
  if (ifMatch !== undefined && ifMatch !== before.version) {
    throw new PreconditionFailedError(instanceId, ifMatch, before.version);
  }
  const found = [...before.findings];
  let after = before;
  for (let round = 0; round < mostRounds && after.findings.some(isRepairable); round++) {
    if (round > 1) await sleep(settleMs / 2);
    await mend(services, key, actor, after);
    after = await checkInstance(services, key);
    found.push(...after.findings.filter((finding) => !isAmong(finding, found)));
  }
  const repaired = found.filter(
    (finding) => isRepairable(finding) && !isAmong(finding, after.findings),
  );
  const codes = repaired.map(({ code }) => code);
  if (codes.length > 0) services.log.warn({ instanceId, actor, codes }, "instance repaired");
  return { before, repaired, after };
}

function isRepairable({ repair }: Finding): boolean {
  return repair !== undefined;
}

async function mend(
  services: Services,
  key: Key,
  actor: string,
  { version, findings }: ConsistencyReport,
): Promise<void> {
  const repairs = findings.flatMap(({ repair }) => repair ?? []);
  const signal: Signal = { kind: "repaired", actor, findings: findings.map(({ code }) => code) };
  const rebuild = repairs.find((repair) => repair.kind === "rebuild");
  if (rebuild !== undefined) {
    await rebuildFrom(services, key, { version, snapshot: rebuild.snapshot, signal, actor });
    return;
  }
  for (const repair of repairs) await restore(services, key, version, repair);
  await commitRows(services, key, { version, repairs, signal, actor });
  for (const repair of repairs) await finish(services, key, actor, repair);
}

interface Mending {
  /** At which the damage was found. */
  readonly version: number;
  readonly signal: Signal;
  readonly actor: string;
}

async function rebuildFrom(
  services: Services,
  key: Key,
  { version, snapshot, signal, actor }: Mending & { readonly snapshot: Snapshot },
): Promise<void> {
  const { db } = services.database;
  const { workflowId, workflowVersion } = snapshot;
  const { definition } = await services.definitions.get(key.tenantId, workflowId, workflowVersion);
  const at = services.clock.now();
  const signals = [signal];
  const { answer: decision } = await decideLoading(db, key, definition, snapshot, signals, at);
  await rebuildInstance(db, version, {
    previous: snapshot,
    decision,
    signals,
    at,
    actor,
    holds: [],
    carry: [],
  });
}

function isRestoring({ kind }: Repair): boolean {
  return kind.startsWith("restore") || kind.startsWith("remove");
}

/** Columns that no commit of the instance would write. */
async function restore(
  { database: { db } }: Services,
  key: Key,
  version: number,
  repair: Repair,
): Promise<void> {
  switch (repair.kind) {
    case "restoreStep":
      return restoreStep(db, key, version, repair);
    case "restoreHistory":
      return restoreHistory(db, key, version, repair.commits);
    case "restoreActors":
      return restoreActors(db, key, version, repair.commits);
    case "restorePatched":
      return restorePatched(db, key, version, repair);
    case "restoreTimes":
      return restoreTimes(db, key, version, repair);
    case "restoreChild":
      return restoreChild(db, key, version, repair.child);
    case "removeStep":
      return removeStep(db, key, version, repair);
    case "removeChild":
      return removeChild(db, key, version, repair.childId);
    case "restoreFence":
      return restoreFence(db, key, version, repair);
    default:
  }
}

type CommitRepair = Extract<Repair, { kind: "commit" }>;

async function commitRows(
  services: Services,
  key: Key,
  { version, repairs, signal, actor }: Mending & { readonly repairs: readonly Repair[] },
): Promise<void> {
  const rows = repairs.filter((repair) => repair.kind === "commit");
  if (rows.length === 0 && !repairs.some(isRestoring)) return;
  const advanced = await advance(services, key, {
    actor,
    cause: "verb",
    signals: (snapshot) => (snapshot.version === version ? [signal] : []),
    extend: (commit) => withRows(commit, rows),
  });
  if (advanced.kind !== "committed") return;
  await perform(services, advanced.commit);
  const { inserts, updates } = advanced.commit.decision;
  await addJobs(services, key, [...inserts, ...updates]);
}

async function addJobs(
  services: Services,
  key: Key,
  places: readonly { readonly path: string; readonly iteration: number }[],
): Promise<void> {
  await enqueueDue(services, await lookForSteps(services.database.db, key, places));
}

function withRows(commit: Commit, rows: readonly CommitRepair[]): Commit {
  const { decision } = commit;
  return {
    ...commit,
    decision: {
      ...decision,
      inserts: [...decision.inserts, ...rows.flatMap(({ inserts = [] }) => inserts)],
      updates: [...decision.updates, ...rows.flatMap(({ updates = [] }) => updates)],
      commands: [...decision.commands, ...rows.flatMap(({ commands = [] }) => commands)],
      guards: [...decision.guards, ...rows.flatMap(({ guards = [] }) => guards)],
    },
  };
}

/** What rows of the instance's own do not mend: the half of a protocol that somebody did not come to. */
async function finish(services: Services, key: Key, actor: string, repair: Repair): Promise<void> {
  const { db } = services.database;
  const { tenantId } = key;
  switch (repair.kind) {
    case "restoreStep":
      return addJobs(services, key, [repair.step]);
    case "restartClock":
      return restartClock(db, { ...key, ...repair });
    case "look":
    case "restoreFence":
      return addJobs(services, key, [repair]);
    case "release":
      await releaseLostStep(db, { ...key, ...repair }, lapseMs);
      await lapsed.sweep(services);
      return;
    case "applyMatches":
      return applyMatches(services, key, actor);
    case "lookBack":
      return lookBack(services, key);
    case "forgetDeliveries":
      return forgetDeliveries(db, key);
    case "leaveLimits":
      for (const limit of await deleteForeignSlots(db, key)) {
        services.queue.wake.publish("slot", { ...limit });
      }
      return;
    case "listen":
      await listenAgain(db, key);
      return lookBack(services, key);
    case "adopt":
      return adoptChild(db, key, repair.child.childId);
    case "matchEvent":
      return matchEmitted(services, [{ tenantId, id: repair.eventId }]);
    case "deliver":
      return performAll(services, await deliver(services, { ...key, ...repair.telling }));
    case "reportEnd": {
      const { childId } = repair.child;
      if (!(await reportChildEnd(db, tenantId, childId))) return;
      const sentAt = services.clock.now();
      await deliver(services, { ...key, kind: "END", childId, sentAt });
      return;
    }
    case "restoreHistory":
    case "restoreActors":
    case "restorePatched":
    case "restoreTimes":
    case "restoreChild":
    case "removeStep":
    case "removeChild":
    case "commit":
    case "rebuild":
  }
}

async function applyMatches(services: Services, key: Key, actor: string): Promise<void> {
  const advanced = await advance(services, key, {
    actor,
    cause: "event",
    inbox: true,
    signals: (_snapshot, inbox) => signalsOf(inbox),
  });
  if (advanced.kind === "committed") await perform(services, advanced.commit);
}
