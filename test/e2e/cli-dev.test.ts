import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identityOf } from "@millrace/devstack";
import { eventually, kill } from "@millrace/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Dev, type ReadyLine, runMillrace, startDev, stopDev } from "./millrace.ts";

function everyPid({ pids, servers }: ReadyLine): readonly number[] {
  const own = Object.values(servers).filter((pid): pid is number => pid !== null);
  return [...Object.values(pids).flat(), ...own];
}

describe("while it runs", () => {
  let dev: Dev;

  beforeAll(async () => {
    dev = await startDev("--workers", "3");
  });

  afterAll(() => stopDev(dev));

  test("dev has printed one line when all was up", async () => {
    const { ready } = dev;
    const answer = await fetch(`${ready.api}/readyz`);
    const lines = dev.process.output().split("\n");

    expect(lines.filter((line) => line.startsWith("{"))).toHaveLength(1);
    expect(ready).toMatchObject({
      ready: true,
      api: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      databaseUrl: expect.stringMatching(/^postgres:\/\//),
      redisUrl: expect.stringMatching(/^redis:\/\//),
    });
    expect(ready.pids.api).toHaveLength(1);
    expect(ready.pids.scheduler).toHaveLength(1);
    expect(ready.pids.worker).toHaveLength(3);
    expect(everyPid(ready).filter((pid) => identityOf(pid) === undefined)).toEqual([]);
    expect(answer.status).toBe(200);
  });

  test("a second dev on the same folder is refused", async () => {
    const where = ["--port", "0", "--data-dir", dev.dataDir];

    const { exitCode, output } = await runMillrace(["dev", ...where]);

    expect(exitCode).toBe(1);
    expect(output).toContain(`is in use by process ${dev.process.pid}`);
  });

  test("a process that is killed is replaced", async () => {
    const { api, pids } = dev.ready;

    for (const pid of [...pids.worker.slice(0, 1), ...pids.api]) kill(pid);

    await dev.process.waitForOutput(
      /worker-1 \(process \d+\) has ended \(SIGKILL\); starting another/,
    );
    await dev.process.waitForOutput(
      /api-1 \(process \d+\) has ended \(SIGKILL\); starting another/,
    );
    const isReady = async () => (await fetch(`${api}/readyz`)).ok;
    expect(await eventually("an API that is ready again", isReady)).toBe(true);
  });

  test("a Redis that is killed is started again", async () => {
    const { api, servers } = dev.ready;

    kill(servers.redis ?? 0);

    await dev.process.waitForOutput(/Redis has ended; starting it again/);
    const isReady = async () => {
      const { checks } = (await (await fetch(`${api}/readyz`)).json()) as {
        checks: Record<string, { status: string }>;
      };
      return Object.values(checks).every(({ status }) => status === "ok");
    };
    expect(await eventually("readiness with Redis", isReady)).toBe(true);
  });
});

test("SIGTERM ends everything that dev has started, with exit code 0", async () => {
  const dev = await startDev();
  const pids = everyPid(dev.ready);

  dev.process.signal("SIGTERM");
  const exit = await dev.process.exited;

  expect(exit).toEqual({ code: 0, signal: null });
  expect(pids.length).toBeGreaterThanOrEqual(6);
  expect(pids.filter((pid) => identityOf(pid) !== undefined)).toEqual([]);
  await stopDev(dev);
});

test("with --no-restart nothing is replaced; kill -9 of dev leaves no process behind", async () => {
  const dev = await startDev("--no-restart");
  const pids = everyPid(dev.ready);

  kill(dev.ready.pids.worker[0] ?? 0);
  await dev.process.waitForOutput(
    /worker-1 \(process \d+\) has ended \(SIGKILL\); it is not replaced/,
  );
  await dev.process.kill();

  const isOver = () => pids.every((pid) => identityOf(pid) === undefined);
  expect(await eventually("the end of all its processes", isOver)).toBe(true);
  await stopDev(dev);
});

test("a port that is taken is named before anything is started", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;

  const { exitCode, output } = await runMillrace(["dev", "--port", String(port)]);
  server.close();

  expect(exitCode).toBe(1);
  expect(output).toBe(
    `millrace dev: port ${port} is in use\n` +
      "Choose another with --port <port>; --port 0 takes a free one.\n",
  );
});

test("a worker that cannot load its tasks ends dev with the reason", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-e2e-"));
  const file = join(folder, "broken.mjs");
  await writeFile(file, "export const task = {");

  const where = ["--port", "0", "--data-dir", join(folder, "data")];
  const { exitCode, output } = await runMillrace(["dev", ...where, "--tasks", file]);
  await rm(folder, { recursive: true, force: true });

  expect(exitCode).toBe(1);
  expect(output).toMatch(/broken\.mjs: SyntaxError: .*, in line 1/);
});
