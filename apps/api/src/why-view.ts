import { isTerminalStatus } from "@millrace/contract";
import type { InstanceStatus, NearMissView, WhyReasonView, WhyView } from "@millrace/contract";
import { leastOfSuspects } from "@millrace/runtime";
import type { NearMiss, Reason, Why } from "@millrace/runtime";
import { errorView, json, time } from "./views.ts";

/** Why an instance is not moving, in words and in facts. */
export function whyView({ snapshot, at, reasons }: Why): WhyView {
  const views = reasons.map((reason) => reasonView(reason, { snapshot, at }));
  return {
    instanceId: snapshot.id,
    version: snapshot.version,
    status: snapshot.status,
    at: at.toISOString(),
    summary: views.map(({ message }) => message).join(" ") || "It is about to move on by itself.",
    reasons: views,
  };
}

/** Of whom a reason is told, and when. */
interface Asked {
  readonly snapshot: Why["snapshot"];
  readonly at: Date;
}

function reasonView(reason: Reason, asked: Asked): WhyReasonView {
  const message = messageOf(reason, asked);
  switch (reason.kind) {
    case "ENDED":
      return { kind: reason.kind, message, since: time(reason.since) };
    case "DEAD_LETTER": {
      const { error, since } = reason;
      return { ...reason, message, since: time(since), error: error && errorView(error) };
    }
    case "LIMIT":
      return { ...reason, message, since: time(reason.since) };
    case "DEFINITION_MISSING":
      return { kind: reason.kind, message };
    case "QUEUE_AWAY":
      return { kind: reason.kind, message, problem: reason.problem };
    case "DAMAGED": {
      const { executionId, ...rest } = reason;
      return { ...rest, message, ...(executionId !== null && { executionId }) };
    }
    case "ITEMS":
      return { ...reason, message };
    case "CONTINUES":
      return { ...reason, message, until: time(reason.until) };
    case "STARTS_LATER":
      return { kind: reason.kind, message, until: time(reason.until) };
    case "PAUSED": {
      const { error } = reason;
      return { ...reason, message, error: error && errorView(error) };
    }
    case "EVENT_WAIT":
    case "EVENT_TAKEN": {
      const { pattern, condition, nearMisses, since, until, workers, ...rest } = reason;
      return {
        ...rest,
        ...(reason.kind === "EVENT_TAKEN" && { workers: [...workers] }),
        message,
        eventPattern: pattern,
        eventCondition: condition,
        since: time(since),
        until: time(until),
        nearMisses: nearMisses.map(nearMissView),
      };
    }
    case "RETRYING": {
      const { error, until, taskId, ...rest } = reason;
      return {
        ...rest,
        ...(taskId !== null && { taskId }),
        message,
        until: time(until),
        error: error && errorView(error),
      };
    }
    case "QUEUE_PAUSED":
      return { ...reason, message, since: time(reason.since) };
    case "DELAY":
    case "CHILD_WORKFLOW":
      return { ...reason, message, since: time(reason.since), until: time(reason.until) };
    case "RUNNING":
    case "WORKER_LOST":
    case "AWAITED": {
      const { beatAt, since, until, ...rest } = reason;
      const times = { lastBeatAt: time(beatAt), since: time(since), until: time(until) };
      return { ...rest, ...times, message };
    }
    case "NO_WORKER_KNOWS_TASK":
    case "NO_WORKER_FOR_QUEUE":
    case "QUEUED":
      return {
        ...reason,
        message,
        since: time(reason.since),
        until: time(reason.until),
        workers: [...reason.workers],
      };
    case "QUEUED_ALONE": {
      const { since, workers, running } = reason;
      const lists = { workers: [...workers], running: [...running] };
      return { ...reason, ...lists, message, since: time(since) };
    }
  }
}

