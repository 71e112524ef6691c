import type { Truth } from "./check-history.ts";
import type { Evidence, Finding, ReplayedStep, StepEvidence } from "./evidence.ts";
import { lateMs, skewMs, timesOutOfOrder } from "./late.ts";
import { placeText } from "./place-text.ts";
import { sameStored } from "./same.ts";

/**
 * Columns that say what the history says too, each held against it. Those that workers change while a
 * step runs are looked at by `checkSteps`.
 */

/** Of a step: given when its row is written, and never changed. */
const givenColumns = [
  "stepId",
  "type",
  "taskId",
  "queue",
  "priority",
  "compensates",
  "entry",
  "timeoutMs",
  "heartbeatTimeoutMs",
] as const;

/** Of a step: written by commits alone. */
const committedColumns = ["error", "completedAt", "awaited", "items"] as const;

/** Steps are written by an engine of this revision, or their columns may have been made otherwise. */
export function checkStepColumns(
  { steps, now, history = [] }: Evidence,
  { replayed }: Truth,
): readonly Finding[] {
  if (replayed === undefined || !replayed.isOfThisEngine) return [];
  const times = history.map(({ at }) => at.getTime());
  return steps.flatMap((row) => {
    const made = replayed.steps.get(`${row.path}#${row.iteration}`);
    if (made === undefined || made.attempt !== row.attempt) return [];
    return (
      checkStep(row, made) ?? checkInput(row, made) ?? checkCreated(row, made, times, now) ?? []
    );
  });
}

function checkStep(row: StepEvidence, made: ReplayedStep): Finding | undefined {
  // When a worker took it is for the worker to say.
  const started = made.queue === null ? (["startedAt"] as const) : [];
  const columns = [...givenColumns, ...committedColumns, ...started];
  const wrong = columns.filter((column) => !sameStored(row[column], made[column]));
  if (wrong.length === 0) return undefined;
  const told = wrong.map(
    (column) => `${column} ${shown(row[column])}, by the history ${shown(made[column])}`,
  );
  const { path, iteration } = row;
  return {
    code: "STEP_DIFFERS",
    message: `${placeText(row)} has ${told.join("; ")}`,
    where: { path, iteration },
    repair: { kind: "restoreStep", step: made },
  };
}

/** Its copy is what it was computed from, and that may be what is damaged: nothing is written. */
function checkInput(row: StepEvidence, made: ReplayedStep): Finding | undefined {
  if (sameStored(row.input, made.input)) return undefined;
  const { path, iteration } = row;
  const message = `${placeText(row)} has the input ${shown(row.input)}, and what the instance and earlier steps have leads to ${shown(made.input)}`;
  return { code: "STEP_INPUT_DIFFERS", message, where: { path, iteration } };
}

/** Not before it was decided, and not after the commit that came next. Clocks and outages set it off. */
function checkCreated(
  row: StepEvidence,
  made: ReplayedStep,
  times: readonly number[],
  now: Date,
): Finding | undefined {
  const created = row.createdAt.getTime();
  const decided = made.insertedAt.getTime();
  const next = times.find((time) => time > decided) ?? now.getTime();
  if (created >= decided - lateMs && created <= next + lateMs) return undefined;
  const { path, iteration } = row;
  return {
    code: "TIMES_DISAGREE",
    message: `${placeText(row)} was created at ${row.createdAt.toISOString()}, and decided upon at ${made.insertedAt.toISOString()}`,
    where: { path, iteration },
    repair: { kind: "restoreStep", step: made, createdAt: made.insertedAt },
  };
}

/** Of the instance: when it was last written, and since when it has its status. */
export function checkInstanceTimes(evidence: Evidence): readonly Finding[] {
  const { statusAt, updatedAt, version, history = [] } = evidence;
  if (timesOutOfOrder(evidence).length > 0) return [];
  const last = history.at(-1);
  const change = history.findLast((commit, index) => index === 0 || isStatusChange(commit.changes));
  if (last?.version !== version || change === undefined) return [];
  const columns = [
    { name: "updatedAt", stored: updatedAt, made: last.at },
    { name: "statusAt", stored: statusAt, made: change.at },
  ];
  const wrong = columns.filter(({ stored, made }) => stored.getTime() !== made.getTime());
  if (wrong.length === 0) return [];
  const told = wrong.map(
    ({ name, stored, made }) =>
      `${name} ${stored.toISOString()}, by the history ${made.toISOString()}`,
  );
  return [
    {
      code: "TIMES_DISAGREE",
      message: `the instance has ${told.join("; ")}`,
      where: {},
      repair: { kind: "restoreTimes", statusAt: change.at, updatedAt: last.at },
    },
  ];
}

function isStatusChange(changes: unknown): boolean {
  return typeof changes === "object" && changes !== null && "status" in changes;
}

/** The clock of an attempt that runs: a worker or a scheduler fires it by the row. */
export function checkClocks({ steps, now }: Evidence, { snapshot }: Truth): readonly Finding[] {
  if (snapshot === undefined) return [];
  return steps.flatMap((row) => {
    const { path, iteration, status, queue, fence } = row;
    const isLive = Object.hasOwn(snapshot.live, `${path}#${iteration}`);
    if (status !== "RUNNING" || queue === null || !isLive) return [];
    const wrong = clockFault(row, now.getTime());
    if (wrong === undefined) return [];
    return {
      code: "STEP_CLOCK_DIFFERS" as const,
      message: `${placeText(row)} runs, and ${wrong}`,
      where: { path, iteration },
      repair: { kind: "restartClock" as const, path, iteration, fence },
    };
  });
}

function clockFault(row: StepEvidence, now: number): string | undefined {
  const { startedAt, dueAt, dueClock, timeoutAt, timeoutMs, heartbeatTimeoutMs } = row;
  if (startedAt === null) return "nothing says since when";
  const due = dueAt?.getTime();
  const end = timeoutAt?.getTime();
  if ((due === undefined) !== (dueClock === null)) {
    return `its clock ${dueClock ?? "without a name"} runs out at ${shown(dueAt)}`;
  }
  if (timeoutMs !== null && end === undefined) return `no end of its ${timeoutMs} ms is stored`;
  if (heartbeatTimeoutMs !== null && due === undefined) {
    return `no end of its ${heartbeatTimeoutMs} ms without a heartbeat is stored`;
  }
  if (end !== undefined && (due === undefined || due > end)) {
    return `its clock runs out at ${shown(dueAt)}, after its time at ${shown(timeoutAt)}`;
  }
  if (dueClock === "timeout" && due !== end) {
    return `its clock runs out at ${shown(dueAt)}, and its time at ${shown(timeoutAt)}`;
  }
  if (timeoutMs !== null && end !== undefined) {
    const isEarly = end < startedAt.getTime() + timeoutMs - skewMs;
    const isLate = end > now + timeoutMs + skewMs;
    if (isEarly || isLate) return `its ${timeoutMs} ms end at ${shown(timeoutAt)}`;
  }
  const isLate = due !== undefined && due > now + (heartbeatTimeoutMs ?? Infinity) + skewMs;
  return isLate ? `its heartbeat is awaited until ${shown(dueAt)}` : undefined;
}

const mostShown = 120;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "none";
  return text.length <= mostShown ? text : `${text.slice(0, mostShown)}…`;
}
