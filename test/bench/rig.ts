import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openStack, startChild } from "@millrace/devstack";
import type { Child, Stack } from "@millrace/devstack";
import pg from "pg";
import { driverMark } from "./counters.ts";
import type { Watched } from "./counters.ts";
import { openHttp } from "./http.ts";
import type { Http } from "./http.ts";
import { inFlight, range } from "./statistics.ts";
import { printStatements } from "./statements.ts";
import type { Bench } from "./workload.ts";

/**
 * One installation under measurement: API, scheduler and workers as in production, on a fresh
 * database. Workers are started by the workload, as many and when it wants them.
 */
export interface Rig extends Watched {
  readonly stack: Stack;
  readonly http: Http;
  readonly sql: pg.Pool;
  /** Starts a worker process; returns at once, and not when it is ready. */
  startWorker(): Promise<BenchWorker>;
  /** Starts worker processes that have loaded their program, and wait for the word to begin. */
  holdWorkers(count: number): Promise<{ begin(): void }>;
  register(document: { readonly id: string }): Promise<void>;
  /** Starts so many instances by `:batch`, and returns their ids. */
  start(workflowId: string, count: number, input?: (index: number) => object): Promise<string[]>;
  /**
   * Waits until the store shows so many instances of this status; when that was, in ms.
   *
   * @param since Only those that came to it since then, by the database's clock.
   */
  untilCount(status: string, count: number, since?: Date): Promise<number>;
  /** The end of each log, for the message of a failure. */
  logs(): string;
  close(): Promise<void>;
}

export interface BenchWorker {
  readonly child: Child;
  /** Settles when it says that it takes jobs. */
  readonly ready: Promise<void>;
}

/** Milliseconds since 1970, with fractions. */
export function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Beyond the defaults; the peers that Millrace is compared with ran 100 at once too. */
export const workerSettings = { MILLRACE_CONCURRENCY: "100" } as const;

const here = import.meta.dirname;
const tasksFile = join(here, "tasks.js");
const holdFile = join(here, "hold.js");
const workerProgram = fileURLToPath(
  new URL("../../../apps/worker/bundle/main.js", import.meta.url),
);
/** By then the threads of workers that have loaded have loaded as well. */
const threadsMs = 500;
const longestMs = 120_000;

