import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { startChild, type Child } from "./child.ts";
import { claimFolder, recordServer, releaseFolder } from "./data-folder.ts";
import { freePort } from "./ports.ts";
import { commandFor, findPostgres, type PostgresProgram } from "./postgres-program.ts";

export interface PostgresOptions {
  /** Everything lives here: the cluster, its password, its log. Created when missing. */
  readonly dataDir: string;
  /** A free one when absent. A restart keeps it. */
  readonly port?: number;
  /**
   * Whether a commit survives a loss of power; true when absent. False is for tests: a commit then
   * still survives kill -9 of Postgres, but not a crash of the machine.
   */
  readonly isDurable?: boolean;
  /** Server settings, as in `postgresql.conf`; they win over the ones chosen here. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * - `fast` ends open transactions and writes a checkpoint; the normal way.
 * - `immediate` drops everything as a crash would, and recovers at the next start.
 * - `kill` is kill -9 of the server's parent process.
 */
export type PostgresStopMode = "fast" | "immediate" | "kill";

/** A private Postgres 18 that listens on 127.0.0.1 only. */
export interface Postgres {
  /** Of the database `millrace`, with a superuser's rights. Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  /** `undefined` while it is stopped. */
  readonly pid: number | undefined;
  /** Stops it and releases the folder. Nothing happens when it is stopped already. */
  stop(mode?: PostgresStopMode): Promise<void>;
  /** Starts it again, on the same port, after `stop`. */
  start(): Promise<void>;
  restart(mode?: PostgresStopMode): Promise<void>;
}

/**
 * Starts Postgres on a data folder and returns when it takes connections.
 *
 * The server is a child of this process and never outlives it for long: see `guard.ts`. Signals are
 * the caller's to handle (`closeOnSignal`), as only the caller knows what has to stop first.
 *
 * @throws {DataFolderInUseError} When another process runs a server on this folder.
 */
export async function openPostgres(options: PostgresOptions): Promise<Postgres> {
  const folder = resolve(options.dataDir);
  const program = await findPostgres();
  await claimFolder(folder);
  const password = await createCluster(folder, program, options.isDurable ?? true);
  const port = options.port ?? (await freePort());
  const url = `postgres://millrace:${password}@127.0.0.1:${port}/millrace`;

  let server: Child | undefined;
  const start = async () => {
    if (server !== undefined && server.exit === undefined) return;
    await claimFolder(folder);
    server = await startServer(folder, program, port, options);
  };
  const stop = async (mode: PostgresStopMode = "fast") => {
    const running = server;
    server = undefined;
    if (running === undefined) return;
    running.kill(stopSignals[mode]);
    await running.stop(30_000);
    releaseFolder(folder);
  };

  await start();
  await createDatabase(url);
  return {
    url,
    port,
    get pid() {
      return server?.exit === undefined ? server?.pid : undefined;
    },
    start,
    stop,
    restart: async (mode) => {
      await stop(mode);
      await start();
    },
  };
}

const stopSignals = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

/** Runs initdb once per folder; answers the password of the superuser `millrace`. */
async function createCluster(
  folder: string,
  program: PostgresProgram,
  isDurable: boolean,
): Promise<string> {
  const cluster = join(folder, "cluster");
  const passwordFile = join(folder, "password");
  const doneFile = join(folder, "created");
  if (existsSync(doneFile)) {
    const version = readFileSync(join(cluster, "PG_VERSION"), "utf8").trim();
    if (version !== postgresVersion) {
      throw new Error(
        `the data folder ${folder} was made by Postgres ${version}, and this is Postgres ` +
          `${postgresVersion}; name another folder, or remove it if its data may go`,
      );
    }
    return readFileSync(passwordFile, "utf8").trim();
  }

  // A half-made cluster of an earlier, interrupted run holds no data.
  rmSync(cluster, { recursive: true, force: true });
  mkdirSync(cluster, { mode: 0o700 });
  const password = randomBytes(16).toString("hex");
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (program.account) {
    for (const path of [folder, cluster, passwordFile]) {
      chownSync(path, program.account.uid, program.account.gid);
    }
  }

  let output = "";
  // The built-in locale is the same on every machine, whatever locales the system has.
  const locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  // The password is random: hashing it thousands of times at every connection adds nothing to it.
  const superuser = ["--username=millrace", `--pwfile=${passwordFile}`, "--auth=scram-sha-256"];
  superuser.push("--set=scram_iterations=1");
  const args = [`--pgdata=${cluster}`, "--encoding=UTF8", "--no-instructions"].concat(
    superuser,
    locale,
    isDurable ? [] : ["--no-sync"],
  );
  const initdb = await startChild({
    ...commandFor(program.initdb, args, folder, program.account),
    env: { LC_ALL: "C" },
    cwd: cluster,
    output: (text) => {
      output += text;
    },
    stopSignal: "SIGTERM",
  });
  const { code } = await initdb.exited;
  if (code !== 0) throw new Error(`initdb could not create the cluster in ${cluster}:\n${output}`);
  writeFileSync(doneFile, "");
  return password;
}

async function startServer(
  folder: string,
  program: PostgresProgram,
  port: number,
  { isDurable = true, settings = {} }: PostgresOptions,
): Promise<Child> {
  const cluster = join(folder, "cluster");
  const logFile = join(folder, "postgres.log");
  const all = {
    ...alwaysSettings,
    ...(isDurable ? {} : relaxedSettings),
    ...settings,
    port: String(port),
  };
  const args = ["-D", cluster];
  for (const [name, value] of Object.entries(all)) args.push("-c", `${name}=${value}`);

  for (let attempt = 1; ; attempt += 1) {
    const log = openSync(logFile, "a", 0o600);
    const server = await startChild({
      ...commandFor(program.postgres, args, folder, program.account),
      env: { LC_ALL: "C" },
      cwd: cluster,
      output: log,
      stopSignal: "SIGINT",
    });
    closeSync(log);
    recordServer(folder, server.pid);
    if (await isReady(server, cluster)) return server;

    const exit = await server.stop();
    // After kill -9 the former server's helpers need a moment to see that it is gone.
    if (attempt < 20 && exit.signal === null && logTail(logFile).includes("shared memory block")) {
      await sleep(250);
      continue;
    }
    releaseFolder(folder);
    throw new Error(`Postgres did not start on port ${port}; its log ends:\n${logTail(logFile)}`);
  }
}

/** Reads the status that the server writes into its pid file, as pg_ctl does. */
async function isReady(server: Child, cluster: string): Promise<boolean> {
  const end = performance.now() + startTimeoutMs;
  while (server.exit === undefined && performance.now() < end) {
    const lines = readPidFile(cluster);
    if (Number(lines[0]) === server.pid && lines[7]?.trim() === "ready") return true;
    await sleep(20);
  }
  return false;
}

function readPidFile(cluster: string): readonly string[] {
  try {
    return readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n");
  } catch {
    return [];
  }
}

function logTail(file: string): string {
  return readFileSync(file, "utf8").split("\n").slice(-12).join("\n");
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url.replace(/[^/]+$/, "postgres") });
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_database where datname = 'millrace'");
    if (rowCount === 0) await client.query("create database millrace");
  } finally {
    await client.end();
  }
}

const postgresVersion = "18";

/** Recovery after a crash may take a while on a slow disk. */
const startTimeoutMs = 120_000;

const alwaysSettings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  timezone: "UTC",
  log_timezone: "UTC",
};

/** With `synchronous_commit` off a crash of the server alone would lose its last commits. */
const relaxedSettings = { fsync: "off", full_page_writes: "off" };
