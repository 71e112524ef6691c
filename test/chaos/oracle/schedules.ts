import type { ScheduleRunView } from "@millrace/contract";
import type { Finding } from "../oracle.ts";
import type { RequestRecord, RunRecord, ScheduleRecord } from "../record.ts";
import { tickedStep } from "../schedules.ts";
import { groupBy, isAccepted, mayHaveHappened } from "./evidence.ts";

/**
 * P7: one run for each tick. What a schedule owes follows from its plan and from what its client was
 * answered; what it has done, from the ledger and from the instances. What the schedule says of itself must
 * agree with both.
 */
export function checkSchedules(record: RunRecord): readonly Finding[] {
  return [
    ...strangers(record),
    ...lost(record),
    ...record.schedules.flatMap((schedule) => {
      const facts = factsOf(record, schedule);
      return [
        tickFindings,
        owedFindings,
        rowFindings,
        skipFindings,
        overlapFindings,
        triggerFindings,
        endFindings,
      ].flatMap((check) =>
        check(facts).map(([promise, what]): Finding => [promise, `${schedule.plan.id}: ${what}`]),
      );
    }),
  ];
}

interface Facts extends ScheduleRecord {
  readonly requests: readonly RequestRecord[];
  /** Every instance that says that it is one of the schedule's. */
  readonly started: readonly Started[];
}

interface Started {
  readonly id: string;
  readonly kind: string;
  readonly tickAt: number;
  readonly status: string;
  readonly createdAt: number;
  /** Infinity while it has not settled. */
  readonly completedAt: number;
  /** On the ledger's clock; undefined where it never told it so. */
  readonly firstRunAt: number | undefined;
  readonly firstOutcomeAt: number | undefined;
}

function factsOf({ instances, requests, entries }: RunRecord, schedule: ScheduleRecord): Facts {
  const told = groupBy(entries, ({ instance }) => instance);
  const started = instances.flatMap(({ view }): Started[] => {
    const origin = originOf(view.metadata);
    if (origin?.id !== schedule.plan.id) return [];
    const first = (kind: string) =>
      told.get(view.id)?.find(({ details }) => details["kind"] === kind)?.receivedAt;
    return [
      {
        id: view.id,
        kind: origin.kind,
        tickAt: Date.parse(origin.tickAt),
        status: view.status,
        createdAt: Date.parse(view.createdAt),
        completedAt: view.completedAt === null ? Infinity : Date.parse(view.completedAt),
        firstRunAt: first("run"),
        firstOutcomeAt: first("outcome"),
      },
    ];
  });
  const own = requests.filter(({ subject }) => subject === schedule.plan.id);
  return { ...schedule, requests: own, started };
}

interface Origin {
  readonly id: string;
  readonly kind: string;
  readonly tickAt: string;
}

function originOf(metadata: unknown): Origin | undefined {
  return (metadata as { schedule?: Origin } | null)?.schedule;
}

/** The ledger knows of a run that the API does not know. */
function strangers({ entries, instances }: RunRecord): readonly Finding[] {
  const known = new Set(instances.map(({ view }) => view.id));
  const unknown = entries.filter(
    ({ step, instance }) => step === tickedStep && !known.has(instance),
  );
  return [...new Set(unknown.map(({ instance }) => instance))].map((id) => [
    "P7",
    `the ledger has a run of ${id}, and there is no such instance`,
  ]);
}

/** One that was answered 2xx is there. */
function lost({ requests, schedules }: RunRecord): readonly Finding[] {
  const there = new Set(schedules.map(({ plan }) => plan.id));
  const made = requests.filter((each) => each.operation === "schedule" && isAccepted(each));
  return made
    .filter(({ subject }) => !there.has(subject))
    .map(({ subject }) => ["P1", `schedule ${subject} was answered 2xx, and is not there`]);
}

