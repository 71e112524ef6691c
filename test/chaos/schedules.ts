import { setTimeout as sleep } from "node:timers/promises";
import type { OverlapPolicy, ScheduleDocument, ScheduleRunPage } from "@millrace/contract";
import type { InstancePage, WorkflowDefinition } from "@millrace/contract";
import type { LoggingClient } from "./client.ts";
import { seeded } from "./random.ts";

/** A schedule of the load: it ticks from its start to its end, both included. Times are ms since the epoch. */
export interface ScheduledPlan {
  readonly id: string;
  readonly everyMs: number;
  readonly startAt: number;
  readonly endAt: number;
  readonly overlapPolicy: OverlapPolicy;
  /** By an expression instead of an interval. */
  readonly isCron: boolean;
  /** Milliseconds that each run takes. */
  readonly taskMs: number;
  /**
   * - `edited`: somebody changes, again and again, what moves no tick.
   * - `triggered`: runs are asked for, too.
   * - `paused` for a third of the time; `backfilled` is paused, and its ticks are made up for afterwards.
   */
  readonly what: "left alone" | "edited" | "triggered" | "paused" | "backfilled";
}

/** The workflow of every schedule. No other has a step of that name, so that the ledger can tell. */
export const tickedStep = "ticked";
export const ticking: WorkflowDefinition = {
  id: "ticking",
  retry: { maxAttempts: 3, initialInterval: "PT0.3S", jitter: "NONE" },
  steps: [{ stepId: tickedStep, type: "TASK", taskId: "chaos.step" }],
};

/** Every period divides this, so that all rules tick on one grid. */
const gridMs = 4_000;
/** The schedules are made before they begin to tick, if the faults allow it. */
const leadMs = 4_000;

export function planSchedules(
  seed: number,
  beginAt: number,
  durationMs: number,
): readonly ScheduledPlan[] {
  const startAt = Math.ceil((beginAt + leadMs) / gridMs) * gridMs;
  // Ticks end before the faults do, however short the run is.
  const endAt = Math.max(startAt, beginAt + durationMs - gridMs);
  const plan = (
    name: string,
    overlapPolicy: OverlapPolicy,
    [everyMs, taskMs]: readonly [number, number],
    what: ScheduledPlan["what"] = "left alone",
    isCron = false,
  ) => ({ id: `${name}-${seed}`, overlapPolicy, everyMs, taskMs, what, isCron, startAt, endAt });
  return [
    plan("steady", "ALLOW_ALL", [2_000, 50], "triggered"),
    plan("cron", "ALLOW_ALL", [4_000, 50], "edited", true),
    plan("skipping", "SKIP", [1_000, 2_500]),
    plan("buffered", "BUFFER_ALL", [4_000, 500]),
    plan("cancelling", "CANCEL_OTHER", [4_000, 5_000]),
    plan("paused", "ALLOW_ALL", [4_000, 50], "paused"),
    plan("backfilled", "ALLOW_ALL", [4_000, 50], "backfilled"),
  ];
}

export function scheduleOf(plan: ScheduledPlan): ScheduleDocument {
  const { everyMs, startAt, endAt, overlapPolicy, isCron, taskMs } = plan;
  return {
    type: "recurring",
    target: { type: "workflow", id: ticking.id },
    timing: {
      ...(isCron
        ? { cronExpression: `*/${everyMs / 1_000} * * * * *` }
        : { interval: `PT${everyMs / 1_000}S` }),
      startDate: new Date(startAt).toISOString(),
      endDate: new Date(endAt).toISOString(),
    },
    input: { ms: taskMs },
    overlapPolicy,
  };
}

export interface ScheduleLoadOptions {
  readonly client: LoggingClient;
  readonly seed: number;
  /** On `performance.now()`: nobody waits beyond it. */
  readonly deadline: () => number;
}

/** Makes the schedules, does to each what its plan says, and returns when their last runs have ended. */
export async function runSchedules(
  plans: readonly ScheduledPlan[],
  { client, seed, deadline }: ScheduleLoadOptions,
): Promise<void> {
  await Promise.all(plans.map((plan) => drive(plan, client, seed)));
  await comeToRest(plans, client, deadline);
}

async function drive(plan: ScheduledPlan, client: LoggingClient, seed: number): Promise<void> {
  const { id, startAt, endAt, what } = plan;
  const random = seeded(seed, id);
  const path = `/v1/schedules/${id}`;
  const ask = (verb: "pause" | "resume" | "backfill", body: object) =>
    client.insist({
      operation: `schedule ${verb}`,
      method: "POST",
      path: `${path}/${verb}`,
      subject: id,
      body,
    });
  const until = (at: number) => sleep(Math.max(0, at - Date.now()));
  const part = (share: number) => startAt + (endAt - startAt) * share;

  const body = scheduleOf(plan);
  await client.insist({ operation: "schedule", method: "PUT", path, subject: id, body });
  switch (what) {
    case "left alone":
      return;
    case "edited":
      for (let edit = 1; Date.now() < endAt; edit += 1) {
        const patch = { metadata: { edit } };
        const operation = "schedule edit";
        await client.insist({ operation, method: "PATCH", path, subject: id, body: patch });
        await sleep(random.whole(500, 3_000));
      }
      return;
    case "triggered":
      for (await until(startAt); Date.now() < endAt; await sleep(random.whole(2_000, 6_000))) {
        const operation = "schedule trigger";
        // Nobody asks again: it would be another run.
        await client.once({ operation, method: "POST", path: `${path}/trigger`, subject: id });
      }
      return;
    case "paused":
    case "backfilled":
      await until(part(1 / 3));
      await ask("pause", {});
      await until(part(2 / 3));
      await ask("resume", {});
      if (what === "paused") return;
      // All of them again: those that ran are not repeated.
      await until(part(5 / 6));
      await ask("backfill", {
        from: new Date(startAt).toISOString(),
        to: new Date(endAt).toISOString(),
      });
  }
}

/** Nobody is told of the runs of a schedule: it is looked at until all of them have ended. */
async function comeToRest(
  plans: readonly ScheduledPlan[],
  client: LoggingClient,
  deadline: () => number,
): Promise<void> {
  const look = async (path: string): Promise<unknown> => {
    const request = { operation: "schedule look", method: "GET", path, subject: path } as const;
    const answer = await client.once(request);
    return answer?.status === 200 ? answer.body : undefined;
  };
  const isAtRest = async ({ id }: ScheduledPlan) => {
    const schedule = (await look(`/v1/schedules/${id}`)) as { status: string } | undefined;
    const waiting = await look(`/v1/schedules/${id}/runs?status=WAITING&limit=1`);
    return schedule?.status === "COMPLETED" && isEmpty(waiting as ScheduleRunPage | undefined);
  };
  const live = `/v1/instances?workflowId=${ticking.id}&status=CREATED,RUNNING,WAITING_FOR_EVENT&limit=1`;
  while (performance.now() < deadline()) {
    const rested = await Promise.all(plans.map(isAtRest));
    if (rested.every(Boolean) && isEmpty((await look(live)) as InstancePage | undefined)) return;
    await sleep(500);
  }
}

function isEmpty(page: { readonly items: readonly unknown[] } | undefined): boolean {
  return page?.items.length === 0;
}
