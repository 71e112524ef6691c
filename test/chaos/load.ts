import { setTimeout as sleep } from "node:timers/promises";
import { isSettled } from "@millrace/contract";
import type { InstancePage, InstanceView, JsonValue } from "@millrace/contract";
import { seenOf, stands, type Answer, type LoggingClient } from "./client.ts";
import { chain, followedBy, sideQueue } from "./definitions.ts";
import { crowd, type CasePlan } from "./load-plan.ts";
import type { Seen } from "./record.ts";

/** What the load needs to know of the run. */
export interface LoadOptions {
  readonly client: LoggingClient;
  readonly durationMs: number;
  /** On `performance.now()`: nobody waits beyond it. */
  readonly deadline: () => number;
  readonly signal: AbortSignal;
}

/** More than that at once is put off: a machine that does not keep up is not buried. */
const mostAtOnce = 150;

/** Starts each case at its time, and returns when all of them have settled, or time is over. */
export async function runLoad(
  plan: readonly CasePlan[],
  { client, durationMs, deadline, signal }: LoadOptions,
): Promise<void> {
  const startedAt = performance.now();
  const running = new Set<Promise<void>>();
  const stopped = new AbortController();
  const ending = AbortSignal.any([signal, stopped.signal]);
  const changing = registerAgain(client, durationMs, ending);
  const pausing = pauseQueue(client, durationMs, ending);
  for (const each of plan) {
    await sleep(Math.max(0, startedAt + each.atMs - performance.now()));
    while (running.size >= mostAtOnce) await Promise.race(running);
    if (signal.aborted || performance.now() > deadline()) break;
    const driven = drive(each, client, deadline).finally(() => void running.delete(driven));
    running.add(driven);
  }
  await Promise.all(running);
  stopped.abort();
  await Promise.all([changing, pausing]);
}

/** A new version of the definition now and then: instances stay on theirs. */
async function registerAgain(
  client: LoggingClient,
  durationMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let marker = 2; marker <= 6 && !signal.aborted; marker += 1) {
    await sleep(durationMs / 6, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await client.insist({
      operation: "register",
      method: "PUT",
      path: "/v1/definitions/chain",
      subject: `chain ${marker}`,
      body: chain(marker),
    });
  }
}

/** Twice, for long enough that a step which had been on its way to the ledger is no excuse any more. */
async function pauseQueue(
  client: LoggingClient,
  durationMs: number,
  signal: AbortSignal,
): Promise<void> {
  const rest = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});
  const ask = (verb: "pause" | "resume") =>
    client.insist({
      operation: `${verb} queue`,
      method: "POST",
      path: `/v1/queues/${sideQueue}/${verb}`,
      subject: sideQueue,
    });
  for (let round = 1; round <= 2; round += 1) {
    await rest(durationMs / 4);
    if (signal.aborted) return;
    await ask("pause");
    await rest(Math.min(durationMs / 6, 12_000));
    await ask("resume");
  }
  await rest(durationMs / 4);
  // An attempt at a pause whose connection broke may have come through after the resume.
  await ask("resume");
}

