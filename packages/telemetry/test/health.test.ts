import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { checkAll, createHealth } from "../src/health.ts";
import { createMetrics } from "../src/metrics.ts";
import { openMetricsServer } from "../src/metrics-server.ts";

const fine = () => Promise.resolve();
const refused = () => Promise.reject(Object.assign(new Error(""), { code: "ECONNREFUSED" }));

test("a report names each dependency and what is wrong with it", async () => {
  const report = await checkAll({
    database: fine,
    queue: refused,
    other: () => Promise.reject(new Error("no redis://:hunter2@redis")),
  });

  expect(report).toEqual({
    status: "failed",
    checks: [
      { name: "database", status: "ok", detail: "" },
      { name: "queue", status: "failed", detail: "ECONNREFUSED" },
      { name: "other", status: "failed", detail: "no redis://:***@redis" },
    ],
  });
  expect(await checkAll({ database: fine })).toMatchObject({ status: "ok" });
});

test("a dependency that does not answer fails its check in time, one that throws at once too", async () => {
  const start = performance.now();
  const report = await checkAll(
    {
      queue: () => new Promise(() => {}),
      database: () => {
        throw new Error("not open");
      },
    },
    { timeoutMs: 50 },
  );
  expect(performance.now() - start).toBeLessThan(20_000);
  expect(report.checks.map(({ detail }) => detail)).toEqual(["no answer within 50 ms", "not open"]);
});

test("a watched check says since when it fails, and forgets it when it is well again", async () => {
  let check: () => Promise<void> = refused;
  const health = createHealth({ database: () => check() });
  expect((await health()).checks[0]).toMatchObject({ status: "failed", sinceMs: 0 });
  await sleep(30);
  expect((await health()).checks[0]?.sinceMs).toBeGreaterThanOrEqual(25);

  check = fine;
  expect((await health()).checks[0]).toEqual({ name: "database", status: "ok", detail: "" });
  check = refused;
  expect((await health()).checks[0]?.sinceMs).toBe(0);
});

test("reports asked for at the same time are one", async () => {
  let checks = 0;
  const health = createHealth({
    database: async () => {
      checks += 1;
      await sleep(20);
    },
  });
  await Promise.all(Array.from({ length: 10 }, health));
  expect(checks).toBe(1);
  await health();
  expect(checks).toBe(2);
});

test("the server answers metrics, liveness and readiness, and nothing else", async () => {
  let check: () => Promise<void> = fine;
  const metrics = createMetrics();
  const server = await openMetricsServer({
    port: 0,
    host: "127.0.0.1",
    metrics,
    health: createHealth({ database: () => check() }),
  });
  const get = (path: string, method = "GET") =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { method });
  try {
    metrics.takeOvers.add({});
    const exposition = await get("/metrics");
    expect(exposition.headers.get("content-type")).toBe(metrics.contentType);
    expect(await exposition.text()).toContain("millrace_take_overs_total 1");

    expect((await get("/readyz")).status).toBe(200);
    check = refused;
    const readiness = await get("/readyz?verbose");
    expect(readiness.status).toBe(503);
    expect(await readiness.json()).toMatchObject({
      status: "failed",
      checks: [{ name: "database", detail: "ECONNREFUSED" }],
    });
    expect(await (await get("/healthz")).json()).toEqual({ status: "ok" });

    expect((await get("/")).status).toBe(404);
    expect((await get("/metrics", "POST")).status).toBe(405);
    await expect(
      openMetricsServer({
        port: server.port,
        host: "127.0.0.1",
        metrics,
        health: createHealth({}),
      }),
    ).rejects.toThrow("EADDRINUSE");
  } finally {
    await server.close();
  }
  await expect(get("/healthz")).rejects.toThrow("fetch failed");
});
