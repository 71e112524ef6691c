import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { migrate } from "./migrate.ts";
import { noteExit } from "./note-exit.ts";
import { freePort } from "./ports.ts";
import { openPostgres, type Postgres } from "./postgres.ts";
import { openRedis, type Redis } from "./redis.ts";
import {
  supervise,
  type ProcessPlan,
  type Role,
  type StackEvent,
  type StackOutput,
  type SupervisedProcess,
} from "./supervise.ts";

/**
 * The whole of Millrace on one machine: Postgres, Redis, and the API, scheduler and workers as the
 * same child processes that run in production. What is given by address is used, what is not is
 * started privately below the data folder.
 *
 * The processes get their settings from the environment, as everywhere, and tell over the channel
 * to their parent that they are ready (`supervise.ts`). The API counts as ready
 * when `GET /readyz` answers 200 as well.
 */
export interface StackOptions {
  readonly dataDir: string;
  /** A private Postgres when absent. */
  readonly databaseUrl?: string | undefined;
  /** A private Redis when absent, where the machine has one. */
  readonly redisUrl?: string | undefined;
  /** `postgres` does without Redis. When absent: Redis where there is one. */
  readonly queueBackend?: QueueBackend | undefined;
  /** Of the first API process; a free one when absent or 0. */
  readonly port?: number;
  /** 1 when absent. */
  readonly apis?: number;
  /** 1 when absent. */
  readonly schedulers?: number;
  /** 2 when absent. */
  readonly workers?: number;
  /** Files and folders of task modules, for every worker. */
  readonly tasks?: readonly string[];
  /** Further settings of every process; `undefined` takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Whether a process that dies is started again; true when absent. */
  readonly isRestarted?: boolean;
  /** Of the private Postgres: see `PostgresOptions`. True when absent. */
  readonly isDurable?: boolean;
  /** `files` when absent, below the data folder. */
  readonly output?: StackOutput;
  readonly onEvent?: (event: StackEvent) => void;
  /** Aborted when it is to be given up before it is ready. */
  readonly signal?: AbortSignal;
  /** What runs instead of the apps of this repository; for tests of the stack itself. */
  readonly programs?: Readonly<Record<Role, string>>;
}

export type QueueBackend = "redis" | "postgres";

export interface Stack {
  /** Of the first API process. */
  readonly apiUrl: string;
  /** Of every API process. */
  readonly apiUrls: readonly string[];
  readonly databaseUrl: string;
  /** `undefined` when the queue is in Postgres. */
  readonly redisUrl: string | undefined;
  readonly queueBackend: QueueBackend;
  /** The private servers, to stop and restart them in tests; `undefined` when given by address. */
  readonly postgres: Postgres | undefined;
  readonly redis: Redis | undefined;
  /** The processes that live now. */
  pids(): Readonly<Record<Role, readonly number[]>>;
  /** Stops all in order: API, scheduler and workers, Redis, Postgres. A second call waits too. */
  close(): Promise<void>;
}

/**
 * Starts everything, in the order of dependence, and returns when all of it is ready.
 *
 * @throws When something does not start, or `signal` is aborted; what had started by then is stopped again.
 */
