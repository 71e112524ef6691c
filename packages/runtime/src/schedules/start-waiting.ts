import {
  giveUpWaiting,
  nextWaiting,
  noteTicks,
  readSchedule,
  settleWaiting,
  standingOf,
  withSchedule,
} from "@millrace/store";
import type { Commit, Db, LockedSchedule, ScheduleKey, ScheduleRunState } from "@millrace/store";
import type { Services } from "../services.ts";
import { createRuns, draftRun, performRuns, prepareStart, reasonOf } from "./scheduled-start.ts";
import type { ScheduledStart } from "./scheduled-start.ts";
import { countRun } from "./tick-metrics.ts";

/** What has become of a run whose turn had come. */
interface TurnTaken {
  readonly status: ScheduleRunState & ("STARTED" | "FAILED");
  readonly tickAt: Date;
  readonly commits: readonly Commit[];
}

/** Starts the run of a schedule whose turn it is, if nothing is live. */
export async function startWaiting(services: Services, key: ScheduleKey): Promise<void> {
  const { db } = services.database;
  const seen = await readSchedule(db, key);
  if (seen === undefined) return;
  const start = await prepareStart(services, seen.tenantId, seen.document);
  const taken = await services.missed.aware(() =>
    withSchedule(db, key, { ifFree: true }, async (trx, schedule) =>
      // Changed since it was seen: what it starts may be something else.
      schedule.version === seen.version ? takeTurn(services, trx, schedule, start) : undefined,
    ),
  );
  if (taken === undefined) return;
  countRun(services, taken);
  await performRuns(services, taken.commits);
}

async function takeTurn(
  services: Services,
  trx: Db,
  schedule: LockedSchedule,
  { known, refusal }: ScheduledStart,
): Promise<TurnTaken | undefined> {
  const { live } = await standingOf(trx, schedule);
  if (live.length > 0) return undefined;
  const { document, now: at, status, nextTickAt, dueAt } = schedule;
  const isPaused = status === "PAUSED";
  // They have waited under another policy: each would only be cancelled for the next one.
  const supersedes = document.overlapPolicy === "CANCEL_OTHER" && !isPaused;
  const skipped = supersedes
    ? await giveUpWaiting(trx, schedule, "SUPERSEDED", { butLast: true })
    : 0;
  const run = await nextWaiting(trx, schedule, isPaused);
  if (run === undefined) return undefined;
  const { tickAt } = run;
  const ticked = { status, nextTickAt, dueAt, lastTickAt: null };
  const none = { started: 0, skipped, missed: 0, failed: 0 };
  if (known === undefined) {
    const outcome = { status: "FAILED", ...reasonOf(refusal), instanceId: null, at } as const;
    await settleWaiting(trx, schedule, run, outcome);
    await noteTicks(trx, schedule, { ...ticked, counts: { ...none, failed: 1 } });
    return { status: "FAILED", tickAt, commits: [] };
  }
  const commit = await draftRun(services, trx, schedule, known, run);
  const instanceId = commit.previous.id;
  const outcome = { status: "STARTED", reason: null, message: null, instanceId, at } as const;
  await settleWaiting(trx, schedule, run, outcome);
  await createRuns(trx, [commit]);
  await noteTicks(trx, schedule, { ...ticked, counts: { ...none, started: 1 } });
  return { status: "STARTED", tickAt, commits: [commit] };
}
