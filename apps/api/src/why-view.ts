import { isTerminalStatus } from "@millrace/contract";
import type { InstanceStatus, NearMissView, WhyReasonView, WhyView } from "@millrace/contract";
import type { NearMiss, Reason, Why } from "@millrace/runtime";
import { errorView, json, time } from "./views.ts";

/** Why an instance is not moving, in words and in facts. */
export function whyView({ snapshot, at, reasons }: Why): WhyView {
  const views = reasons.map((reason) => reasonView(reason, snapshot.status));
  return {
    instanceId: snapshot.id,
    version: snapshot.version,
    status: snapshot.status,
    at: at.toISOString(),
    summary: views.map(({ message }) => message).join(" ") || "It is about to move on by itself.",
    reasons: views,
  };
}

function reasonView(reason: Reason, status: InstanceStatus): WhyReasonView {
  const message = messageOf(reason, status);
  switch (reason.kind) {
    case "ENDED":
      return { kind: reason.kind, message, since: time(reason.since) };
    case "DEAD_LETTER": {
      const { error, since } = reason;
      return { ...reason, message, since: time(since), error: error && errorView(error) };
    }
    case "LIMIT":
      return { ...reason, message, since: time(reason.since) };
    case "STARTS_LATER":
      return { kind: reason.kind, message, until: time(reason.until) };
    case "PAUSED": {
      const { error } = reason;
      return { ...reason, message, error: error && errorView(error) };
    }
    case "EVENT_WAIT":
    case "EVENT_TAKEN": {
      const { pattern, condition, nearMisses, since, until, ...rest } = reason;
      return {
        ...rest,
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
    case "DELAY":
    case "CHILD_WORKFLOW":
      return { ...reason, message, since: time(reason.since), until: time(reason.until) };
    case "RUNNING":
    case "WORKER_LOST":
    case "AWAITED":
      return { ...reason, message, since: time(reason.since), until: time(reason.until) };
    case "NO_WORKER_KNOWS_TASK":
    case "NO_WORKER_FOR_QUEUE":
    case "QUEUED":
      return { ...reason, message, since: time(reason.since), workers: [...reason.workers] };
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

function messageOf(reason: Reason, status: InstanceStatus): string {
  switch (reason.kind) {
    case "ENDED":
      return `The instance is ${status}: nothing moves it any more.`;
    case "DEAD_LETTER":
      return deadLetterText(reason);
    case "STARTS_LATER":
      return `The instance starts at ${reason.until.toISOString()}.`;
    case "LIMIT":
      return limitText(reason);
    case "PAUSED":
      return pausedText(reason);
    case "NO_WORKER_KNOWS_TASK":
      return `Step ${placeOf(reason)} waits since ${reason.since.toISOString()} for a worker that knows task ${reason.taskId}: no live worker on queue ${reason.queue} does.`;
    case "NO_WORKER_FOR_QUEUE":
      return `Step ${placeOf(reason)} is queued since ${reason.since.toISOString()}, and no live worker serves queue ${reason.queue}.`;
    case "QUEUED":
      return queuedText(reason);
    case "QUEUED_ALONE":
      return aloneText(reason);
    case "RUNNING":
      return runningText(reason);
    case "WORKER_LOST":
      return `Step ${placeOf(reason)} was taken by worker ${reason.workerId ?? "?"}, which is silent; another one takes it over.`;
    case "AWAITED":
      return awaitedText(reason, status);
    case "RETRYING":
      return `Step ${placeOf(reason)} failed${reason.error === null ? "" : ` with ${reason.error.type}`}; attempt ${reason.attempt} follows at ${time(reason.until) ?? "once"}.`;
    case "DELAY":
      return `Step ${placeOf(reason)} waits until ${time(reason.until) ?? "its time"}.`;
    case "CHILD_WORKFLOW": {
      const { childWorkflowId, childId, childStatus, since, until } = reason;
      const state = childStatus === null ? "about to be started" : childStatus;
      const end = until === null ? "" : `, until ${until.toISOString()} at most`;
      return `Step ${placeOf(reason)} waits since ${since.toISOString()} for its child ${childId} of workflow ${childWorkflowId}, which is ${state}${end}.`;
    }
    case "EVENT_WAIT":
      return `Step ${placeOf(reason)} waits since ${reason.since.toISOString()} for an event ${reason.pattern}${reason.filledIn === null ? "" : ` with ${reason.filledIn}`}${reason.until === null ? "" : `, until ${reason.until.toISOString()}`}.`;
    case "EVENT_TAKEN":
      return `Step ${placeOf(reason)} has its event, which is about to be applied.`;
  }
}

function deadLetterText({ stepId, deadLetterId, isCompensation }: ReasonOf<"DEAD_LETTER">): string {
  const letter = `dead letter ${deadLetterId ?? "?"}`;
  return isCompensation
    ? `Step ${stepId}, which undoes another one, killed its workers: retry ${letter}, or discard it to go on with the others and count it as failed.`
    : `Step ${stepId} killed its workers and failed the instance: retry ${letter}, or discard it to have undone what was done.`;
}

function queuedText(reason: Extract<Reason, { readonly queue: string }>): string {
  const { queue, since, deliveries, workers } = reason;
  const queued =
    deliveries === 0
      ? `is queued on ${queue} since ${since.toISOString()}`
      : `is queued on ${queue} again, after ${deliveries} ${deliveries === 1 ? "run" : "runs"} that came to no end`;
  const able = workers.length === 1 ? "worker" : "workers";
  return `Step ${placeOf(reason)} ${queued}; ${workers.length} live ${able} can take it.`;
}

/** Since when is known of the first run alone. */
function runningText(reason: ReasonOf<HeldKind>): string {
  const { workerId, attempt, deliveries, since } = reason;
  const runs = `Step ${placeOf(reason)} runs on worker ${workerId ?? "?"}`;
  const at = time(since) ?? "now";
  if (attempt === 1 && deliveries <= 1) return `${runs} since ${at}, attempt 1.`;
  return `${runs}, attempt ${attempt}, run ${deliveries} of it; the step first began at ${at}.`;
}

function aloneText(reason: ReasonOf<"QUEUED_ALONE">): string {
  const { queue, failure, workers, cells, taken, running } = reason;
  const failed =
    failure === null
      ? ""
      : ` The last such process ended before it had the step, and another one is tried: ${failure}.`;
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
  const died = `${deaths} workers have died under it`;
  const ended = `its workers were asked to end soon after it had begun, ${handOvers} times in a row`;
  return deaths < 2 ? ended : died;
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
  return `The instance waits since ${since.toISOString()} for a slot under limit ${limitKey}, at place ${position} of ${queued}: ${taken} of ${limit} are taken.`;
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

/** Reasons of steps that a worker has. */
type HeldKind = "RUNNING" | "WORKER_LOST" | "AWAITED";

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
