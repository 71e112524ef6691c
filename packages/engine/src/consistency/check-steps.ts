import { isHeldBack } from "../decide/slot.ts";
import type { ExecutionUpdate } from "../state/decision.ts";
import type { LiveExecution, Snapshot } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { isStepSettled } from "../state/status.ts";
import type { StepStatus } from "../state/status.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding, ReplayedStep, StepEvidence, Where } from "./evidence.ts";
import { placeText } from "./place-text.ts";
import type { Replayed } from "./replay.ts";

/** The step rows against what is live of the instance, and against what its history made of them. */
export function checkSteps(
  { steps, now }: Evidence,
  { snapshot, replayed }: Truth,
): readonly Finding[] {
  if (snapshot === undefined) return [];
  const rows = new Map(steps.map((row) => [executionKey(row.path, row.iteration), row]));
  const findings = new Map<string, Finding>();
  const find = (key: string, finding: Finding | undefined) => {
    if (finding !== undefined && !findings.has(key)) findings.set(key, finding);
  };
  for (const [key, execution] of Object.entries(snapshot.live)) {
    find(key, checkLive(execution, rows.get(key), replayed?.steps.get(key)));
  }
  const isExact = replayed?.isOfThisEngine === true;
  for (const [key, step] of replayed?.steps ?? []) {
    find(key, checkSettled(step, rows.get(key), isExact));
  }
  for (const [key, row] of rows) find(key, checkRow(row, key, snapshot, replayed, now));
  const found = [...findings.values()];
  return found.some(({ code }) => code === "STEP_MISSING") ? found.map(kept) : found;
}

/** A stray row may be the one that is missing, under another path: nobody deletes it then. */
function kept(finding: Finding): Finding {
  if (finding.repair?.kind !== "removeStep") return finding;
  const { repair: _notNow, ...rest } = finding;
  return rest;
}

/** The statuses that a row can have while its execution is in this phase. */
const statusesIn: Readonly<Record<LiveExecution["phase"], readonly StepStatus[]>> = {
  ACTIVE: ["PENDING", "RUNNING", "RETRYING"],
  WAITING: ["WAITING", "RETRYING"],
  AWAITED: ["RUNNING", "WAITING"],
  READY: [],
  OPEN: ["RUNNING"],
  HELD: ["COMPLETED", "FAILED"],
};

function checkLive(
  execution: LiveExecution,
  row: StepEvidence | undefined,
  made: ReplayedStep | undefined,
): Finding | undefined {
  const { path, iteration, phase, attempt } = execution;
  const allowed = statusesIn[phase];
  if (allowed === undefined) return undefined;
  if (row === undefined) return allowed.length === 0 ? undefined : missing(execution, made);
  if (allowed.includes(row.status) && row.attempt === attempt) return checkRetry(row, made);
  const message = `${placeText(execution)} is ${phase} at attempt ${attempt}, and its row ${row.status} at attempt ${row.attempt}`;
  return differs({ path, iteration }, message, made);
}

/** When the next attempt may start is the history's to say: a worker that takes it makes it RUNNING. */
function checkRetry(row: StepEvidence, made: ReplayedStep | undefined): Finding | undefined {
  const { path, iteration, status, attempt, retryAt } = row;
  if (status !== "RETRYING") return undefined;
  const isKnown = made?.status === status && made.attempt === attempt;
  const isSame = isKnown
    ? retryAt?.getTime() === made.retryAt?.getTime()
    : retryAt !== null || row.queue === null;
  if (isSame) return undefined;
  const should = isKnown ? `, by the history at ${timeText(made.retryAt)}` : "";
  const message = `${placeText(row)} is to be tried again at ${timeText(retryAt)}${should}`;
  return differs({ path, iteration }, message, made);
}

function timeText(time: Date | null): string {
  return time?.toISOString() ?? "no time";
}

function missing(
  { path, iteration }: { readonly path: string; readonly iteration: number },
  made: ReplayedStep | undefined,
): Finding {
  return {
    code: "STEP_MISSING",
    message: `${placeText({ path, iteration })} has no row`,
    where: { path, iteration },
    ...(made && { repair: { kind: "commit", inserts: [made] } }),
  };
}

