import { triggerPath } from "../decide/listen.ts";
import type { WaitKey } from "../decide/listen.ts";
import { waitPathsOf } from "../decide/open-waits.ts";
import type { Definition } from "../definition/definition.ts";
import { executionOfWait } from "../definition/paths.ts";
import type { Command, NewWait } from "../state/decision.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding, Repair, WaitEvidence } from "./evidence.ts";
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
  return [...missing, ...found];
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
  { hashOf, now }: Evidence,
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
    if (matchedAt === null || !isLate(matchedAt) || isSettled(snapshot)) return undefined;
    const message = `event ${matchedEventId} took the wait ${keyOf(wait)} at ${matchedAt.toISOString()}`;
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
  if (wait.isLookedBack || !isLate(wait.openedAt)) return undefined;
  const message = `the wait ${keyOf(wait)} is open since ${wait.openedAt.toISOString()}`;
  return { code: "LOOKBACK_NOT_DONE", message, where, repair: { kind: "lookBack" } };
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
