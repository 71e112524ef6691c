import { triggerPath } from "../decide/listen.ts";
import type { WaitKey } from "../decide/listen.ts";
import { waitPathsOf } from "../decide/open-waits.ts";
import type { Definition } from "../definition/definition.ts";
import type { Json } from "@millrace/expressions";
import { executionOfWait } from "../definition/paths.ts";
import type { Command, NewWait } from "../state/decision.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding, Repair, StepEvidence, WaitEvidence } from "./evidence.ts";
import { lateMs } from "./late.ts";
import type { ReplayedWait } from "./replay.ts";

/** The stored waits against those that the instance has open, its cancellation triggers among them. */
export function checkWaits(evidence: Evidence, { snapshot, replayed }: Truth): readonly Finding[] {
  const { definition, waits } = evidence;
  if (snapshot === undefined || definition === undefined) return [];
  const stored = new Map(waits.map((wait) => [keyOf(wait), wait]));
  const open = replayed?.waits;
  const expected = open === undefined ? openIn(definition, snapshot) : new Set(open.keys());
  const missing = [...expected].flatMap((key) =>
    stored.has(key) ? [] : [missingWait(key, open?.get(key))],
  );
  const found = waits.flatMap((wait) => {
    const key = keyOf(wait);
    if (!expected.has(key)) return [stray(wait)];
    const known = open?.get(key);
    return (
      checkWait(evidence, snapshot, wait, known, known?.wait.key ?? keyIn(snapshot, wait)) ?? []
    );
  });
  return [...missing, ...heldAgainstInput(evidence, open, found), ...unheard(evidence, expected)];
}

/**
 * There is one copy of the input. Where all keys differ that may rest on it, it may be the damaged one,
 * and the waits as they should be: then nothing is written.
 */
function heldAgainstInput(
  { identity, waits, hashOf }: Evidence,
  open: ReadonlyMap<string, ReplayedWait> | undefined,
  found: readonly Finding[],
): readonly Finding[] {
  const isOfInput = partOf(identity.input);
  const keyed = waits.flatMap((wait) => {
    const key = open?.get(keyOf(wait))?.wait.key;
    if (key === undefined || key === "NEVER" || wait.matchedEventId !== null) return [];
    return [{ wait, key, isSame: hashOf(key) === wait.keyHash }];
  });
  const doubtful = new Set(
    keyed.flatMap(({ wait, key, isSame }) => (isSame || key.length === 0 ? [] : [keyOf(wait)])),
  );
  if (keyed.some(({ key, isSame }) => isSame && key.some(isOfInput))) return found;
  return found.map(({ repair, ...finding }) => {
    const { code, where, message } = finding;
    const key = executionKey(where.path ?? "", where.iteration ?? 0);
    if (code === "WAIT_DIFFERS" && doubtful.has(key)) {
      const doubt = "where its key rests on the instance's input, that may be the damaged one";
      return { ...finding, message: `${message}; ${doubt}` };
    }
    return repair === undefined ? finding : { ...finding, repair };
  });
}

/** Whether a value is found anywhere in the input. */
function partOf(input: Json): (value: Json) => boolean {
  const leaves = new Set<Json>();
  const pending: Json[] = [input];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === "object" && next !== null) pending.push(...Object.values(next));
    else leaves.add(next);
  }
  return (value) => leaves.has(value);
}

/** Waits, and start triggers of the workflow, that no event is looked up for. */
function unheard(
  { waits, hasStartShapes, identity }: Evidence,
  expected: ReadonlySet<string>,
): readonly Finding[] {
  const repair: Repair = { kind: "listen" };
  const missing = waits.filter(
    (wait) => !wait.hasShape && wait.matchedEventId === null && expected.has(keyOf(wait)),
  );
  const findings = missing.map((wait): Finding => {
    const { path, iteration, pattern } = wait;
    const message = `no event is looked up as the wait ${keyOf(wait)} for ${pattern} is keyed`;
    return { code: "SHAPE_MISSING", message, where: { path, iteration }, repair };
  });
  if (hasStartShapes) return findings;
  const message = `no event is looked up as a start trigger of workflow "${identity.workflowId}" is keyed`;
  return [...findings, { code: "SHAPE_MISSING", message, where: {}, repair }];
}

