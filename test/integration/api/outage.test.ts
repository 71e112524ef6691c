import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  freePort,
  migrate,
  openPostgres,
  openRedis,
  type Postgres,
  type Redis,
} from "@millrace/devstack";
import { eventually } from "@millrace/testkit";
import { Redis as Client } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { echo, openTestApi, type TestApi } from "./support.ts";

let folder: string;
let postgres: Postgres | undefined;
let redis: Redis | undefined;
let api: TestApi | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-api-"));
});
afterEach(async () => {
  await api?.close();
  await postgres?.stop();
  await redis?.stop("kill");
  [api, postgres, redis] = [undefined, undefined, undefined];
  await rm(folder, { recursive: true, force: true });
});

test("without Redis starts and events are taken in, and readiness says what is down", async () => {
  api = await openTestApi({ redisUrl: `redis://127.0.0.1:${await freePort()}` });

  const defined = await api.call("PUT", "/v1/definitions/echo", echo);
  const started = await api.call("POST", "/v1/instances", { workflowId: "echo" });
  const published = await api.call("POST", "/v1/events", { pattern: "a", payload: 1 });
  const readiness = await api.call("GET", "/readyz");
  const why = await api.call("GET", `/v1/instances/${started.body.id}/why`);

  expect([defined.status, started.status, published.status]).toEqual([201, 201, 202]);
  expect(readiness).toMatchObject({
    status: 200,
    body: {
      status: "ok",
      checks: { postgres: { status: "ok" }, redis: { status: "down", required: false } },
    },
  });
  expect(why.body.reasons).toMatchObject([
    { kind: "QUEUE_AWAY", message: expect.stringMatching(/^Redis takes no jobs \(.*\): what is/) },
    { kind: "NO_WORKER_FOR_QUEUE" },
  ]);
});

test("of a Redis that answers and takes no writes `why` says what it answers, and nothing once it does", async () => {
  redis = await openRedis({ dataDir: join(folder, "redis") });
  api = await openTestApi({ redisUrl: redis?.url ?? "" });
  const { call } = api;
  await call("PUT", "/v1/definitions/echo", echo);
  const { id } = (await call("POST", "/v1/instances", { workflowId: "echo" })).body;
  const client = new Client(redis?.url ?? "");
  const problem = async () => {
    const { reasons } = (await call("GET", `/v1/instances/${id}/why`)).body;
    return reasons.find(({ kind }: { kind: string }) => kind === "QUEUE_AWAY")?.problem;
  };

  await client.config("SET", "maxmemory", "1");
  const full = await problem();
  await client.config("SET", "maxmemory", "0");
  await client.replicaof("127.0.0.1", "1");
  const replica = await problem();
  await client.replicaof("NO", "ONE");
  const well = await problem();
  client.disconnect();

  expect([full, replica, well]).toEqual([
    expect.stringContaining("OOM"),
    expect.stringContaining("READONLY"),
    undefined,
  ]);
});

test("while the database is away every call says so with 503, and works again once it is back", async () => {
  postgres = await openPostgres({ dataDir: folder });
  await migrate(postgres.url);
  api = await openTestApi({ databaseUrl: postgres.url });
  const { call } = api;
  await call("PUT", "/v1/definitions/echo", echo);
  const { id } = (await call("POST", "/v1/instances", { workflowId: "echo" })).body;

  await postgres.stop("immediate");
  const answers = [
    await call("POST", "/v1/instances", { workflowId: "echo" }),
    await call("POST", "/v1/events", { pattern: "a", payload: 1 }),
    await call("GET", `/v1/instances/${id}`),
    await call("POST", `/v1/instances/${id}/cancel`, {}),
  ];
  const readiness = await call("GET", "/readyz");
  const health = await call("GET", "/healthz");
  const others = await callEverything(api, id);

  expect(others.filter(({ status }) => status !== 503)).toEqual([]);
  expect(others.filter(({ retryAfter }) => retryAfter !== "1")).toEqual([]);
  expect(others.length).toBeGreaterThan(15);
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
  expect(answers.every(({ headers }) => headers.get("retry-after") === "1")).toBe(true);
  expect(answers[0]?.body.code).toBe("DATABASE_UNAVAILABLE");
  expect(readiness).toMatchObject({
    status: 503,
    body: { checks: { postgres: { status: "down" } } },
  });
  expect(health.status).toBe(200);

  await postgres.restart();
  await eventually("the API to work again", async () => {
    const { status } = await call("POST", "/v1/instances", { workflowId: "echo" });
    return status === 201;
  });
});

/** Calls that are answered without the database. */
const selfContained = new Set([
  "/healthz",
  "/readyz",
  "/metrics",
  "/openapi.json",
  "/docs",
  "/v1/definitions/validate",
]);

const schedule = {
  target: { type: "workflow", id: "echo" },
  timing: { cronExpression: "0 3 * * *" },
};

const bodies: Readonly<Record<string, unknown>> = {
  registerDefinition: echo,
  putDefinition: echo,
  startInstance: { workflowId: "echo" },
  startInstances: [{ workflowId: "echo" }, { workflowId: "echo" }],
  actOnInstances: { action: "cancel", filter: {} },
  publishEvent: { pattern: "a", payload: 1 },
  publishEvents: [{ pattern: "a", payload: 1 }],
  simulateDefinition: { scenario: {} },
  createCalendar: { id: "office", timeZone: "UTC" },
  putCalendar: { timeZone: "UTC" },
  putLimit: { limit: 3 },
  createWebhook: { url: "https://example.com/hook" },
  putWebhook: { url: "https://example.com/hook" },
  createSchedule: schedule,
  putSchedule: schedule,
  backfillSchedule: { from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" },
};

/** Every operation of the document that stands for one thing, once. */
async function callEverything({ call }: TestApi, id: string) {
  const { body: document } = await call("GET", "/openapi.json");
  const operations = Object.entries(document.paths as Record<string, Record<string, Operation>>)
    .filter(([path]) => !selfContained.has(path) && !path.startsWith("/schemas/"))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );
  return Promise.all(
    operations.map(async ({ path, method, operation: { operationId, requestBody } }) => {
      const url = path
        .replace("{version}", "1")
        .replace("limits/{id}", "limits/tenant")
        .replaceAll(/\{\w+\}/g, /definitions|calendars/.test(path) ? "echo" : id);
      const body = requestBody === undefined ? undefined : (bodies[operationId] ?? {});
      const headers = method === "patch" ? { "if-match": '"1"' } : {};
      const { status, headers: answered } = await call(method.toUpperCase(), url, body, headers);
      return { operationId, status, retryAfter: answered.get("retry-after") };
    }),
  );
}

interface Operation {
  readonly operationId: string;
  readonly requestBody?: unknown;
}