function tickFindings(facts: Facts): readonly Finding[] {
  const { plan } = facts;
  const ticks = new Set(ticksOf(plan));
  const ran = facts.started.filter(({ kind }) => kind !== "MANUAL");
  const findings: Finding[] = [];
  for (const [tickAt, of] of groupBy(ran, (each) => each.tickAt)) {
    const tick = textOf(tickAt);
    if (of.length > 1)
      findings.push(["P7", `its tick ${tick} started ${of.map(({ id }) => id).join()}`]);
    if (!ticks.has(tickAt)) findings.push(["P7", `it has no tick ${tick}, and ran it`]);
    if (of.some(({ createdAt }) => createdAt < tickAt)) {
      findings.push(["P6", `its tick ${tick} came early`]);
    }
  }
  const sent = firstSent(facts, "schedule") ?? Infinity;
  const [from, to] = surePause(facts);
  for (const { kind, tickAt } of ran) {
    if (kind !== "TICK") continue;
    if (tickAt < sent) findings.push(["P7", `it ticked at ${textOf(tickAt)}, before it was made`]);
    if (tickAt > from && tickAt < to) {
      findings.push(["P7", `it ticked at ${textOf(tickAt)}, while it was paused`]);
    }
  }
  return findings;
}

/** What was due while it was surely there, and not paused, has come to something: P1, P7. */
function owedFindings(facts: Facts): readonly Finding[] {
  const { plan, runs, started } = facts;
  const rows = groupBy(runs.filter(isOfTick), ({ tickAt }) => Date.parse(tickAt));
  const ran = new Set(started.filter(({ kind }) => kind !== "MANUAL").map(({ tickAt }) => tickAt));
  return owedTicks(facts).flatMap((tickAt): Finding[] => {
    const tick = textOf(tickAt);
    const [row] = rows.get(tickAt) ?? [];
    if (row === undefined) return [["P7", `nothing came of its tick ${tick}`]];
    if (ran.has(tickAt)) return [];
    const mayBeSkipped: Readonly<Record<string, string>> = {
      SKIP: "OVERLAP",
      CANCEL_OTHER: "SUPERSEDED",
    };
    if (row.reason !== null && mayBeSkipped[plan.overlapPolicy] === row.reason) return [];
    return [["P7", `its tick ${tick} did not run: ${row.status} ${row.reason ?? ""}`]];
  });
}

/** What it says of its runs is what there is. */
function rowFindings({ runs, started, view }: Facts): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [tickAt, of] of groupBy(runs.filter(isOfTick), (run) => run.tickAt)) {
    if (of.length > 1) findings.push(["P7", `its tick ${tickAt} is listed ${of.length} times`]);
  }
  const byId = new Map(started.map((each) => [each.id, each]));
  const listed = new Map(runs.map((run) => [run.instanceId, run]));
  for (const { instanceId, tickAt, status } of runs) {
    if (status !== "STARTED") continue;
    const instance = byId.get(instanceId ?? "");
    if (instance?.tickAt !== Date.parse(tickAt)) {
      findings.push(["P7", `the run of ${tickAt} is said to be ${instanceId}, which is not of it`]);
    }
  }
  for (const { id } of started) {
    if (!listed.has(id)) findings.push(["P7", `${id} is a run of it, and is not listed`]);
  }
  if (view.counts.started !== started.length) {
    findings.push([
      "P7",
      `it counts ${view.counts.started} runs, and has started ${started.length}`,
    ]);
  }
  return findings;
}

/** By how much the clocks of two decisions may differ. */
const slackMs = 1_000;
/** A run has the time at which its end was decided; while Postgres is away its commit is later. */
const lateCommitMs = 10_000;

/** A tick is skipped for the sake of a run that was live. */
function skipFindings({ runs, started }: Facts): readonly Finding[] {
  return runs
    .filter(({ reason }) => reason === "OVERLAP")
    .filter(({ createdAt }) => {
      const at = Date.parse(createdAt);
      return !started.some(
        (each) => each.createdAt <= at + slackMs && each.completedAt >= at - lateCommitMs,
      );
    })
    .map(({ tickAt }) => ["P7", `its tick ${tickAt} was skipped, and nothing was live`]);
}

