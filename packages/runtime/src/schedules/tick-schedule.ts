import { giveUpWaiting, insertRuns, noteTicks, runsOfTicks, standingOf } from "@millrace/store";
import type {
  Commit,
  Db,
  LockedSchedule,
  NewScheduleRun,
  ScheduleCounts,
  ScheduleRunKind,
  StoredOverlapPolicy,
  StoredScheduleStatus,
} from "@millrace/store";
import { CalendarNotFoundError, ScheduleBusyError } from "../errors.ts";
import type { Services } from "../services.ts";
import { decideOverlap, dueTicks } from "./due-ticks.ts";
import type { SkipReason, TickOutcome } from "./due-ticks.ts";
import { dueAtOf, planOf } from "./plan.ts";
import { createRuns, draftRun, reasonOf } from "./scheduled-start.ts";
import type { ScheduledStart } from "./scheduled-start.ts";

/**
 * Sees to the ticks that a schedule has come to, while its row is held: the rows of their runs, the
 * instances that they start, and the schedule's next tick are one transaction. A crash leaves all of it
 * or nothing, so that no tick is lost and none comes twice (PROMISES P7).
 */
export interface Ticking {
  /** To be performed once the transaction stands. */
  readonly commits: readonly Commit[];
  readonly runs: readonly NewScheduleRun[];
  readonly status: StoredScheduleStatus;
  readonly nextTickAt: Date | null;
  readonly dueAt: Date | null;
}

/** Batches of ticks that are seen to before a change. */
const mostBatches = 10;

/**
 * Sees to all that is due before a rule ends, also to what jitter would put off.
 *
 * @throws ScheduleBusyError where there is more to do than one change can wait for.
 */
export async function tickUpToNow(
  services: Services,
  trx: Db,
  schedule: LockedSchedule,
  start: ScheduledStart,
): Promise<Ticking> {
  const { status: before, nextTickAt: from, dueAt } = schedule;
  // Nobody knows which ticks there were; the change may be what makes it good.
  if (start.calendar === null) {
    return { commits: [], runs: [], status: before, nextTickAt: from, dueAt };
  }
  const commits: Commit[] = [];
  const runs: NewScheduleRun[] = [];
  let state = schedule;
  for (let batches = 0; batches < mostBatches; batches++) {
    const ticking = await tickSchedule(services, trx, state, start, true);
    commits.push(...ticking.commits);
    runs.push(...ticking.runs);
    state = { ...state, ...ticking };
    const { status, nextTickAt } = ticking;
    const isDone = status !== "ACTIVE" || nextTickAt === null || nextTickAt > schedule.now;
    if (isDone) return { ...ticking, commits, runs };
  }
  throw new ScheduleBusyError(schedule.id);
}

/**
 * @param atOnce What jitter would put off is due, too.
 * @throws CalendarNotFoundError
 */
export async function tickSchedule(
  services: Services,
  trx: Db,
  schedule: LockedSchedule,
  start: ScheduledStart,
  atOnce = false,
): Promise<Ticking> {
  const { uid, document, createdAt, nextTickAt: from, dueAt, status, now } = schedule;
  const { calendar } = start;
  if (status !== "ACTIVE" || from === null) {
    return { commits: [], runs: [], status, nextTickAt: from, dueAt };
  }
  if (calendar === null) throw new CalendarNotFoundError(document.calendarId ?? "");
  const plan = planOf(document, createdAt, calendar);
  const { missed, missedBefore, ticks, next } = dueTicks(plan, { uid, from, now }, atOnce);
  const fresh = await notYetRun(trx, schedule, ticks);
  const never = await notYetRun(trx, schedule, missed);
  const made = await startTicks(services, trx, schedule, start, {
    kind: "TICK",
    ticks: fresh,
    policy: plan.overlapPolicy,
  });
  const lost = never.map((tickAt, index) =>
    missedRun(tickAt, now, index === never.length - 1 ? missedBefore : undefined),
  );
  await insertRuns(trx, schedule, lost);
  const ticked = {
    status: next === undefined ? ("COMPLETED" as const) : status,
    nextTickAt: next ?? null,
    dueAt: next === undefined ? null : dueAtOf(plan, uid, next),
  };
  const lastTickAt = ticks.at(-1) ?? missed.at(-1) ?? null;
  const counts = countsOf([...made.runs, ...lost], made.superseded);
  await noteTicks(trx, schedule, { ...ticked, lastTickAt, counts });
  return { commits: made.commits, runs: [...lost, ...made.runs], ...ticked };
}

