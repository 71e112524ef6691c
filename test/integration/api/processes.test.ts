import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Script } from "node:vm";
import {
  createDatabase,
  createKeyPrefix,
  freePort,
  startProcess,
  stopProcesses,
} from "@millrace/testkit";
import type { TestDatabase, TestRedis } from "@millrace/testkit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { programOf } from "../../support/installation.ts";
import { openRelay } from "../../support/relay.ts";
import { call, waiting } from "./support.ts";

// The programs as they are started in production: from the build, with their settings in the
// environment.

let database: TestDatabase;
let redis: TestRedis;
beforeAll(async () => {
  database = await createDatabase();
  redis = await createKeyPrefix();
});
afterEach(() => stopProcesses());
afterAll(async () => {
  await redis.flush();
  await database.drop();
});

test.each(["api", "worker", "scheduler"] as const)(
  "the %s names every problem of its settings at once and exits with 2",
  async (app) => {
    const started = await startApp(app, { DATABASE_URL: "", LOG_LEVEL: "loud" });

    expect(await started.exited).toEqual({ code: 2, signal: null });
    expect(started.output()).toContain("DATABASE_URL is missing");
    expect(started.output()).toContain('LOG_LEVEL: "loud"');
  },
);

test.each(["api", "worker", "scheduler"] as const)(
  "the %s is started from its compiled form",
  (app) => {
    const beside = (name: string) => readFileSync(join(dirname(programOf(app)), name));

    const script = new Script(beside("program.cjs").toString("latin1"), {
      cachedData: beside("program.cache").subarray(0, -4),
    });

    expect(script.cachedDataRejected).toBe(false);
  },
);

test("a copy of a program starts all the same where its compiled form is missing or damaged", async () => {
  const copy = mkdtempSync(join(tmpdir(), "millrace-program-"));
  cpSync(dirname(programOf("worker")), copy, { recursive: true });
  const form = join(copy, "program.cache");
  writeFileSync(form, readFileSync(form).fill(7, 200_000, 300_000));
  const start = () => startProcess({ args: [join(copy, "main.js")], env: { DATABASE_URL: "" } });

  const damaged = await start();
  const ends = [await damaged.exited];
  rmSync(form);
  const missing = await start();
  ends.push(await missing.exited);

  expect(ends).toEqual([2, 2].map((code) => ({ code, signal: null })));
  expect([damaged, missing].map((each) => each.output())).toEqual(
    [1, 2].map(() => expect.stringContaining("DATABASE_URL is missing")),
  );
  rmSync(copy, { recursive: true });
});

test.each(["worker", "scheduler"] as const)(
  "the %s serves its metrics and health, and ends with 0 when asked to",
  async (app) => {
    const started = await startApp(app, { MILLRACE_METRICS_PORT: "0" });
    const [, port] = await started.waitForOutput(/"port":(\d+).*"msg":"metrics are served"/);
    await started.waitForOutput(/"msg":"ready"/);

    const metrics = await fetch(`http://127.0.0.1:${port}/metrics`).then((it) => it.text());
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
    started.signal("SIGTERM");

    expect(metrics).toContain("millrace_pool_connections");
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({ status: "ok", required: ["postgres"] });
    expect(await started.exited).toEqual({ code: 0, signal: null });
  },
);

test.each(["api", "worker", "scheduler"] as const)(
  "the %s that is asked to end while its program loads ends with 0",
  async (app) => {
    const askedWhileLoading = `data:text/javascript,
      import vm from "node:vm";
      import { syncBuiltinESMExports } from "node:module";
      const { Script } = vm;
      vm.Script = class extends Script {
        constructor(...args) { process.kill(process.pid, "SIGTERM"); super(...args); }
      };
      syncBuiltinESMExports();`;

    const started = await startApp(app, {}, ["--import", encodeURI(askedWhileLoading)]);

    expect(await started.exited).toEqual({ code: 0, signal: null });
    expect(started.output()).not.toContain('"msg":"ready"');
  },
);

test("an API that is started while the database is away says so, and goes on when it is there", async () => {
  const relay = await openRelay(database.url);
  relay.cutAnswers();
  try {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const started = await startApp("api", { DATABASE_URL: relay.url, PORT: String(port) });
    await started.waitForOutput(/"msg":"the database does not answer; waiting for it"/);

    const health = await fetch(`${url}/healthz`);
    const ready = await fetch(`${url}/readyz`);
    const start = await call(url, "POST", "/v1/instances", { workflowId: "waiting" });
    relay.mend();
    await started.waitForOutput(/"msg":"the API listens"/);

    expect([health.status, ready.status, start.status]).toEqual([200, 503, 503]);
    expect([ready, start].map((it) => it.headers.get("retry-after"))).toEqual(["1", "1"]);
    expect(start.body.code).toBe("DATABASE_UNAVAILABLE");
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  } finally {
    await relay.close();
  }
});

test("the API answers who waits when it is asked to end, and ends with 0", async () => {
  const { started, url } = await startApi();
  await call(url, "PUT", "/v1/definitions/waiting", waiting);
  const { id } = (await call(url, "POST", "/v1/instances", { workflowId: "waiting" })).body;
  const poll = call(url, "GET", `/v1/instances/${id}?wait=300`);
  await new Promise((done) => setTimeout(done, 300));

  const startedAt = performance.now();
  started.signal("SIGTERM");

  expect((await poll).body).toMatchObject({ id });
  expect(await started.exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - startedAt).toBeLessThan(3_000);
});

test("a second signal ends a process at once", async () => {
  const { started, url } = await startApi();
  // A body that never ends holds the first signal up.
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(
    `POST /v1/events HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{`,
  );
  await new Promise((done) => setTimeout(done, 300));

  started.signal("SIGTERM");
  await started.waitForOutput(/"msg":"asked to end"/);
  started.signal("SIGTERM");

  expect(await started.exited).toEqual({ code: 143, signal: null });
});

test("a port that is taken ends the process with 1, and says so", async () => {
  const { started, url } = await startApi({ PORT: "0" });
  const { port } = new URL(url);

  // A second API on the same port cannot listen.
  const second = await startApp("api", { PORT: port });

  expect(await second.exited).toEqual({ code: 1, signal: null });
  expect(second.output()).toContain("EADDRINUSE");
  expect(started.exit).toBeUndefined();
});

async function startApi(env: Readonly<Record<string, string>> = {}) {
  const started = await startApp("api", { PORT: "0", ...env });
  const [, url = ""] = await started.waitForOutput(/"url":"([^"]+)".*"msg":"the API listens"/);
  return { started, url };
}

function startApp(
  app: "api" | "worker" | "scheduler",
  env: Readonly<Record<string, string>>,
  nodeOptions: readonly string[] = [],
) {
  return startProcess({
    args: [...nodeOptions, programOf(app)],
    env: {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      MILLRACE_KEY_PREFIX: redis.prefix,
      LOG_LEVEL: "info",
      ...env,
    },
  });
}