function keyOf({ path, iteration }: { path: string; iteration: number }): string {
  return executionKey(path, iteration);
}

function openIn({ cancellationTriggers, steps }: Definition, snapshot: Snapshot): Set<string> {
  const triggers = isTerminal(snapshot.status) ? [] : cancellationTriggers;
  const waiting = Object.values(snapshot.live).flatMap((execution) => {
    const { stepId, phase, iteration } = execution;
    if (phase !== "WAITING" || steps.get(stepId)?.type !== "EVENT_WAIT") return [];
    return waitPathsOf(execution).map((path) => executionKey(path, iteration));
  });
  return new Set([
    ...triggers.map((_trigger, index) => executionKey(triggerPath, index + 1)),
    ...waiting,
  ]);
}

/** The snapshot has the keys that can change. */
function keyIn(
  { live, triggerKeys }: Snapshot,
  { path, iteration }: WaitEvidence,
): WaitKey | undefined {
  if (path === triggerPath) return triggerKeys[iteration];
  const { path: of, place } = executionOfWait(path);
  const execution = live[executionKey(of, iteration)];
  return place === undefined ? execution?.waitKey : (execution?.awaiting?.[place] ?? undefined);
}

function missingWait(key: string, known: ReplayedWait | undefined): Finding {
  const at = key.lastIndexOf("#");
  const where = { path: key.slice(0, at), iteration: Number(key.slice(at + 1)) };
  return {
    code: "WAIT_MISSING",
    message: `no wait is stored for ${key}${known ? `, pattern ${known.wait.pattern}` : ""}`,
    where,
    ...(known && { repair: openAgain(known) }),
  };
}

function stray(wait: WaitEvidence): Finding {
  const { path, iteration, pattern } = wait;
  const command: Command = { kind: "closeWait", path, iteration };
  return {
    code: "WAIT_STRAY",
    message: `a wait for ${pattern} is stored under ${keyOf(wait)}, and the instance has none there`,
    where: { path, iteration },
    repair: { kind: "commit", commands: [command] },
  };
}

