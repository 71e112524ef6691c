import type { LiveExecution } from "../state/snapshot.ts";
import type { Truth } from "./check-history.ts";
import type { ChildEvidence, Evidence, Finding, TellingEvidence } from "./evidence.ts";
import { lateMs, skewMs } from "./late.ts";
import { placeText } from "./place-text.ts";
import type { Replayed } from "./replay.ts";

/** What parent and children know of one another, in both directions. */
export function checkFamily(evidence: Evidence, { snapshot, replayed }: Truth): readonly Finding[] {
  const { identity, parent, children, told, now } = evidence;
  if (snapshot === undefined) return [];
  const findings = Object.values(snapshot.live).flatMap((execution) =>
    execution.child === undefined
      ? []
      : (checkChild(evidence, execution, execution.child, replayed) ?? []),
  );
  for (const child of children) {
    const holder = Object.values(snapshot.live).find((each) => each.child === child.childId);
    findings.push(...checkChildRow(child, holder, replayed, now));
  }
  for (const telling of told) {
    if (!telling.isReadable) findings.push(unreadable(telling, evidence));
  }
  const left = told.filter(
    ({ sentAt, isReadable }) => isReadable && now.getTime() - sentAt.getTime() > lateMs,
  );
  if (snapshot.status !== "PAUSED") {
    for (const telling of left) {
      const { kind, childId, sentAt } = telling;
      const what = kind === "END" ? `the end of child ${childId}` : "that its parent cancels it";
      const message = `the instance was told ${what} at ${sentAt.toISOString()}`;
      const repair = { kind: "deliver", telling } as const;
      findings.push({ code: "CHILD_SIGNAL_LEFT", message, where: { childId }, repair });
    }
  }
  const isKnown = parent?.exists === true && parent.isLinked;
  if (identity.parent?.awaited === true && !isKnown) {
    const { instanceId } = identity.parent;
    const why = parent?.exists === true ? "does not know it" : "is not stored";
    const message = `the instance was started by ${instanceId}, which ${why}`;
    findings.push({ code: "PARENT_MISSING", message, where: {} });
  }
  return findings;
}

/** A child that has settled, and a parent, are there to say again what they said. */
function unreadable(telling: TellingEvidence, { children, parent }: Evidence): Finding {
  const { kind, childId } = telling;
  const isEnd = kind === "END";
  const child = children.find((each) => each.childId === childId);
  const isKnown = isEnd ? child?.isSettled === true && child.isLinked : parent?.exists === true;
  const what = isEnd ? `how child ${childId} has ended` : "how its parent cancels it";
  return {
    code: "CHILD_SIGNAL_UNREADABLE",
    message: `the instance was told ${what}, in a way that cannot be read`,
    where: { childId },
    ...(isKnown && { repair: { kind: "deliver", telling } }),
  };
}

/** What the row of a child has from the decision that asked for it, whose it is, and that it exists. */
function checkChildRow(
  child: ChildEvidence,
  holder: LiveExecution | undefined,
  replayed: Replayed | undefined,
  now: Date,
): readonly Finding[] {
  const { path, iteration, childId, startedAt, requestedAt, createdAt } = child;
  const asked = replayed?.isOfThisEngine
    ? replayed.starts.findLast((command) => command.childId === childId)
    : undefined;
  if (replayed?.isOfThisEngine === true && asked === undefined) return [strayChild(child)];
  const wrong = givenColumns.filter((column) => asked && asked[column] !== child[column]);
  const told = wrong.map((column) => `${column} ${child[column]}, and not ${asked?.[column]}`);
  const isHeld = holder === undefined || isOf(child, holder);
  if (!isHeld)
    told.push(`its place, and ${placeText(holder)}, attempt ${holder.attempt}, waits for it`);
  const isStarted =
    startedAt !== null &&
    startedAt.getTime() > requestedAt.getTime() - skewMs &&
    startedAt.getTime() < now.getTime() + skewMs;
  const isAskedLate = isHere(child, now) && startedAt !== null && !isStarted;
  if (isAskedLate) told.push(`requestedAt ${requestedAt.toISOString()}, after it was started`);
  const isMarked = isStarted || isAskedLate || (startedAt === null && createdAt === null);
  if (!isMarked) told.push(`startedAt ${startedAt?.toISOString() ?? "never"}, and it exists`);
  if (told.length === 0) return [];
  const place = holder && {
    path: holder.path,
    iteration: holder.iteration,
    attempt: holder.attempt,
  };
  const right = {
    ...child,
    ...asked,
    ...place,
    startedAt: isMarked ? startedAt : requestedAt,
    requestedAt: isAskedLate ? (createdAt ?? requestedAt) : requestedAt,
  };
  return [
    {
      code: "CHILD_DIFFERS",
      message: `child ${childId} of ${placeText(child)} has ${told.join("; ")}`,
      where: { path, iteration, childId },
      repair: { kind: "restoreChild", child: right },
    },
  ];
}