/** Where runs may not be beside each other, each has begun after the one before it had come to its end. */
function overlapFindings({ plan, started }: Facts): readonly Finding[] {
  if (plan.overlapPolicy === "ALLOW_ALL") return [];
  const inOrder = started.toSorted((a, b) => a.createdAt - b.createdAt);
  return inOrder.slice(1).flatMap((later, index): Finding[] => {
    const earlier = inOrder[index];
    if (earlier === undefined) return [];
    const isBeside = earlier.completedAt > later.createdAt + slackMs;
    // On one clock: who has completed has told the ledger before.
    const isCrossing =
      earlier.status === "COMPLETED" &&
      (earlier.firstOutcomeAt ?? 0) > (later.firstRunAt ?? Infinity);
    if (!isBeside && !isCrossing) return [];
    return [["P7", `its runs ${earlier.id} and ${later.id} were live at the same time`]];
  });
}

/** A run that somebody asked for, and was promised, is there; and no more than were asked for. */
function triggerFindings({ requests, started }: Facts): readonly Finding[] {
  const asked = requests.filter(({ operation }) => operation === "schedule trigger");
  const manual = started.filter(({ kind }) => kind === "MANUAL");
  const ids = new Set(manual.map(({ id }) => id));
  const findings: Finding[] = asked.flatMap(({ triggered }): Finding[] =>
    triggered === undefined || ids.has(triggered)
      ? []
      : [["P1", `a run was answered 2xx as ${triggered}, and there is none`]],
  );
  const most = asked.filter(mayHaveHappened).length;
  if (manual.length > most) {
    findings.push(["P7", `${most} runs were asked for, and ${manual.length} were started`]);
  }
  return findings;
}

function endFindings({ plan, view, started, requests }: Facts): readonly Finding[] {
  const isMade = requests.some((each) => each.operation === "schedule" && isAccepted(each));
  const findings: Finding[] =
    !isMade || view.status === "COMPLETED" ? [] : [["P12", `it is still ${view.status}`]];
  const ends = plan.overlapPolicy === "CANCEL_OTHER" ? ["COMPLETED", "CANCELLED"] : ["COMPLETED"];
  for (const { id, status } of started) {
    if (!ends.includes(status))
      findings.push(["P1", `its run ${id} should have completed, and is ${status}`]);
  }
  return findings;
}

function ticksOf({ startAt, endAt, everyMs }: ScheduleRecord["plan"]): readonly number[] {
  const count = Math.floor((endAt - startAt) / everyMs) + 1;
  return Array.from({ length: count }, (_, index) => startAt + index * everyMs);
}

function owedTicks(facts: Facts): readonly number[] {
  const { plan } = facts;
  const made = firstAnswered(facts, "schedule");
  const isBackfilled = firstAnswered(facts, "schedule backfill") < Infinity;
  const [from, to] = possiblePause(facts);
  const backfilledUntil = isBackfilled ? (firstSent(facts, "schedule backfill") ?? 0) : 0;
  return ticksOf(plan).filter((tick) => {
    if (tick <= backfilledUntil && tick > made) return true;
    return tick > made && !(tick >= from && tick <= to);
  });
}

/** From the answer to its pause until somebody asked for its end. */
function surePause(facts: Facts): readonly [from: number, to: number] {
  const from = firstAnswered(facts, "schedule pause");
  return [from, firstSent(facts, "schedule resume") ?? Infinity];
}

/** From when somebody asked for its pause until its end was answered. */
function possiblePause(facts: Facts): readonly [from: number, to: number] {
  const from = firstSent(facts, "schedule pause") ?? Infinity;
  return [from, firstAnswered(facts, "schedule resume")];
}

function firstSent({ requests }: Facts, operation: string): number | undefined {
  return requests.find((each) => each.operation === operation)?.sentAt;
}

/** Infinity where it never was accepted. */
function firstAnswered({ requests }: Facts, operation: string): number {
  const answer = requests.find((each) => each.operation === operation && isAccepted(each));
  return answer?.answeredAt ?? Infinity;
}

function isOfTick({ kind }: ScheduleRunView): boolean {
  return kind !== "MANUAL";
}

function textOf(ms: number): string {
  return new Date(ms).toISOString();
}