function checkWait(
  { hashOf, now, steps }: Evidence,
  snapshot: Snapshot,
  wait: WaitEvidence,
  known: ReplayedWait | undefined,
  key: WaitKey | undefined,
): Finding | undefined {
  const { path, iteration, pattern, matchedEventId, matchedAt } = wait;
  const where = { path, iteration };
  const isLate = (since: Date) =>
    now.getTime() - since.getTime() > lateMs && snapshot.status !== "PAUSED";
  if (matchedEventId !== null) {
    if (!wait.hasEvent) {
      const message = `event ${matchedEventId} has taken the wait ${keyOf(wait)}, and is not stored`;
      const repair = known && { repair: openAgain(known) };
      return {
        code: "WAIT_EVENT_MISSING",
        message,
        where: { ...where, eventId: matchedEventId },
        ...repair,
      };
    }
    // Without its time no scheduler finds it either.
    if ((matchedAt !== null && !isLate(matchedAt)) || isSettled(snapshot)) return undefined;
    const since =
      matchedAt === null ? "at a time that is not stored" : `at ${matchedAt.toISOString()}`;
    const message = `event ${matchedEventId} took the wait ${keyOf(wait)} ${since}`;
    return { code: "MATCH_NOT_APPLIED", message, where, repair: { kind: "applyMatches" } };
  }
  const keyHash = key === undefined ? wait.keyHash : key === "NEVER" ? null : hashOf(key);
  const differs =
    keyHash !== wait.keyHash || (known !== undefined && !isSameWait(known.wait, wait));
  if (differs) {
    const message = `the wait ${keyOf(wait)} is for ${pattern} with key ${wait.keyHash ?? "none"}, and the instance's for ${known?.wait.pattern ?? pattern} with key ${keyHash ?? "none"}`;
    const guarded = known && { repair: openAgain(known, wait) };
    return { code: "WAIT_DIFFERS", message, where, ...guarded };
  }
  if (!wait.isLookedBack && isLate(wait.openedAt)) {
    const message = `the wait ${keyOf(wait)} is open since ${wait.openedAt.toISOString()}`;
    return { code: "LOOKBACK_NOT_DONE", message, where, repair: { kind: "lookBack" } };
  }
  const times = known && hearingDiffers(known, wait, writtenAt(steps, wait));
  if (times !== undefined && known !== undefined) {
    return { code: "WAIT_DIFFERS", message: times, where, repair: openAgain(known, wait) };
  }
  const shouldHold = snapshot.status === "PAUSED" && wait.purpose === "STEP";
  if (wait.held !== shouldHold) {
    const message = `the wait ${keyOf(wait)} is ${wait.held ? "" : "not "}held, and the instance ${snapshot.status}`;
    const waits = [{ path, iteration }];
    const kind = shouldHold ? "hold" : "letGo";
    const commands = [{ kind, executions: [], timers: [], waits } as const];
    return { code: "WAIT_DIFFERS", message, where, repair: { kind: "commit", commands } };
  }
  return undefined;
}

/** When the commit that began its step was written, the oldest where it is none of a step. */
function writtenAt(steps: readonly StepEvidence[], { path, iteration }: WaitEvidence): Date {
  const of = executionOfWait(path).path;
  const row = steps.find((step) => step.path === of && step.iteration === iteration) ?? steps[0];
  return row?.createdAt ?? new Date(0);
}

/** From when on it hears: since its commit was written, which takes a while where Postgres is away. */
function hearingDiffers(
  { wait: made, at }: ReplayedWait,
  wait: WaitEvidence,
  written: Date,
): string | undefined {
  const { openedAt, lookbackFrom } = wait;
  const from = (opened: Date, lookback: Date | null) =>
    Math.min(opened.getTime(), lookback?.getTime() ?? Infinity);
  const isLate =
    from(openedAt, lookbackFrom) > from(written > at ? written : at, made.lookbackFrom) + lateMs;
  const isEarly = from(openedAt, lookbackFrom) < from(at, made.lookbackFrom) - lateMs;
  if (!isLate && !isEarly) return undefined;
  const heard = new Date(from(openedAt, lookbackFrom)).toISOString();
  return `the wait ${keyOf(wait)} hears from ${heard} on, and should from ${new Date(from(at, made.lookbackFrom)).toISOString()} on`;
}

function isSameWait(made: NewWait, wait: WaitEvidence): boolean {
  return (
    made.pattern === wait.pattern &&
    made.purpose === wait.purpose &&
    made.stepId === wait.stepId &&
    made.deliver === wait.deliver &&
    made.eventPaths.join(" ") === wait.eventPaths
  );
}

/** It also looks for the events that came since it was opened first, and did not find it. */
function openAgain({ wait, at }: ReplayedWait, stored?: WaitEvidence): Repair {
  const { lookbackFrom } = wait;
  const from = lookbackFrom !== null && lookbackFrom < at ? lookbackFrom : at;
  const reopened: NewWait = { ...wait, lookbackFrom: from, emittedBefore: 0 };
  const { path, iteration } = wait;
  return {
    kind: "commit",
    commands: [{ kind: "openWait", wait: reopened }],
    // An event may have taken it since it was looked at.
    ...(stored?.isLookedBack === true && { guards: [{ kind: "waitUnmatched", path, iteration }] }),
  };
}