/** Where a step stands: its path, and its pass where it is not the first. */
function placeOf({ executionId }: { readonly executionId: string }): string {
  return executionId.replace(/#1$/, "");
}

/** What is due for longer than this, nobody seems to see to. */
const overdueMs = 10_000;

function isOverdue(due: Date | string | null, at: Date): boolean {
  return due !== null && at.getTime() - new Date(due).getTime() > overdueMs;
}

/** Where the time that a sentence ends with is long over: who should have seen to it. */
function overdue(due: Date | string | null, at: Date): string {
  return isOverdue(due, at)
    ? " That is over, and no scheduler has seen to it: is one running?"
    : "";
}

function messageOf(reason: Reason, { snapshot, at }: Asked): string {
  const { status } = snapshot;
  switch (reason.kind) {
    case "ENDED":
      return `The instance is ${status}: nothing moves it any more.`;
    case "DEAD_LETTER":
      return deadLetterText(reason);
    case "DEFINITION_MISSING":
      return definitionText(reason);
    case "DAMAGED":
      return damagedText(reason, snapshot.id);
    case "QUEUE_AWAY":
      return `${reason.backend === "redis" ? "Redis" : "The queue in Postgres"} takes no jobs (${reason.problem}): what is to run is stored, and waits until it does.`;
    case "ITEMS":
      return `${reason.queued} items of step ${placeOf(reason)} have not begun, since at most ${reason.limit} may be under way and ${reason.taken} are.`;
    case "CONTINUES":
      return `Step ${placeOf(reason)} goes on at ${time(reason.until) ?? "once"}, since many steps have come at once.${overdue(reason.until, at)}`;
    case "STARTS_LATER":
      return `The instance starts at ${reason.until.toISOString()}.${overdue(reason.until, at)}`;
    case "LIMIT":
      return limitText(reason);
    case "PAUSED":
      return `${pausedText(reason)}${overdue(reason.until, at)}`;
    case "NO_WORKER_KNOWS_TASK":
      return `Step ${placeOf(reason)} waits since ${reason.since.toISOString()} for a worker that knows task ${reason.taskId}: no live worker on queue ${reason.queue} does.`;
    case "NO_WORKER_FOR_QUEUE":
      return `Step ${placeOf(reason)} is queued since ${reason.since.toISOString()}, and no live worker serves queue ${reason.queue}.`;
    case "QUEUE_PAUSED":
      return queuePausedText(reason);
    case "QUEUED":
      return queuedText(reason, at);
    case "QUEUED_ALONE":
      return aloneText(reason);
    case "RUNNING":
      return runningText(reason);
    case "WORKER_LOST":
      return lostText(reason);
    case "AWAITED":
      return awaitedText(reason, status);
    case "RETRYING":
      return `Step ${placeOf(reason)} failed${reason.error === null ? "" : ` with ${reason.error.type}`}; attempt ${reason.attempt} follows at ${time(reason.until) ?? "once"}.${overdue(reason.until, at)}`;
    case "DELAY":
      return `Step ${placeOf(reason)} waits until ${time(reason.until) ?? "its time"}.${overdue(reason.until, at)}`;
    case "CHILD_WORKFLOW":
      return childText(reason, at);
    case "EVENT_WAIT":
      return `Step ${placeOf(reason)} waits since ${reason.since.toISOString()} for an event ${reason.pattern}${reason.filledIn === null ? "" : ` with ${reason.filledIn}`}${reason.until === null ? "" : `, until ${reason.until.toISOString()}`}.${overdue(reason.until, at)}`;
    case "EVENT_TAKEN":
      return `Step ${placeOf(reason)} has its event, which ${reason.workers.length === 0 ? "a worker is to apply: none is live" : "is about to be applied"}.`;
  }
}

function deadLetterText({ stepId, deadLetterId, isCompensation }: ReasonOf<"DEAD_LETTER">): string {
  const letter = `dead letter ${deadLetterId ?? "?"}`;
  return isCompensation
    ? `Step ${stepId}, which undoes another one, killed its workers: retry ${letter}, or discard it to go on with the others and count it as failed. ${deathsText}`
    : `Step ${stepId} killed its workers and failed the instance: retry ${letter}, or discard it to have undone what was done. ${deathsText}`;
}

const deathsText =
  "What each of them died of, and where its log tells of it: millrace dead-letters show.";

function definitionText({
  workflowId,
  workflowVersion,
  isUndoing,
}: ReasonOf<"DEFINITION_MISSING">): string {
  const instead = isUndoing
    ? "its compensation step has a dead letter after five runs that come to nothing, and discarding that ends the compensation"
    : "give the instance up by a cancel with shouldCompensate false (millrace cancel --no-compensate)";
  return `The definition of the instance, version ${workflowVersion} of workflow ${workflowId}, is not stored any more: nothing can be decided without it. Restore it from a backup: it is tried again then, within 10 min. Or ${instead}.`;
}

const missingTexts = {
  STEP: "is under way, and its row is not stored, or says that it has ended",
  WAIT: "waits for an event, and no wait is stored that one would find",
  TIMER: "has a clock running, and no timer is stored that would fire",
  CHILD: "waits for a child that is not stored",
  SLOT: "waits for a slot, and no row says so",
  ANY: "is not at an end, and nothing that is stored says what it waits for",
} as const;

function damagedText({ missing, executionId }: ReasonOf<"DAMAGED">, instanceId: string): string {
  const what = executionId === null ? "The instance" : `Step ${placeOf({ executionId })}`;
  return `${what} ${missingTexts[missing]}, so that nothing would wake it. GET /v1/instances/${instanceId}/consistency says what is damaged; millrace doctor --instance ${instanceId} --repair mends what can be mended.`;
}

function childText(reason: ReasonOf<"CHILD_WORKFLOW">, at: Date): string {
  const { childWorkflowId, childId, childStatus, since, until } = reason;
  const state = childStatus === null ? "about to be started" : childStatus;
  const end = until === null ? "" : `, until ${until.toISOString()} at most`;
  const told = childStatus !== null && isTerminalStatus(childStatus) ? toBeTold : "";
  const isLate = childStatus === null && isOverdue(since, at);
  const late = isLate ? " A scheduler starts it within seconds: is one running?" : "";
  return `Step ${placeOf(reason)} waits since ${since.toISOString()} for its child ${childId} of workflow ${childWorkflowId}, which is ${state}${end}.${told}${late}`;
}

const toBeTold = " It is told of that once the child has settled.";

function lostText(reason: ReasonOf<HeldKind>): string {
  return `Step ${placeOf(reason)} was taken by worker ${reason.workerId ?? "?"}, which is silent or has ended; a scheduler gives it to another one within seconds: is one running?`;
}

function queuedText(reason: ReasonOf<QueuedKind>, at: Date): string {
  const { queue, since, deliveries, workers, taken, limit, isBlocked, failure, until } = reason;
  const queued =
    deliveries === 0
      ? `is queued on ${queue} since ${since.toISOString()}`
      : `is queued on ${queue} again, after ${deliveries} ${deliveries === 1 ? "run" : "runs"} that came to no end`;
  const able = workers.length === 1 ? "worker" : "workers";
  const full = limit !== null && taken >= limit;
  const busy =
    limit === null
      ? ""
      : `, with ${taken} of ${limit} slots taken${full ? ": it waits for one of them" : ""}`;
  const late = isOverdue(until, at)
    ? ` A scheduler was to look for its job at ${time(until)}: is one running?`
    : "";
  const blocked = isBlocked
    ? ` A worker that does not know task ${reason.taskId} has had it; it is offered again at ${time(until) ?? "its time"}.`
    : "";
  const failed =
    failure === null
      ? ""
      : ` Its last run came to nothing, and it is offered again at ${time(until) ?? "its time"}: ${failure}.`;
  return `Step ${placeOf(reason)} ${queued}; ${workers.length} live ${able} can take it${busy}.${blocked}${failed}${late}`;
}

/** Since when is known of the first run alone. */
function runningText(reason: ReasonOf<HeldKind>): string {
  const { workerId, attempt, deliveries, since, beatAt, until } = reason;
  const runs = `Step ${placeOf(reason)} runs on worker ${workerId ?? "?"}`;
  const at = time(since) ?? "now";
  const heard = beatAt === null ? "" : ` The worker was last heard of at ${beatAt.toISOString()}.`;
  const ends = until === null ? "" : ` The attempt has until ${until.toISOString()}.`;
  const first = attempt === 1 && deliveries <= 1;
  const which = first
    ? ` since ${at}, attempt 1.`
    : `, attempt ${attempt}, run ${deliveries} of it; the step first began at ${at}.`;
  return `${runs}${which}${ends}${heard}`;
}

function aloneText(reason: ReasonOf<"QUEUED_ALONE">): string {
  const { queue, failure, workers, cells, taken, running } = reason;
  const failed =
    failure === null ? "" : ` The last try came to nothing, and another one follows: ${failure}.`;
  const waits = `Step ${placeOf(reason)} is queued on ${queue} to run alone, in a process of its own, since ${suspicionOf(reason)}.${failed}`;
  const able =
    workers.length === 1
      ? "The live worker that can take it has"
      : `The ${workers.length} live workers that can take it have`;
  const there = `${able} at most ${cells} such ${cells === 1 ? "process" : "processes"}`;
  if (taken < cells) return `${waits} ${there}, of which ${taken} ${areOf(taken)} taken.`;
  const steps = running.map(({ stepId, instanceId }) => `${stepId} of instance ${instanceId}`);
  const which =
    steps.length === 0 ? "" : ` by ${steps.join(", ")}${taken > steps.length ? " and others" : ""}`;
  return `${waits} ${there}, all taken${which}: it waits for one of them. With a higher MILLRACE_CELLS, or with more workers, more such steps run at a time.`;
}

function suspicionOf({ deaths, handOvers }: ReasonOf<"QUEUED_ALONE">): string {
  const runs = deaths === 1 ? "one of its runs has" : `${deaths} of its runs have`;
  const died = `${runs} come to no end, as they do when workers die under it`;
  const ended = `its workers were asked to end soon after it had begun, ${handOvers} times in a row`;
  if (handOvers >= leastOfSuspects.handOvers) return ended;
  return deaths > 0 ? died : "its task is isolated";
}

function areOf(count: number): string {
  return count === 1 ? "is" : "are";
}

function awaitedText(reason: ReasonOf<HeldKind>, status: InstanceStatus): string {
  const until = time(reason.until) ?? "its end";
  return isTerminalStatus(status)
    ? `Step ${placeOf(reason)} was running when the instance ended as ${status}; it is awaited until ${until} before the compensation is planned.`
    : `Step ${placeOf(reason)} was running when its branch was given up; it is awaited until ${until}, so that what it does can be undone. Nothing else waits for it.`;
}

function limitText({ limitKey, limit, taken, position, queued, since }: ReasonOf<"LIMIT">): string {
  if (position === null) return "The instance has been given a slot, and is about to go on.";
  const free = taken < limit ? " A scheduler gives free ones out at once: is one running?" : "";
  return `The instance waits since ${since.toISOString()} for a slot under limit ${limitKey}, at place ${position} of ${queued}: ${taken} of ${limit} are taken.${free}`;
}

function pausedText({ by, reason, since, until, error, held }: ReasonOf<"PAUSED">): string {
  const end = until === null ? "until somebody resumes it" : `until ${until}`;
  const why = reason === null ? "" : `, because: ${reason}`;
  const spent = error === null ? "" : ` The last attempt failed with ${error.type}.`;
  const parts = [
    [held.steps, "steps to run"],
    [held.results, "results to follow up"],
    [held.events, "events"],
    [held.timers, "timers that have come due"],
  ] as const;
  const waiting = parts.flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`));
  const holds = waiting.length === 0 ? "" : ` It holds ${waiting.join(", ")}.`;
  return `${by} paused the instance at ${since}, ${end}${why}.${spent}${holds}`;
}

function queuePausedText(at: ReasonOf<"QUEUE_PAUSED">): string {
  const why = at.reason === null ? "" : `, because: ${at.reason}`;
  return `Step ${placeOf(at)} waits on queue ${at.queue}, which ${at.by} paused at ${at.since.toISOString()}${why}: no worker takes a step of it until it is resumed.`;
}

/** Reasons of steps that a worker has. */
type HeldKind = "RUNNING" | "WORKER_LOST" | "AWAITED";

/** Reasons of steps that no worker has. */
type QueuedKind = "NO_WORKER_KNOWS_TASK" | "NO_WORKER_FOR_QUEUE" | "QUEUED";

type ReasonOf<K extends Reason["kind"]> = Extract<Reason, { kind: K }>;

function nearMissView({ event, because, failed }: NearMiss): NearMissView {
  return {
    eventId: event.id,
    pattern: event.pattern,
    payload: json(event.payload),
    receivedAt: event.receivedAt,
    because,
    failed: failed.map((conjunct) => ({ ...conjunct })),
  };
}