async function drive(plan: CasePlan, client: LoggingClient, deadline: () => number): Promise<void> {
  const one = openCase(plan, client, deadline);
  switch (plan.scenario) {
    case "wait_lookback":
    case "stale":
      await one.publish();
      await sleep(plan.pauseMs);
      await one.start();
      break;
    case "wait_instance":
      await one.start();
      await sleep(plan.pauseMs);
      await one.publish();
      break;
    case "wait":
      await one.start();
      await one.until(({ waiting }) => waiting.includes("wait"));
      await sleep(plan.pauseMs);
      await one.publish();
      break;
    case "race":
    case "race_cancelled":
      await one.start();
      await one.until(({ waiting }) => waiting.includes("wait"));
      await sleep(plan.pauseMs);
      await Promise.all([one.publish(), plan.scenario === "race_cancelled" && one.cancel()]);
      break;
    case "cancelled":
      await one.start();
      await one.until(({ running }) => running.includes("long"));
      await sleep(plan.pauseMs);
      await one.cancel();
      break;
    case "saga":
    case "saga_of_branches":
      await one.start();
      if (plan.number % 2 === 0) await one.until(({ waiting }) => waiting.includes("hold"));
      await sleep(plan.pauseMs);
      await one.cancel();
      break;
    case "saga_triggered":
      await one.start();
      if (plan.number % 2 === 0) await one.until(({ waiting }) => waiting.includes("hold"));
      await sleep(plan.pauseMs);
      await one.publish("chaos.stop");
      break;
    case "paused":
      await one.start();
      await one.change("pause");
      await sleep(plan.pauseMs);
      await one.change("resume");
      break;
    case "paused_wait":
      await one.start();
      await one.until(({ waiting }) => waiting.includes("wait"));
      await one.change("pause");
      await one.publish();
      await sleep(plan.pauseMs);
      await one.change("resume");
      break;
    case "patched":
      await one.start();
      await one.until(({ waiting }) => waiting.includes("wait"));
      await one.patch({ note: plan.key });
      await one.publish();
      break;
    case "parked":
      await one.start();
      await one.until(({ status }) => status === "PAUSED");
      await sleep(plan.pauseMs);
      await one.change(plan.number % 2 === 0 ? "resume" : "retry");
      break;
    case "mended":
      await one.start();
      await mend(plan, one);
      break;
    case "abandoned":
      await one.start();
      await one.settled();
      await sleep(plan.pauseMs);
      await one.cancel();
      break;
    case "triggered":
      await one.publish("chaos.begin", plan.input);
      await one.found();
      break;
    case "rival":
    case "rival_too":
    case "rival_cancelled":
      await one.start();
      await one.until(({ waiting }) => waiting.includes("wait"));
      await sleep(plan.pauseMs);
      await one.publish("chaos.one", plan.input);
      if (plan.scenario === "rival_cancelled") await one.cancel();
      break;
    case "parent_cancelled":
      await one.start();
      await sleep(plan.pauseMs);
      await one.cancel();
      break;
    case "chain_once":
      if (!(await one.startOnce())) return;
      break;
    case "chain":
    case "delay":
    case "limited":
    case "limited_too":
    case "limited_three":
    case "emitting":
    case "parent":
    case "retried":
    case "parallel_all":
    case "parallel_any":
    case "parallel_two":
      await one.start();
      break;
    case "map":
      await one.start();
      await one.settled();
      await one.followed();
      break;
  }
  await one.settled();
}

/** An operator retries it, in vain at first where the plan says so, and mends it when it fails again. */
async function mend({ input, pauseMs }: CasePlan, one: Case): Promise<void> {
  const from = input["from"] === "" ? {} : { fromStepId: input["from"] };
  // An operator takes a moment: what answered a moment ago may be away.
  const retry = async () => {
    await sleep(pauseMs);
    await one.change("retry", from);
  };
  if (input["inVain"] === 1) {
    await one.settled();
    await retry();
  }
  await one.settled();
  await one.patch({ mended: true });
  // A retry without an answer may come late, and be the one in vain.
  while ((await one.settled()) === "FAILED") await retry();
}

type Case = ReturnType<typeof openCase>;

