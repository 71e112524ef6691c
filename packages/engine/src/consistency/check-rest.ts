import { hasOpenDeadLetter } from "../decide/dead-letter.ts";
import { executionOfWait } from "../definition/paths.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { executionKey, isSettled } from "../state/snapshot.ts";
import { isStepSettled } from "../state/status.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding } from "./evidence.ts";
import { lateMs, skewMs, timesOutOfOrder } from "./late.ts";
import { placeText } from "./place-text.ts";

/** Times in the order in which things happen, and none in the future. */
export function checkTimes(evidence: Evidence, { snapshot }: Truth): readonly Finding[] {
  const { now, steps, bornAt } = evidence;
  if (snapshot === undefined) return [];
  const findings: Finding[] = [];
  const inOrder = (what: string, where: Finding["where"], ...times: readonly (Date | null)[]) => {
    const known = [...times.flatMap((time) => time ?? []), new Date(now.getTime() + lateMs)];
    const wrong = known.findIndex(
      (time, index) => index > 0 && time.getTime() + skewMs < (known[index - 1] as Date).getTime(),
    );
    if (wrong < 0) return;
    const shown = times.map((time) => time?.toISOString() ?? "–").join(", ");
    findings.push({ code: "TIMES_DISAGREE", message: `${what}: ${shown}`, where });
  };
  const { createdAt, startedAt, completedAt } = snapshot;
  inOrder(
    "the instance was created, started and completed at",
    {},
    createdAt,
    startedAt,
    completedAt,
  );
  for (const row of steps) {
    const { path, iteration } = row;
    const place = placeText(row);
    // When the row was written; what is written was decided before, long before where Postgres was away.
    inOrder(`${place} was created at`, { path, iteration }, row.createdAt);
    // A step that ends before a worker comes has no start; one that runs again has its last one.
    const what = `${place} was started and completed at`;
    inOrder(what, { path, iteration }, row.startedAt, row.completedAt);
  }
  for (const { version, before, at } of timesOutOfOrder(evidence)) {
    const first =
      before === null ? "the instance was created" : `version ${version - 1} was committed`;
    const message = `${first} at ${(before ?? bornAt).toISOString()}, and version ${version} at ${at.toISOString()}: its steps are not held against the history`;
    findings.push({ code: "TIMES_DISAGREE", message, where: { version } });
  }
  return findings;
}

/** There is one copy of it: what it was is for whoever has started the instance to say. */
export function checkGiven({ isAsGiven }: Evidence): readonly Finding[] {
  if (isAsGiven) return [];
  const message =
    "its input, correlation id, user id, workflow, version, parent or start event is not the one that it was started with";
  return [{ code: "GIVEN_DIFFERS", message, where: {} }];
}

/** A dead letter for an operator exactly where the instance says so. */
export function checkDeadLetter(
  { openDeadLetters, steps }: Evidence,
  { snapshot }: Truth,
): readonly Finding[] {
  if (snapshot === undefined) return [];
  const isOpen = hasOpenDeadLetter(snapshot);
  if (isOpen === openDeadLetters > 0) return [];
  if (!isOpen) {
    const command = { kind: "resolveDeadLetter", outcome: "DISCARDED", actor: "doctor" } as const;
    const commands = [{ ...command, reason: "the instance knows nothing of it" }];
    const message = `a dead letter is open, and the instance is ${snapshot.status}`;
    return [
      { code: "DEAD_LETTER_STRAY", message, where: {}, repair: { kind: "commit", commands } },
    ];
  }
  const poisoned = steps.findLast(({ error }) => error?.kind === "POISONED");
  const { stepId } = snapshot.compensation?.poisoned ?? snapshot.error ?? {};
  const message = `step ${stepId ?? "?"} was POISONED, and the instance waits for an operator`;
  if (poisoned?.error == null) return [{ code: "DEAD_LETTER_MISSING", message, where: {} }];
  const { path, iteration, attempt, error } = poisoned;
  const command = { kind: "openDeadLetter", path, iteration, attempt, error } as const;
  const where = { path, iteration };
  return [
    {
      code: "DEAD_LETTER_MISSING",
      message,
      where,
      repair: { kind: "commit", commands: [command] },
    },
  ];
}

/** Events that it has emitted, and those that it has had. */
export function checkEvents(
  { unmatchedEvents, deliveries, now }: Evidence,
  { snapshot }: Truth,
): readonly Finding[] {
  const findings = unmatchedEvents.flatMap(({ id, receivedAt }): readonly Finding[] => {
    if (now.getTime() - receivedAt.getTime() <= lateMs) return [];
    const message = `event ${id} was emitted at ${receivedAt.toISOString()}`;
    const repair = { kind: "matchEvent", eventId: id } as const;
    return [{ code: "EVENT_NOT_MATCHED", message, where: { eventId: id }, repair }];
  });
  if (snapshot === undefined || !isSettled(snapshot) || deliveries === 0) return findings;
  const message = `${deliveries} events are remembered`;
  const repair = { kind: "forgetDeliveries" } as const;
  return [...findings, { code: "DELIVERIES_LEFT", message, where: {}, repair }];
}

/** PROMISES P12: of an instance that goes on, something is stored that wakes it. */
export function checkWakes(evidence: Evidence, { snapshot }: Truth): readonly Finding[] {
  if (snapshot === undefined || isSettled(snapshot) || snapshot.status === "PAUSED") return [];
  if (canWake(evidence, snapshot) || hasOpenDeadLetter(snapshot)) return [];
  const live = Object.keys(snapshot.live);
  const at = live.length === 0 ? "at no step" : `at ${live.slice(0, 5).join(", ")}`;
  const message = `the instance is ${snapshot.status} ${at}: no step to run, wait, timer, child or place in a queue is stored`;
  return [{ code: "STUCK", message, where: {} }];
}

function canWake(
  { steps, waits, timers, children, told, slot }: Evidence,
  { live }: Snapshot,
): boolean {
  const isLive = ({ path, iteration }: { path: string; iteration: number }) =>
    live[executionKey(path, iteration)] !== undefined;
  return (
    timers.some(({ path, iteration }) => path === "" || isLive({ path, iteration })) ||
    waits.some(({ purpose, path, iteration }) => {
      return purpose === "STEP" && isLive({ path: executionOfWait(path).path, iteration });
    }) ||
    steps.some((row) => row.queue !== null && !isStepSettled(row.status) && isLive(row)) ||
    told.some(({ isReadable }) => isReadable) ||
    (slot !== null && slot.status !== "HELD") ||
    children.some(
      (child) => isLive(child) && (!child.isSettled || child.isReported) && isThere(child),
    )
  );
}

function isThere({ startedAt, status }: Evidence["children"][number]): boolean {
  return startedAt === null || status !== null;
}