export interface TicksToStart {
  readonly kind: ScheduleRunKind;
  readonly ticks: readonly Date[];
  readonly policy: StoredOverlapPolicy;
}

/** Decides what becomes of ticks that have not run, and writes it. */
export async function startTicks(
  services: Services,
  trx: Db,
  schedule: LockedSchedule,
  { known, refusal }: ScheduledStart,
  { kind, ticks, policy }: TicksToStart,
): Promise<{
  readonly commits: readonly Commit[];
  readonly runs: readonly NewScheduleRun[];
  readonly superseded: number;
}> {
  if (ticks.length === 0) return { commits: [], runs: [], superseded: 0 };
  const { live, waiting } = await standingOf(trx, schedule);
  const standing = { live: live.length, waiting };
  const { outcomes, supersedes } = decideOverlap(policy, ticks.length, standing);
  const superseded = supersedes ? await giveUpWaiting(trx, schedule, "SUPERSEDED") : 0;
  const commits: Commit[] = [];
  const runs: NewScheduleRun[] = [];
  for (const [index, tickAt] of ticks.entries()) {
    const outcome = outcomes[index] ?? "start";
    const run = { kind, tickAt, createdAt: schedule.now };
    if (isSkipped(outcome)) {
      runs.push({ ...run, ...notRun("SKIPPED", outcome, skipped[outcome]) });
    } else if (known === undefined) {
      // Found out now rather than when its turn has come.
      const { reason, message } = reasonOf(refusal);
      runs.push({ ...run, ...notRun("FAILED", reason, message) });
    } else if (outcome === "wait") {
      runs.push({ ...run, ...notRun("WAITING", null, null) });
    } else {
      const commit = await draftRun(services, trx, schedule, known, run);
      commits.push(commit);
      runs.push({ ...run, ...notRun("STARTED", null, null), instanceId: commit.previous.id });
    }
  }
  await insertRuns(trx, schedule, runs);
  await createRuns(trx, commits);
  return { commits, runs, superseded };
}

/** Those that have not run; what is too long ago to be remembered counts as run. */
export async function notYetRun(
  trx: Db,
  schedule: LockedSchedule,
  ticks: readonly Date[],
): Promise<readonly Date[]> {
  const { forgottenTo } = schedule;
  const remembered = ticks.filter((tick) => forgottenTo === null || tick > forgottenTo);
  const known = await runsOfTicks(trx, schedule, remembered);
  return remembered.filter((tick) => {
    const status = known.get(tick.getTime());
    return status === undefined || status === "SKIPPED" || status === "FAILED";
  });
}

export function countsOf(runs: readonly NewScheduleRun[], superseded = 0): ScheduleCounts {
  const count = (test: (run: NewScheduleRun) => boolean) => runs.filter(test).length;
  return {
    started: count(({ status }) => status === "STARTED"),
    skipped:
      superseded + count(({ status, reason }) => status === "SKIPPED" && reason !== "MISSED"),
    missed: count(({ reason }) => reason === "MISSED"),
    failed: count(({ status }) => status === "FAILED"),
  };
}

function missedRun(tickAt: Date, now: Date, missedBefore: Date | undefined): NewScheduleRun {
  const all =
    missedBefore === undefined
      ? ""
      : `, as are all after it and before ${missedBefore.toISOString()}`;
  const message = `it is later than the catchupWindow allows${all}`;
  return { kind: "TICK", tickAt, createdAt: now, ...notRun("SKIPPED", "MISSED", message) };
}

const skipped: Readonly<Record<SkipReason, string>> = {
  OVERLAP: "an earlier run was live",
  BUFFER_FULL: "as many runs as may wait were waiting",
  SUPERSEDED: "a later tick came before it could start",
};

function isSkipped(outcome: TickOutcome): outcome is SkipReason {
  return outcome !== "start" && outcome !== "wait";
}

function notRun(status: NewScheduleRun["status"], reason: string | null, message: string | null) {
  return { status, reason, message, instanceId: null };
}
