import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { identityOf, openStack, type Stack, type StackEvent } from "@millrace/devstack";
import {
  createTemporaryFolder,
  eventually,
  kill,
  startProcess,
  stopProcesses,
  testServices,
  type TemporaryFolder,
} from "@millrace/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

const fakeApp = resolve(import.meta.dirname, "../support/fake-app.mjs");
const programs = { api: fakeApp, scheduler: fakeApp, worker: fakeApp };

let temporary: TemporaryFolder;
let dataDir: string;
let stack: Stack | undefined;
beforeEach(async () => {
  temporary = await createTemporaryFolder();
  dataDir = temporary.path;
});
afterEach(async () => {
  await stack?.close();
  stack = undefined;
  await stopProcesses();
  await temporary.remove();
});

test("every process gets the addresses and its settings, and is ready when the stack is", async () => {
  const { databaseUrl, redisUrl } = await testServices();
  stack = await openStack({ dataDir, programs, databaseUrl, redisUrl, tasks: ["/tasks/a.js"] });

  const { api, scheduler, worker } = stack.pids();
  expect([api.length, scheduler.length, worker.length]).toEqual([1, 1, 2]);
  expect((await fetch(`${stack.apiUrl}/readyz`)).status).toBe(200);
  expect(await settingsOf("worker-2")).toEqual({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MILLRACE_QUEUE_BACKEND: "redis",
    MILLRACE_TASKS: "/tasks/a.js",
  });
});

test("without Redis the processes are told to keep the queue in Postgres", async () => {
  const { databaseUrl } = await testServices();
  stack = await openStack({ dataDir, programs, databaseUrl, queueBackend: "postgres", workers: 1 });

  expect(stack.redisUrl).toBeUndefined();
  expect(await settingsOf("scheduler-1")).toEqual({
    DATABASE_URL: databaseUrl,
    MILLRACE_QUEUE_BACKEND: "postgres",
  });
});

test("without addresses it brings up its own Postgres and Redis, and stops all it started", async () => {
  stack = await openStack({ dataDir, programs, isDurable: false });
  const { postgres, redis } = stack;
  const pids = [postgres?.pid, redis?.pid, ...Object.values(stack.pids()).flat()];
  expect(pids.map(isRunning)).toEqual(pids.map(() => true));

  await stack.close();

  expect(pids.map(isRunning)).toEqual(pids.map(() => false));
  expect(await readFile(join(dataDir, "logs/worker-1.log"), "utf8")).toContain("stopping");
});

test("a process that is killed is replaced, at the same address", async () => {
  const services = await testServices();
  const events: StackEvent[] = [];
  stack = await openStack({ dataDir, programs, ...services, onEvent: (it) => events.push(it) });
  const before = stack.pids();

  for (const pid of [before.api[0], before.worker[1]]) kill(pid ?? 0);

  await eventually("two new processes to be ready", () => readyIn(events) === 6);
  const after = stack.pids();
  expect(after.worker[0]).toBe(before.worker[0]);
  expect(after.worker[1]).not.toBe(before.worker[1]);
  expect(after.api[0]).not.toBe(before.api[0]);
  expect((await fetch(`${stack.apiUrl}/readyz`)).status).toBe(200);
});

test("with isRestarted false a killed process stays away", async () => {
  const services = await testServices();
  const events: StackEvent[] = [];
  stack = await openStack({
    dataDir,
    programs,
    ...services,
    isRestarted: false,
    onEvent: (it) => events.push(it),
  });

  kill(stack.pids().worker[0] ?? 0);

  await eventually("the end", () => events.some(({ kind }) => kind === "ended"));
  expect(stack.pids().worker).toHaveLength(1);
});

test("a process that does not end has the time that it has asked for, and is then killed", async () => {
  const services = await testServices();
  const env = { FAKE_STUBBORN: "1", FAKE_ENDS_WITHIN_MS: "500" };
  stack = await openStack({ dataDir, programs, ...services, env });
  const pids = Object.values(stack.pids()).flat();

  await stack.close();

  expect(pids.filter(isRunning)).toEqual([]);
  // Without its word for it, it has longer.
}, 14_000);

test("a process that cannot start fails the whole, with what it said, and not those before it", async () => {
  const services = await testServices();
  await mkdir(join(dataDir, "logs"));
  for (const name of ["api-1", "scheduler-1", "worker-1", "worker-2"]) {
    await writeFile(join(dataDir, "logs", `${name}.log`), "could not start, the day before\n");
  }
  const pids: number[] = [];
  const opening = openStack({
    dataDir,
    programs,
    ...services,
    env: { FAKE_EXIT: "2" },
    onEvent: ({ pid }) => pids.push(pid),
  });

  const said = await opening.then(() => "nothing", String);
  expect(said).toMatch(/exit code 2(.|\n)*DATABASE_URL is not a URL/);
  expect(said).not.toContain("the day before");
  expect(pids.filter(isRunning)).toEqual([]);
});

test("what is called off while its processes start is stopped, also one that hears nothing", async () => {
  const services = await testServices();
  const pids: number[] = [];
  const calledOff = new AbortController();
  const opening = openStack({
    dataDir,
    programs,
    ...services,
    env: { FAKE_BLOCKED: "1" },
    signal: calledOff.signal,
    onEvent: ({ kind, pid }) => {
      if (kind === "started") pids.push(pid);
      else if (kind === "ready") calledOff.abort(new Error("called off"));
    },
  });

  await expect(opening).rejects.toThrow("called off");
  expect(pids).toHaveLength(4);
  expect(pids.filter(isRunning)).toEqual([]);
});

test("when the process that opened the stack is killed, nothing of it stays behind", async () => {
  const devstack = resolve(import.meta.dirname, "../../packages/devstack/dist/index.js");
  const script = `
    import { openStack } from ${JSON.stringify(pathToFileURL(devstack).href)};
    const programs = ${JSON.stringify(programs)};
    const stack = await openStack({ dataDir: process.argv[1], programs, isDurable: false });
    const { postgres, redis } = stack;
    console.log("up", JSON.stringify([postgres.pid, redis.pid, ...Object.values(stack.pids()).flat()]));
  `;
  const opener = await startProcess({ args: ["--input-type=module", "-e", script, dataDir] });
  const [, list = ""] = await opener.waitForOutput(/^up (.*)$/m);
  const pids = JSON.parse(list) as number[];
  expect(pids.map(isRunning)).toEqual(pids.map(() => true));

  await opener.kill();

  await eventually("the end of all", () => !pids.some(isRunning));
});

function readyIn(events: readonly StackEvent[]): number {
  return events.filter(({ kind }) => kind === "ready").length;
}

async function settingsOf(name: string): Promise<unknown> {
  const log = await readFile(join(dataDir, "logs", `${name}.log`), "utf8");
  return JSON.parse(/^settings (.*)$/m.exec(log)?.[1] ?? "null");
}

function isRunning(pid: number | undefined): boolean {
  return pid !== undefined && identityOf(pid) !== undefined;
}
