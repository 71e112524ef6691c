import { setTimeout as sleep } from "node:timers/promises";
import { eventually, kill } from "@millrace/testkit";
import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openInstallation } from "../support/installation.ts";
import { openTestApi, type TestApi } from "./api/support.ts";

// Of a paused queue nothing begins, on whichever worker, and all of it goes on when it is resumed.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api.close());

const task = (stepId: string, next?: string) => ({
  stepId,
  type: "TASK",
  taskId: "sleep",
  input: { ms: "${ input.ms }" },
  ...(next !== undefined && { transitions: { default: next } }),
});
const chain = { id: "chain", steps: [task("a", "b"), task("b")] };
/** Goes round and round, step after step, as fast as it can. */
const round = {
  id: "round",
  variables: { n: 0 },
  steps: [
    task("work", "count"),
    {
      stepId: "count",
      type: "SET",
      variables: { n: "${ variables.n + 1 }" },
      transitions: { conditions: [{ when: "variables.n < 9000", to: "work" }] },
    },
  ],
};
const shared = "/v1/queues/default";

const start = async (workflowId: string, ms: number): Promise<string> =>
  (await api.call("POST", "/v1/instances", { workflowId, input: { ms } })).body.id;
const read = async (id: string) => (await api.call("GET", `/v1/instances/${id}`)).body;
const queue = async (name: string) =>
  (await api.call("GET", "/v1/queues")).body.items.find(
    (each: { name: string }) => each.name === name,
  );

async function query<Row>(text: string): Promise<readonly Row[]> {
  return (await api.services.database.db.executeQuery<Row>(CompiledQuery.raw(text))).rows;
}

test("what runs ends, what follows and what is started waits, why says so, and a resume lets all of it go on", async () => {
  await api.call("POST", "/v1/definitions", chain);
  const running = await start("chain", 300);
  await eventually("its first step", async () => (await read(running)).state.steps.a?.startedAt);

  const paused = await api.call("POST", `${shared}/pause`, { reason: "mail is down" });
  const again = await api.call("POST", `${shared}/pause`, {
    reason: "another",
    requestedBy: "eve",
  });
  const later = await start("chain", 0);
  await eventually("the end of what ran", async () => {
    return (await read(running)).state.steps.a.status === "COMPLETED";
  });
  await sleep(2_500);
  const held = await Promise.all([running, later].map(read));
  const why = await api.call("GET", `/v1/instances/${running}/why`);
  const resumed = await api.call("POST", `${shared}/resume`);
  const resumedAgain = await api.call("POST", `${shared}/resume`);
  await eventually("their ends", async () => {
    const ended = await Promise.all([running, later].map(read));
    return ended.every(({ status }) => status === "COMPLETED");
  });

  expect([paused.status, paused.body.paused]).toEqual([200, true]);
  expect(paused.body.pause.reason).toBe("mail is down");
  expect(again.body.pause).toEqual(paused.body.pause);
  expect(held.map(({ state }) => state.steps.b?.status ?? state.steps.a.status)).toEqual([
    "PENDING",
    "PENDING",
  ]);
  expect(why.body.reasons).toMatchObject([
    { kind: "QUEUE_PAUSED", stepId: "b", queue: "default", reason: "mail is down" },
  ]);
  expect(why.body.reasons[0].message).toMatch(/which .* paused at .*: mail is down/);
  expect([resumed, resumedAgain].map(({ status, body }) => [status, body.paused])).toEqual([
    [200, false],
    [200, false],
  ]);
});

test("once a pause is answered no step begins, however many chains run on", async () => {
  await api.call("POST", "/v1/definitions", round);
  const ids = await Promise.all(Array.from({ length: 20 }, () => start("round", 0)));
  await eventually("some rounds", async () => (await read(ids[0] ?? "")).state.variables.n > 5);

  await api.call("POST", `${shared}/pause`);
  const [{ at } = { at: "" }] = await query<{ at: string }>("select clock_timestamp()::text as at");
  await eventually("all to wait", async () => {
    const waiting = await query("select 1 from step_executions where status = 'PENDING'");
    return waiting.length === ids.length;
  });
  const begun = await query(
    `select step_id from step_executions where queue = 'default' and started_at > '${at}'`,
  );
  const before = await Promise.all(ids.map(read));
  await api.call("POST", `${shared}/resume`);
  await eventually("all to go on", async () => {
    const now = await Promise.all(ids.map(read));
    return now.every(({ state }, index) => state.variables.n > before[index].state.variables.n);
  });
  await Promise.all(ids.map((id) => api.call("POST", `/v1/instances/${id}/cancel`, {})));

  expect(begun).toEqual([]);
});

test("a queue that nobody knows can be paused, and is listed while it is; other queues go on", async () => {
  const steps = [{ ...task("a", "b") }, { ...task("b"), queue: "later" }];
  await api.call("POST", "/v1/definitions", { id: "two-queues", steps });

  const { status } = await api.call("POST", "/v1/queues/later/pause", { requestedBy: "ann" });
  const id = await start("two-queues", 0);
  await eventually("its first step", async () => {
    return (await read(id)).state.steps.a.status === "COMPLETED";
  });
  const listed = await queue("later");
  await api.call("POST", "/v1/queues/later/resume");

  expect(status).toBe(200);
  expect(listed).toMatchObject({ paused: true, pause: { by: "ann", reason: null }, pending: 1 });
  expect((await queue("default")).paused).toBe(false);
  expect((await api.call("POST", "/v1/queues/-x/pause")).status).toBe(400);
});

test("a worker that is killed and the one that comes after it leave a paused queue alone, and so they do where Redis has lost all", async () => {
  const installation = await openInstallation({ workers: 1 });
  try {
    const { client, stack, ledger } = installation;
    const steps = [{ stepId: "work", type: "TASK", taskId: "witness" }];
    await client.definitions.register({ id: "work", steps } as never);
    await client.pauseQueue("default");
    const begin = () => client.instances.start({ workflowId: "work" });
    const started = await Promise.all(Array.from({ length: 10 }, begin));

    const [worker = 0] = stack.pids().worker;
    kill(worker);
    await eventually("another worker", async () => {
      const { items } = await client.workers();
      return items.some(({ pid }) => pid !== worker);
    });
    await installation.withRedis((redis) => redis.flushall());
    started.push(...(await Promise.all(Array.from({ length: 10 }, begin))));
    await sleep(4_000);
    const early = ledger.entries.length;
    const { items } = await client.queues();
    await client.resumeQueue("default");
    await Promise.all(started.map(({ id }) => client.instances.wait(id)));

    expect(early).toBe(0);
    expect(items.find(({ name }) => name === "default")).toMatchObject({
      paused: true,
      pending: 20,
      running: 0,
    });
    expect(new Set(ledger.entries.map(({ instance }) => instance)).size).toBe(20);
  } finally {
    await installation.close();
  }
}, 60_000);