/**
 * What has settled stays as it is. What is live may be moved by workers, and is looked at elsewhere.
 *
 * @param isExact Whether the running engine wrote it: an earlier one did not note whether what was stopped had
 *   begun, and counted its attempts otherwise.
 */
function checkSettled(
  made: ReplayedStep,
  row: StepEvidence | undefined,
  isExact: boolean,
): Finding | undefined {
  if (!isStepSettled(made.status)) return undefined;
  if (row === undefined) return missing(made, undefined);
  const { path, iteration } = made;
  const where = { path, iteration };
  if (row.completion !== made.completion) {
    const message = `${placeText(row)} has completion number ${row.completion ?? "none"}, by the history ${made.completion ?? "none"}`;
    return { code: "COMPLETIONS_DIFFER", message, where, ...repairOf(made) };
  }
  const isSame =
    row.status === made.status &&
    (row.attempt === made.attempt || !isExact) &&
    (row.error === null) === (made.error === null);
  if (isSame) return undefined;
  const message = `${placeText(row)} is ${row.status} at attempt ${row.attempt}, by the history ${made.status} at attempt ${made.attempt}`;
  return differs(where, message, made);
}

function checkRow(
  row: StepEvidence,
  key: string,
  { live }: Snapshot,
  replayed: Replayed | undefined,
  now: Date,
): Finding | undefined {
  const { path, iteration, status, attempt, completion, error } = row;
  const where = { path, iteration };
  if (replayed?.isOfThisEngine === true && !replayed.steps.has(key)) {
    const message = `${placeText(row)} is ${status}, and no decision of the instance has begun it`;
    return { code: "STEP_STRAY", message, where, repair: { kind: "removeStep", ...where } };
  }
  if (!isStepSettled(status) && !Object.hasOwn(live, key)) {
    const cancelled = { ...settledUpdate, path, iteration, attempt, completedAt: now };
    return {
      code: "STEP_STRAY",
      message: `${placeText(row)} is ${status}, and the instance is not at it`,
      where,
      repair: { kind: "commit", updates: [cancelled] },
    };
  }
  // One that failed in being left has completed, and says what it failed with.
  const isDone = status === "COMPLETED" || (status === "FAILED" && error !== null);
  if (completion !== null && !isDone) {
    const message = `${placeText(row)} is ${status}, and has completion number ${completion}`;
    const made = replayed?.steps.get(key);
    const repair = made && ({ kind: "restoreStep", step: made } as const);
    return { code: "STEP_DIFFERS", message, where, ...(repair && { repair }) };
  }
  return undefined;
}

const settledUpdate: Omit<ExecutionUpdate, "path" | "iteration" | "attempt" | "completedAt"> = {
  status: "CANCELLED",
  output: undefined,
  error: null,
  completion: null,
  retryAt: null,
  awaited: false,
};

function differs(where: Where, message: string, made: ReplayedStep | undefined): Finding {
  return { code: "STEP_DIFFERS", message, where, ...repairOf(made) };
}

function repairOf(made: ReplayedStep | undefined): Pick<Finding, "repair"> {
  if (made === undefined) return {};
  const { path, iteration, status, attempt, output, error, completion, items } = made;
  const { completedAt, retryAt, awaited } = made;
  const update = { path, iteration, status, attempt, output, error, completion, items };
  return {
    repair: { kind: "commit", updates: [{ ...update, completedAt, retryAt, awaited }] },
  };
}

/** Numbers from 1 to the last one given, each once: what has been undone in which order is by them. */
export function checkCompletions(
  { steps }: Evidence,
  { snapshot, replayed }: Truth,
): readonly Finding[] {
  // Where the history says which one is whose, each step is held against it.
  if (snapshot === undefined || replayed !== undefined) return [];
  const numbers = steps.flatMap(({ completion }) => completion ?? []).toSorted((a, b) => a - b);
  const wrong = numbers.findIndex((number, index) => number !== index + 1);
  if (wrong < 0 && numbers.length === snapshot.completions) return [];
  const message = `${snapshot.completions} completion numbers were given, and the steps have ${numbers.length}, not 1 to ${snapshot.completions} each once`;
  return [{ code: "COMPLETIONS_DIFFER", message, where: {} }];
}