function openCase(plan: CasePlan, client: LoggingClient, deadline: () => number) {
  const { number: caseNumber, key, workflowId, input, scenario } = plan;
  const user = crowd.scenarios.includes(scenario) ? { userId: crowd.userId } : {};
  let id: string | undefined;
  const startOf = (idempotencyKey?: string) => ({
    operation: "start" as const,
    method: "POST" as const,
    path: "/v1/instances",
    subject: key,
    caseNumber,
    body: { workflowId, input, correlationId: key, ...user },
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
  const look = (waitSeconds: number) =>
    client.once({
      operation: "look",
      method: "GET",
      path: `/v1/instances/${id}?wait=${waitSeconds}`,
      subject: id ?? "",
      caseNumber,
    });
  const change = async (operation: "cancel" | "pause" | "resume" | "retry", body: object = {}) =>
    isOver()
      ? undefined
      : client.insist({
          operation,
          method: "POST",
          path: `/v1/instances/${id}/${operation}`,
          subject: id ?? "",
          caseNumber,
          body,
        });
  const firstOf = async (workflow: string, correlationId: string) => {
    const answer = await client.once({
      operation: "watch",
      method: "GET",
      path: `/v1/instances?workflowId=${workflow}&correlationId=${correlationId}`,
      subject: key,
      caseNumber,
    });
    return answer?.status === 200 ? (answer.body as InstancePage).items[0] : undefined;
  };
  const isOver = () => id === undefined || performance.now() > deadline();
  return {
    async start() {
      id = idOf(await client.insist(startOf(key)));
    },
    /** False when nobody knows what became of it. */
    async startOnce() {
      id = idOf(await client.once(startOf()));
      return id !== undefined;
    },
    publish: (pattern = "chaos.paid", payload: CasePlan["input"] = { key }) =>
      client.insist({
        operation: "publish",
        method: "POST",
        path: "/v1/events",
        subject: `event-${key}`,
        caseNumber,
        body: { id: `event-${key}`, pattern, payload },
      }),
    /** Looks for the instance that an event is to start, until it is there. */
    async found() {
      while (id === undefined && performance.now() < deadline()) {
        id = (await firstOf(workflowId, key))?.id;
        if (id === undefined) await sleep(200);
      }
    },
    /** Looks for the instance that follows its end, until that one has ended, too. */
    async followed() {
      while (id !== undefined && performance.now() < deadline()) {
        const follower = await firstOf("follower", followedBy(key));
        if (follower !== undefined && isSettled(follower)) return;
        await sleep(500);
      }
    },
    change,
    cancel: () => change("cancel", { reason: "chaos" }),
    /** Sets variables, at the version that it has just read, until that was the latest. */
    async patch(variables: Readonly<Record<string, JsonValue>>) {
      while (!isOver()) {
        const seen = seenIn(await look(0));
        if (seen?.status === "COMPLETED" || seen?.status === "CANCELLED") return;
        const answer =
          seen &&
          (await client.once({
            operation: "patch",
            method: "PATCH",
            path: `/v1/instances/${id}`,
            subject: id ?? "",
            caseNumber,
            body: { state: { variables } },
            ifMatch: seen.version,
          }));
        if (answer && stands(answer) && answer.status !== 412) return;
        await sleep(200);
      }
    },
    /** Looks until the instance stands there, or has ended. */
    async until(isThere: (seen: Seen) => boolean) {
      for (let pauseMs = 100; !isOver(); pauseMs = Math.min(pauseMs * 1.5, 1_000)) {
        const seen = seenIn(await look(0));
        if (seen && (isThere(seen) || seen.isSettled)) return;
        await sleep(pauseMs);
      }
    },
    /** As which it has settled; undefined when time is over. */
    async settled() {
      let pauseMs = 200;
      while (!isOver()) {
        const seen = seenIn(await look(5));
        if (seen?.isSettled) return seen.status;
        // Most cases wait here: while nobody answers they must not keep the machine busy with that.
        pauseMs = seen === undefined ? Math.min(pauseMs * 2, 2_000) : 200;
        await sleep(pauseMs);
      }
      return undefined;
    },
  };
}

function idOf(answer: Answer | undefined): string | undefined {
  return answer && answer.status < 300 ? (answer.body as InstanceView).id : undefined;
}

function seenIn(answer: Answer | undefined): Seen | undefined {
  return answer?.status === 200 ? seenOf(answer.body as InstanceView) : undefined;
}