export async function openStack(options: StackOptions): Promise<Stack> {
  const dataDir = resolve(options.dataDir);
  const closers: (() => Promise<unknown>)[] = [];
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= closeAll(closers));
  try {
    const postgres =
      options.databaseUrl === undefined
        ? await openPostgres({
            dataDir: join(dataDir, "postgres"),
            isDurable: options.isDurable ?? true,
          })
        : undefined;
    if (postgres) closers.push(() => postgres.stop());
    const databaseUrl = options.databaseUrl ?? postgres?.url ?? "";

    const isRedisWanted = options.queueBackend !== "postgres" && options.redisUrl === undefined;
    const redis = isRedisWanted ? await openRedis({ dataDir: join(dataDir, "redis") }) : undefined;
    if (redis) closers.push(() => redis.stop());
    const redisUrl =
      options.queueBackend === "postgres" ? undefined : (options.redisUrl ?? redis?.url);
    const queueBackend = redisUrl === undefined ? "postgres" : "redis";

    options.signal?.throwIfAborted();
    await migrate(databaseUrl);
    options.signal?.throwIfAborted();

    const ports = await apiPorts(options);
    const env = {
      ...options.env,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      MILLRACE_QUEUE_BACKEND: queueBackend,
      MILLRACE_TASKS: options.tasks?.map((path) => resolve(path)).join(","),
    };
    const onEvent = (event: StackEvent) => {
      noteExit(databaseUrl, event);
      options.onEvent?.(event);
    };
    const plans = plan({ ...options, onEvent }, dataDir, env, ports);
    const processes = await startProcesses(plans, closers);

    const apiUrls = ports.map((port) => `http://127.0.0.1:${port}`);
    const pidsOf = (role: Role) =>
      processes.filter((it) => it.role === role).flatMap(({ pid }) => pid ?? []);
    return {
      apiUrl: apiUrls[0] ?? "",
      apiUrls,
      databaseUrl,
      redisUrl,
      queueBackend,
      postgres,
      redis,
      pids: () => ({
        api: pidsOf("api"),
        scheduler: pidsOf("scheduler"),
        worker: pidsOf("worker"),
      }),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The last one opened is closed first; one that fails does not keep the others open. */
async function closeAll(closers: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const closeOne of closers.toReversed()) {
    await closeOne().catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw new AggregateError(errors, "not everything could be stopped");
}

async function apiPorts({ port = 0, apis = 1 }: StackOptions): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < apis) {
    ports.push(ports.length === 0 && port !== 0 ? port : await freePort());
  }
  return ports;
}

function plan(
  options: StackOptions,
  dataDir: string,
  env: ProcessPlan["env"],
  ports: readonly number[],
): readonly ProcessPlan[] {
  const programs = options.programs ?? appPrograms();
  const common = {
    env,
    logsFolder: join(dataDir, "logs"),
    output: options.output ?? "files",
    isRestarted: options.isRestarted ?? true,
    onEvent: options.onEvent ?? (() => {}),
    signal: options.signal,
  };
  const several = (role: Role, count: number): ProcessPlan[] =>
    Array.from({ length: count }, (_, index) => ({
      ...common,
      role,
      name: `${role}-${index + 1}`,
      program: programs[role],
    }));
  const apis = several("api", ports.length).map((it, index) => ({
    ...it,
    env: { ...env, HOST: "127.0.0.1", PORT: String(ports[index]) },
    waitForMore: (signal: AbortSignal) => untilReady(ports[index], signal),
  }));
  return [
    ...apis,
    ...several("scheduler", options.schedulers ?? 1),
    ...several("worker", options.workers ?? 2),
  ];
}

/** All at once; when one fails, those that did start are left to `closers`. */
async function startProcesses(
  plans: readonly ProcessPlan[],
  closers: (() => Promise<unknown>)[],
): Promise<readonly SupervisedProcess[]> {
  const started = await Promise.allSettled(plans.map(supervise));
  const processes = started.flatMap((it) => (it.status === "fulfilled" ? it.value : []));
  // First nothing new is taken in, then what runs comes to an end.
  closers.push(() => stopAll(processes.filter(({ role }) => role !== "api")));
  closers.push(() => stopAll(processes.filter(({ role }) => role === "api")));
  const failure = started.find((it) => it.status === "rejected");
  if (failure) throw failure.reason;
  return processes;
}

async function stopAll(processes: readonly SupervisedProcess[]): Promise<void> {
  await Promise.all(processes.map((it) => it.stop()));
}

async function untilReady(port: number | undefined, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const request = fetch(`http://127.0.0.1:${port}/readyz`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(2_000)]),
    });
    if (await request.then(({ ok }) => ok).catch(() => false)) return;
    await sleep(25);
  }
}

/** By path and not by name: the apps are not dependencies of this package, only started by it. */
function appPrograms(): Readonly<Record<Role, string>> {
  const program = (role: Role) => {
    const path = fileURLToPath(new URL(`../../../apps/${role}/bundle/main.js`, import.meta.url));
    if (!existsSync(path)) throw new Error(`${path} is missing; build first: npm run build`);
    return path;
  };
  return { api: program("api"), scheduler: program("scheduler"), worker: program("worker") };
}