/** @param env Settings of API and scheduler beyond the defaults. */
export async function openRig(
  { servers, profileFolder }: Bench,
  env: Readonly<Record<string, string>> = {},
): Promise<Rig> {
  const closers: (() => unknown)[] = [];
  const close = async () => {
    for (const closeOne of closers.splice(0).toReversed()) await closeOne();
  };
  try {
    const database = await servers.freshDatabase();
    closers.push(() => database.drop());
    const dataDir = join(servers.folder, database.name);
    const profiling = profileEnvironment(profileFolder);
    const stack = await openStack({
      dataDir,
      databaseUrl: database.url,
      redisUrl: servers.redis.url,
      workers: 0,
      isRestarted: false,
      env: { ...profiling, ...env },
    });
    closers.push(() => stack.close());
    const sql = new pg.Pool({ connectionString: database.url, max: 2 });
    closers.push(() => sql.end());
    const http = openHttp(stack.apiUrl);
    closers.push(() => http.close());

    const workers: Child[] = [];
    closers.push(() => Promise.all(workers.map((child) => child.stop())));
    const logs = join(dataDir, "logs");
    const startWorker = async (programArguments: readonly string[]) => {
      mkdirSync(logs, { recursive: true });
      const log = openSync(join(logs, `worker-${workers.length + 1}.log`), "a", 0o600);
      const heard = new Map<string, () => void>();
      const hears = (kind: string) => new Promise<void>((settle) => heard.set(kind, settle));
      const [loaded, ready] = [hears("loaded"), hears("ready")];
      const child = await startChild({
        command: process.execPath,
        args: programArguments,
        env: {
          ...profiling,
          DATABASE_URL: database.url,
          REDIS_URL: servers.redis.url,
          MILLRACE_QUEUE_BACKEND: "redis",
          MILLRACE_TASKS: tasksFile,
          ...workerSettings,
        },
        stopSignal: "SIGTERM",
        output: log,
        onMessage: (message) => heard.get((message as { readonly kind: string }).kind)?.(),
      });
      closeSync(log);
      workers.push(child);
      return { child, loaded, ready };
    };
    const rig: Rig = {
      stack,
      http,
      sql,
      database: database.name,
      pids: () => ({
        ...stack.pids(),
        worker: workers.filter(({ exit }) => exit === undefined).map(({ pid }) => pid),
      }),
      startWorker: () => startWorker([workerProgram]),
      async holdWorkers(count) {
        const held = await Promise.all(
          range(count).map(() => startWorker(["--import", holdFile, workerProgram])),
        );
        await Promise.all(held.map(({ loaded }) => loaded));
        await sleep(threadsMs);
        return {
          begin() {
            for (const { child } of held) child.kill("SIGUSR2");
          },
        };
      },
      async register(document) {
        await http.call("PUT", `/v1/definitions/${document.id}`, document);
      },
      start: (workflowId, count, input) => startAll(http, workflowId, count, input),
      untilCount: (status, count, since) => untilCount(rig, status, count, since),
      logs: () => tailsOf(logs),
      close,
    };
    return rig;
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens a rig, with the ends of its logs in the message when the measurement fails. */
export async function withRig<T>(
  bench: Bench,
  measure: (rig: Rig) => Promise<T>,
  env: Readonly<Record<string, string>> = {},
): Promise<T> {
  const rig = await openRig(bench, env);
  try {
    const measured = await measure(rig);
    if (bench.showsStatements) await printStatements(bench.servers, rig.database);
    return measured;
  } catch (error) {
    throw new Error(`${String(error)}\n${rig.logs()}`, { cause: error });
  } finally {
    await rig.close();
  }
}

/** Starts workers and waits until they take jobs. */
export async function startWorkers(rig: Rig, count: number): Promise<readonly BenchWorker[]> {
  const workers = await Promise.all(range(count).map(() => rig.startWorker()));
  await Promise.all(workers.map(({ ready }) => ready));
  return workers;
}

interface StartResults {
  readonly results: readonly { readonly status: number; readonly instance?: { id: string } }[];
}

async function startAll(
  http: Http,
  workflowId: string,
  count: number,
  input: (index: number) => object = (index) => ({ n: index }),
): Promise<string[]> {
  const size = 500;
  const ids: string[] = [];
  await inFlight(range(Math.ceil(count / size)), 2, async (batch) => {
    const from = batch * size;
    const items = range(Math.min(size, count - from)).map((index) => ({
      workflowId,
      input: input(from + index),
    }));
    const { results } = await http.call<StartResults>("POST", "/v1/instances:batch", items);
    const refused = results.find(({ status }) => status !== 201);
    if (refused) throw new Error(`a start was refused: ${JSON.stringify(refused)}`);
    for (const { instance } of results) if (instance) ids.push(instance.id);
  });
  return ids;
}

/** Looks seldom while much is left: the driver shares the cores with what it measures. */
async function untilCount(
  { sql }: Rig,
  status: string,
  count: number,
  since = new Date(0),
): Promise<number> {
  const until = wallMs() + longestMs;
  for (;;) {
    const { rows } = await sql.query<{ count: number }>({
      name: "count",
      text: `select count(*)::int as count from workflow_instances as ${driverMark}
             where tenant_id = 'default' and status = $1 and status_at >= $2`,
      values: [status, since],
    });
    const found = rows[0]?.count ?? 0;
    if (found >= count) return wallMs();
    if (wallMs() > until) throw new Error(`only ${found} of ${count} became ${status} in time`);
    await sleep(found < 0.9 * count ? 100 : 20);
  }
}

function profileEnvironment(folder: string | undefined): Record<string, string | undefined> {
  if (folder === undefined) return {};
  mkdirSync(folder, { recursive: true });
  return {
    BENCH_PROFILE_FOLDER: resolve(folder),
    NODE_OPTIONS: `--import=${new URL("profiler.js", import.meta.url).href}`,
  };
}

function tailsOf(folder: string): string {
  try {
    return readdirSync(folder)
      .map((name) => `--- ${name}\n${readFileSync(join(folder, name), "utf8").slice(-1_500)}`)
      .join("\n");
  } catch {
    return "";
  }
}
