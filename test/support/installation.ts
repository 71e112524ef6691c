import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { MillraceClient } from "@millrace/client";
import { openStack, type Stack, type StackEvent, type StackOptions } from "@millrace/devstack";
import {
  createDatabase,
  createTemporaryFolder,
  eventually,
  kill,
  openLedger,
  type Ledger,
  type TemporaryFolder,
} from "@millrace/testkit";
import { Redis } from "ioredis";
import pg from "pg";
import { testSettings } from "./config.ts";

/**
 * A whole Millrace under test: real processes, a Redis of its own (so that it may be emptied and
 * killed), a database or a Postgres of its own, and the ledger that its tasks tell what they do.
 */
export interface Installation {
  readonly stack: Stack;
  readonly client: MillraceClient;
  readonly ledger: Ledger;
  /** What happened to its processes, oldest first. */
  readonly events: readonly StackEvent[];
  /** Rows of a query of the database behind the product's back. */
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** One connection to its Redis, for the time of `use`. */
  withRedis<T>(use: (redis: Redis) => Promise<T>): Promise<T>;
  /** What all of its processes have logged so far. */
  logs(): string;
  /** For processes that a test starts itself. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export interface InstallationOptions extends Pick<
  StackOptions,
  "workers" | "apis" | "schedulers" | "isRestarted" | "env"
> {
  /** For tests that stop Postgres; the others share a server. */
  readonly ownPostgres?: boolean;
}

export const tasksFolder = resolve(import.meta.dirname, "tasks");

export async function openInstallation({
  ownPostgres = false,
  env = {},
  ...options
}: InstallationOptions = {}): Promise<Installation> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    const errors: unknown[] = [];
    for (const closeOne of closers.splice(0).toReversed()) {
      await closeOne().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw new AggregateError(errors, "not everything could be closed");
  };
  try {
    const folder = await createTemporaryFolder();
    closers.push(() => (testSettings().keepsFolders ? keep(folder) : folder.remove()));
    const ledger = await openLedger();
    closers.push(() => ledger.close());
    const database = ownPostgres ? undefined : await createDatabase();
    if (database) closers.push(() => database.drop());

    const events: StackEvent[] = [];
    const environment = { MILLRACE_DEMO_LEDGER: `${ledger.url}/entries` };
    const stack = await openStack({
      dataDir: folder.path,
      databaseUrl: database?.url,
      queueBackend: "redis",
      isDurable: false,
      tasks: [tasksFolder],
      env: { MILLRACE_QUEUES: undefined, ...environment, ...env },
      onEvent: (event) => events.push(event),
      ...options,
    });
    closers.push(() => stack.close());
    const { databaseUrl, redisUrl = "" } = stack;

    const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 });
    // Connections that rest in the pool die with a Postgres that is restarted.
    pool.on("error", () => {});
    closers.push(() => pool.end());
    return {
      stack,
      client: new MillraceClient({ baseUrl: stack.apiUrl }),
      ledger,
      events,
      query: async (text, values = []) => (await pool.query(text, [...values])).rows,
      withRedis: async (use) => {
        const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1 });
        redis.on("error", () => {});
        try {
          return await use(redis);
        } finally {
          redis.disconnect();
        }
      },
      logs: () => logsIn(folder),
      environment: {
        ...environment,
        DATABASE_URL: databaseUrl,
        REDIS_URL: redisUrl,
        MILLRACE_QUEUE_BACKEND: "redis",
        MILLRACE_TASKS: tasksFolder,
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function logsIn({ path }: TemporaryFolder): string {
  const logsFolder = join(path, "logs");
  const read = (name: string) => readFileSync(join(logsFolder, name), "utf8");
  return readdirSync(logsFolder).map(read).join("");
}

/** Workers of an installation that take from a queue of their own, so that they can be harmed by themselves. */
export interface OwnWorkers {
  readonly queue: string;
  readonly stack: Stack;
  /** What happened to them, oldest first. */
  readonly events: readonly StackEvent[];
  /** What they have logged so far. */
  logs(): string;
  close(): Promise<void>;
}

export interface OwnWorkersOptions extends Pick<StackOptions, "workers" | "env"> {
  /** Compensation steps have no other queue. */
  readonly takesDefaultQueue?: boolean;
}

export async function openOwnWorkers(
  { environment }: Installation,
  { workers = 1, env = {}, takesDefaultQueue = false }: OwnWorkersOptions,
): Promise<OwnWorkers> {
  const queue = `q${randomUUID().slice(0, 8)}`;
  const folder = await createTemporaryFolder();
  const events: StackEvent[] = [];
  const stack = await openStack({
    dataDir: folder.path,
    databaseUrl: environment["DATABASE_URL"],
    redisUrl: environment["REDIS_URL"],
    queueBackend: "redis",
    apis: 0,
    schedulers: 0,
    workers,
    tasks: [tasksFolder],
    env: {
      ...environment,
      ...env,
      MILLRACE_QUEUES: takesDefaultQueue ? `${queue},default` : queue,
    },
    onEvent: (event) => events.push(event),
  });
  const close = async () => {
    await stack.close();
    await folder.remove();
  };
  return { queue, stack, events, logs: () => logsIn(folder), close };
}

/** Under a name by which it is not taken for a leftover. */
async function keep({ path }: TemporaryFolder): Promise<void> {
  const kept = path.replace("millrace-test-", "millrace-kept-");
  await rename(path, kept);
  process.stdout.write(`kept ${kept}\n`);
}

/** The program of a role, for processes that a test starts itself. */
export function programOf(role: "api" | "worker" | "scheduler"): string {
  return join(import.meta.dirname, "../../apps", role, "bundle/main.js");
}

/** kill -9 of these processes, which are started again; returns when the new ones are ready. */
export async function replaceByKilling(
  { events }: Installation,
  pids: readonly number[],
): Promise<void> {
  for (const pid of pids) kill(pid);
  await eventually(
    "the processes that replace the killed ones",
    () => {
      const last = new Map(events.map(({ name, kind, pid }) => [name, { kind, pid }]));
      return [...last.values()].every(({ kind, pid }) => kind === "ready" && !pids.includes(pid));
    },
    { timeoutMs: 60_000 },
  );
}