/** Not more than there is, and no less than nothing. */
export function checkProgress({ definition }: Evidence, { snapshot }: Truth): readonly Finding[] {
  if (definition === undefined || snapshot === undefined) return [];
  const { completedSteps, begunItems, completions, countedSteps } = snapshot;
  const total = definition.size + begunItems;
  const isSound =
    completedSteps >= 0 &&
    completedSteps <= total &&
    completions >= 0 &&
    new Set(countedSteps).size === countedSteps.length;
  if (isSound) return [];
  const message = `${completedSteps} of ${total} steps and items have completed`;
  return [{ code: "PROGRESS_DIFFERS", message, where: {} }];
}

/**
 * A beat that is older is none: whoever looks for lapsed holders should have been there long ago. After an outage
 * of the database, in which nobody beats, workers have time to be heard of again.
 */
const silentMs = 30_000;

/** Steps that are to run: somebody holds each, or looks after it. */
export function checkHolders({ steps, now }: Evidence, { snapshot }: Truth): readonly Finding[] {
  if (snapshot === undefined) return [];
  return steps.flatMap((row) => checkHolder(row, snapshot, now) ?? []);
}

/** Beyond it a claim cannot count on. */
const highestFence = 2_147_483_647;

/** Looks are 10 min apart at most, and spread over minutes after a queue was lost. */
const longestLookMs = 3_600_000;

function isOverlooked({ lookAt, retryAt }: StepEvidence, now: Date): boolean {
  if (lookAt === null) return true;
  const ready = Math.max(now.getTime(), retryAt?.getTime() ?? 0);
  return lookAt.getTime() > ready + longestLookMs;
}

function checkHolder(row: StepEvidence, snapshot: Snapshot, now: Date): Finding | undefined {
  const { path, iteration, status, attempt, fence, queue, held, workerId } = row;
  const execution = snapshot.live[executionKey(path, iteration)];
  if (queue === null || execution === undefined) return undefined;
  const where = { path, iteration };
  const claim = { path, iteration, attempt, fence, workerId };
  const shouldHold = isHeldBack(snapshot) && execution.phase === "ACTIVE";
  if (held !== shouldHold && status !== "RUNNING") {
    const kind = shouldHold ? "hold" : "letGo";
    const command = { kind, executions: [{ path, iteration }], timers: [], waits: [] } as const;
    const message = `${placeText(row)} is ${held ? "" : "not "}held, and the instance ${snapshot.status}`;
    return {
      code: "STEP_HOLD_DIFFERS",
      message,
      where,
      repair: { kind: "commit", commands: [command] },
    };
  }
  const isReady = status === "PENDING" || status === "RETRYING";
  if (isReady && (fence < 0 || fence >= highestFence)) {
    const message = `${placeText(row)} was taken ${fence} times by its row, so that nobody can take it`;
    const repair = { kind: "restoreFence", path, iteration, fence } as const;
    return { code: "STEP_DIFFERS", message, where, repair };
  }
  if (isReady && isOverlooked(row, now)) {
    if (held || row.blocked !== null) return undefined;
    const until = row.lookAt === null ? "" : ` before ${row.lookAt.toISOString()}`;
    const message = `${placeText(row)} is ${status}, and nobody looks whether its job is there${until}`;
    return { code: "STEP_OVERLOOKED", message, where, repair: { kind: "look", ...claim } };
  }
  if (status !== "RUNNING" || row.awaited) return undefined;
  const begunMs = now.getTime() - (row.startedAt ?? row.createdAt).getTime();
  const isLost = row.silentMs === null ? begunMs > silentMs : row.silentMs > silentMs;
  if (!isLost) return undefined;
  const heard =
    row.silentMs === null
      ? "there is none of that name"
      : `it was last heard of ${Math.round(row.silentMs / 1_000)} s ago`;
  const message = `${placeText(row)} runs on worker ${workerId ?? "?"}, and ${heard}`;
  return { code: "STEP_HOLDER_LOST", message, where, repair: { kind: "release", ...claim } };
}
