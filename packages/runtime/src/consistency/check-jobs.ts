import type { Evidence, Finding, StepEvidence } from "@millrace/engine";
import { stepJobId, type StepJob } from "@millrace/queue";
import { isolatedMark } from "@millrace/store";
import type { Key } from "@millrace/store";
import type { Services } from "../services.ts";

export interface CheckedJobs {
  readonly findings: readonly Finding[];
  /** Queues that did not answer, in words. */
  readonly skipped: readonly string[];
}

/**
 * Whether the queue has a job for each step that is to run. A job carries several steps at times, so
 * that its absence shows only where all jobs of the queue can be looked at; where there are more, or
 * some are being taken, nothing is said. That costs little: a scheduler adds what is missing.
 */
export async function checkJobs(
  services: Services,
  key: Key,
  { steps, now }: Evidence,
): Promise<CheckedJobs> {
  const waiting = steps.filter((step) => awaitsJob(step, now));
  const queues = new Set(waiting.flatMap(({ queue }) => queue ?? []));
  const findings: Finding[] = [];
  const skipped: string[] = [];
  for (const queue of queues) {
    const there = await jobsIn(services, queue).catch(() => "no answer" as const);
    if (there === "no answer")
      skipped.push(`queue ${queue} did not answer, so that its jobs are not known`);
    if (there === undefined || there === "no answer") continue;
    for (const step of waiting) {
      if (step.queue !== queue || there.has(stepJobId(jobOf(key, step)))) continue;
      findings.push(missing(step));
    }
  }
  return { findings, skipped };
}

/** Jobs are added within moments of the commit. */
const addedMs = 5_000;
const mostJobs = 500;

function awaitsJob(step: StepEvidence, now: Date): boolean {
  const { status, held, blocked, lookAt, retryAt, createdAt } = step;
  const since = (retryAt ?? createdAt).getTime();
  const isReady = status === "PENDING" || status === "RETRYING";
  const isTaken = blocked !== null && blocked !== isolatedMark;
  return isReady && !held && !isTaken && lookAt !== null && now.getTime() - since > addedMs;
}

function jobOf({ tenantId, instanceId }: Key, step: StepEvidence): StepJob {
  const { path, iteration, attempt, fence, taskId } = step;
  return { tenantId, instanceId, path, iteration, attempt, fence, taskId: taskId ?? "" };
}

/** Undefined where not all of them can be known. */
async function jobsIn({ queue }: Services, name: string): Promise<ReadonlySet<string> | undefined> {
  const [depth] = await queue.depths([name]);
  if (depth === undefined || depth.active > 0 || depth.isolated > 0) return undefined;
  if (depth.waiting + depth.delayed + depth.prioritized > mostJobs) return undefined;
  const pending = await queue.somePending(name, mostJobs);
  return new Set(pending.flatMap(({ steps }) => steps.map(stepJobId)));
}

function missing({ path, iteration, attempt, fence, workerId, queue }: StepEvidence): Finding {
  return {
    code: "STEP_JOB_MISSING",
    message: `step ${path} is to run at attempt ${attempt}, and queue ${queue ?? "?"} has no job for it`,
    where: { path, iteration },
    repair: { kind: "look", path, iteration, attempt, fence, workerId },
  };
}