/** Where the child is there, and takes this instance for its parent, an operator is to say what becomes of it. */
function strayChild(child: ChildEvidence): Finding {
  const { path, iteration, childId, status, isLinked } = child;
  const isThere = status === null ? ", and is not stored" : "";
  return {
    code: "CHILD_DIFFERS",
    message: `child ${childId} of ${placeText(child)} was not asked for by the instance${isThere}`,
    where: { path, iteration, childId },
    ...(!isLinked && { repair: { kind: "removeChild", childId } }),
  };
}

/** It exists, and what says when it was started fits when it was created. */
function isHere({ createdAt, startedAt }: ChildEvidence, now: Date): boolean {
  if (createdAt === null || startedAt === null) return false;
  const started = startedAt.getTime();
  return started > createdAt.getTime() - skewMs && started < now.getTime() + skewMs;
}

function isOf({ path, iteration, attempt }: ChildEvidence, holder: LiveExecution): boolean {
  return path === holder.path && iteration === holder.iteration && attempt === holder.attempt;
}

const givenColumns = ["workflowId", "workflowVersion", "detached"] as const;

function checkChild(
  { children, told, now }: Evidence,
  execution: LiveExecution,
  childId: string,
  replayed: Replayed | undefined,
): Finding | undefined {
  const { path, iteration, attempt } = execution;
  const where = { path, iteration, childId };
  const child = children.find((each) => each.childId === childId);
  if (child === undefined) {
    const isTaken = children.some(
      (each) => each.path === path && each.iteration === iteration && each.attempt === attempt,
    );
    const start = replayed?.starts.findLast((command) => command.childId === childId);
    const repair = start !== undefined &&
      !isTaken && { kind: "commit" as const, commands: [start] };
    const message = `${placeText(execution)} waits for child ${childId}, which was never asked for`;
    return { code: "CHILD_MISSING", message, where, ...(repair && { repair }) };
  }
  // First the row is put right: the child is told whose it is by that.
  if (!isOf(child, execution)) return undefined;
  if (child.status !== null && !child.isLinked) {
    const message = `child ${childId} does not know ${placeText(execution)} as what started it`;
    return { code: "CHILD_LINK_DIFFERS", message, where, repair: { kind: "adopt", child } };
  }
  return told.some((each) => each.childId === childId)
    ? undefined
    : checkStarted(execution, child, now);
}

function checkStarted(
  execution: LiveExecution,
  child: ChildEvidence,
  now: Date,
): Finding | undefined {
  const { path, iteration } = execution;
  const { childId, startedAt, requestedAt, status, isSettled, isReported } = child;
  const where = { path, iteration, childId };
  if (startedAt === null) {
    if (now.getTime() - requestedAt.getTime() <= lateMs) return undefined;
    const message = `child ${childId} of workflow "${child.workflowId}" was asked for at ${requestedAt.toISOString()}`;
    return { code: "CHILD_NOT_STARTED", message, where };
  }
  if (status === null) {
    const message = `${placeText(execution)} waits for child ${childId}, which is not stored`;
    return { code: "CHILD_MISSING", message, where };
  }
  if (!isSettled || isReported) return undefined;
  const message = `child ${childId} is ${status}, and ${placeText(execution)} waits for it`;
  return { code: "CHILD_END_UNREPORTED", message, where, repair: { kind: "reportEnd", child } };
}
