import { fileURLToPath } from "node:url";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { echo, openTestApi, type TestApi, waiting } from "./support.ts";

// The operators' questions about the installation as a whole.

const isolated = fileURLToPath(new URL("../../support/tasks/isolated.mjs", import.meta.url));
let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true, tasks: [isolated] });
  await api.call("PUT", "/v1/definitions/echo", echo);
  await api.call("PUT", "/v1/definitions/waiting", waiting);
  await api.call("PUT", "/v1/definitions/failing", {
    id: "failing",
    steps: [
      {
        stepId: "try",
        type: "TASK",
        taskId: "fail",
        retry: { maxAttempts: 3, initialInterval: "PT0S" },
      },
    ],
  });
  await api.call("PUT", "/v1/definitions/lost", {
    id: "lost",
    steps: [{ stepId: "odd", type: "TASK", taskId: "nobody_knows" }],
  });
});
afterAll(() => api.close());

const start = async (workflowId: string, input: object = {}): Promise<string> =>
  (await api.call("POST", "/v1/instances", { workflowId, input })).body.id;
const settled = (id: string) => api.call("GET", `/v1/instances/${id}?wait=20`);
const get = async (path: string) => (await api.call("GET", path)).body;

test("stats count instances by status, success, times and retries, also by workflow", async () => {
  expect(await get("/v1/stats")).toMatchObject({
    total: 0,
    instances: {},
    successRate: null,
    executionTimeMs: null,
    retries: 0,
    workflows: [],
  });

  const ended = await Promise.all(["echo", "echo", "echo", "failing"].map((id) => start(id)));
  await Promise.all(ended.map(settled));
  await start("waiting", { order: 1 });

  const stats = await get("/v1/stats");
  expect(stats).toMatchObject({
    total: 5,
    instances: { COMPLETED: 3, FAILED: 1 },
    successRate: 0.75,
    retries: 2,
    isComplete: true,
  });
  const { min, mean, max } = stats.executionTimeMs;
  expect(min).toBeGreaterThanOrEqual(0);
  expect(mean).toBeGreaterThanOrEqual(min);
  expect(max).toBeGreaterThanOrEqual(mean);
  expect(stats.workflows).toMatchObject([
    { workflowId: "echo", total: 3, instances: { COMPLETED: 3 }, successRate: 1, retries: 0 },
    { workflowId: "failing", instances: { FAILED: 1 }, successRate: 0, retries: 2 },
    { workflowId: "waiting", total: 1, successRate: null, executionTimeMs: null },
  ]);
  expect(await get("/v1/stats?workflowId=echo")).toMatchObject({ total: 3, retries: 0 });
});

test("another tenant's instances are not in the figures", async () => {
  await settled(await start("echo"));

  const { body } = await api.call("GET", "/v1/stats", undefined, { "millrace-tenant": "other" });

  expect(body).toMatchObject({ total: 0, workflows: [] });
});

test("live workers are listed with what they know", async () => {
  const { items } = await get("/v1/workers");

  expect(items).toHaveLength(1);
  expect(items[0]).toMatchObject({ queues: ["default"], running: 0, pid: process.pid });
  expect(items[0].tasks).toContain("echo");
  expect(Date.parse(items[0].lastBeatAt)).toBeGreaterThanOrEqual(Date.parse(items[0].startedAt));
});

test("tasks are listed with their workers, and those that nobody knows while steps wait", async () => {
  const [worker] = (await get("/v1/workers")).items;
  await start("lost");

  const items = await eventually("the step is known to be blocked", async () => {
    const tasks = (await get("/v1/tasks")).items as readonly { readonly blocked: number }[];
    return tasks.some(({ blocked }) => blocked > 0) ? tasks : undefined;
  });

  expect(items).toContainEqual({ id: "echo", workers: [worker.id], isolated: false, blocked: 0 });
  expect(items).toContainEqual({
    id: "isolated",
    workers: [worker.id],
    isolated: true,
    blocked: 0,
  });
  expect(items).toContainEqual({
    id: "nobody_knows",
    workers: [],
    isolated: false,
    blocked: 1,
  });
});

test("queues are listed with their depths", async () => {
  const [worker] = (await get("/v1/workers")).items;

  const { items } = await get("/v1/queues");

  const [queue] = items;
  expect(queue).toMatchObject({
    name: "default",
    workers: [worker.id],
    running: 0,
    paused: false,
    pause: null,
  });
  expect(queue.jobs.waiting).toBeGreaterThanOrEqual(0);
});
