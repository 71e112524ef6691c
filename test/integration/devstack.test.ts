import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DataFolderInUseError, identityOf, openPostgres, openRedis } from "@millrace/devstack";
import {
  createTemporaryFolder,
  eventually,
  startProcess,
  stopProcesses,
  type TestProcess,
  type TemporaryFolder,
} from "@millrace/testkit";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

// All have one folder, one after the other: to create a cluster takes longer than what they do with it.
let temporary: TemporaryFolder;
let folder: string;
let dataDir: string;
beforeAll(async () => {
  temporary = await createTemporaryFolder();
  folder = temporary.path;
  dataDir = join(folder, "postgres");
});
afterEach(stopProcesses);
afterAll(() => temporary.remove());

test.each(["fast", "immediate", "kill"] as const)(
  "what Postgres committed is there after a %s stop and a start, at the same address",
  async (mode) => {
    const postgres = await openPostgres({ dataDir });
    await query(postgres.url, `create table kept_${mode} as select 42 as answer`);
    const before = postgres.pid;

    await postgres.restart(mode);

    expect(postgres.pid).not.toBe(before);
    expect(await query(postgres.url, `select answer from kept_${mode}`)).toEqual([{ answer: 42 }]);
    await postgres.stop();
    expect(postgres.pid).toBeUndefined();
    expect(isRunning(before)).toBe(false);
  },
);

test("Postgres writes through to the disk unless it is told not to", async () => {
  const postgres = await openPostgres({ dataDir });

  const settings = await query(
    postgres.url,
    "select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit",
  );

  expect(settings).toEqual([{ fsync: "on", commit: "on" }]);
  await postgres.stop();
});

test("a folder in which another process runs a server is refused", async () => {
  const other = await startServersElsewhere();

  await expect(openPostgres({ dataDir })).rejects.toThrow(DataFolderInUseError);
  await other.stop();
});

test("the servers of a process that is killed end with it, and their folder is free again", async () => {
  const other = await startServersElsewhere();
  const pids = pidsOf(other);

  await other.kill();
  const postgres = await openPostgres({ dataDir });

  await eventually("the end of the servers", () => !pids.some(isRunning));
  expect(await query(postgres.url, "select 1 as one")).toEqual([{ one: 1 }]);
  await postgres.stop();
});

test("Ctrl-C stops the servers before the process ends, with the exit code of the signal", async () => {
  const other = await startServersElsewhere();

  other.signal("SIGINT");

  expect(await other.exited).toEqual({ code: 130, signal: null });
  expect(pidsOf(other).some(isRunning)).toBe(false);
});

test("Redis begins empty after a restart, unless it is persistent", async () => {
  const [volatile, persistent] = await Promise.all([
    openRedis({ dataDir: join(folder, "volatile") }),
    openRedis({
      dataDir: join(folder, "persistent"),
      isPersistent: true,
      settings: { appendfsync: "always" },
    }),
  ]);
  if (!volatile || !persistent) throw new Error("no Redis");
  for (const { url } of [volatile, persistent]) await onRedis(url, (it) => it.set("key", "value"));

  await Promise.all([volatile.restart("kill"), persistent.restart("kill")]);

  expect(await onRedis(volatile.url, (it) => it.get("key"))).toBeNull();
  expect(await onRedis(persistent.url, (it) => it.get("key"))).toBe("value");
  expect(await onRedis(volatile.url, (it) => it.config("GET", "maxmemory-policy"))).toContain(
    "noeviction",
  );
  await Promise.all([volatile.stop(), persistent.stop()]);
  expect(volatile.pid).toBeUndefined();
});

/** A process of its own that runs both servers until it is told to end. */
async function startServersElsewhere(): Promise<TestProcess> {
  const devstack = pathToFileURL(
    join(import.meta.dirname, "../../packages/devstack/dist/index.js"),
  );
  const script = `
    import { closeOnSignal, openPostgres, openRedis } from ${JSON.stringify(devstack.href)};
    const postgres = await openPostgres({ dataDir: process.argv[1] + "/postgres" });
    const redis = await openRedis({ dataDir: process.argv[1] + "/redis" });
    closeOnSignal(() => Promise.all([postgres.stop(), redis.stop()]));
    console.log("pids", postgres.pid, redis.pid);
  `;
  const started = await startProcess({
    args: ["--input-type=module", "-e", script, folder],
  });
  await started.waitForOutput(/^pids .*$/m);
  return started;
}

function pidsOf(started: TestProcess): readonly number[] {
  const [, postgres, redis] = /^pids (\d+) (\d+)$/m.exec(started.output()) ?? [];
  return [Number(postgres), Number(redis)];
}

function isRunning(pid: number | undefined): boolean {
  return pid !== undefined && identityOf(pid) !== undefined;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function onRedis<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}
