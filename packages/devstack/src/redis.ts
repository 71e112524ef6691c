import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild, type Child } from "./child.ts";
import { programFolders } from "./config.ts";
import { claimFolder, recordServer, releaseFolder } from "./data-folder.ts";
import { freePort } from "./ports.ts";

export interface RedisOptions {
  /** Its password, log and, when persistent, data. Created when missing. */
  readonly dataDir: string;
  /** A free one when absent. A restart keeps it. */
  readonly port?: number;
  /** Whether it keeps an append-only file. False when absent: a restart begins empty. */
  readonly isPersistent?: boolean;
  /** As in `redis.conf`; they win over the ones chosen here. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A private Redis or Valkey that listens on 127.0.0.1 only. */
export interface Redis {
  /** With its password. Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  /** `undefined` while it is stopped. */
  readonly pid: number | undefined;
  /** Stops it and releases the folder; `kill` is kill -9. */
  stop(mode?: "fast" | "kill"): Promise<void>;
  /** Starts it again, on the same port, after `stop`. */
  start(): Promise<void>;
  restart(mode?: "fast" | "kill"): Promise<void>;
}

/**
 * Starts Redis and returns when it answers, or `undefined` when there is no `redis-server` or
 * `valkey-server` of a sufficient version on the PATH. `howToGetRedis` is what to tell then.
 *
 * As with Postgres it does not outlive this process, and signals are the caller's to handle.
 *
 * @throws {DataFolderInUseError} When another process runs a server on this folder.
 */
export async function openRedis(options: RedisOptions): Promise<Redis | undefined> {
  const program = findRedis();
  if (program === undefined) return undefined;
  const folder = resolve(options.dataDir);
  await claimFolder(folder);
  const port = options.port ?? (await freePort());
  const password = readOrCreatePassword(join(folder, "password"));
  const configFile = join(folder, "redis.conf");
  writeFileSync(configFile, configuration(folder, port, password, options), { mode: 0o600 });

  let server: Child | undefined;
  const start = async () => {
    if (server !== undefined && server.exit === undefined) return;
    await claimFolder(folder);
    server = await startServer(program, folder, configFile, port, password);
  };
  const stop = async (mode: "fast" | "kill" = "fast") => {
    const running = server;
    server = undefined;
    if (running === undefined) return;
    running.kill(mode === "kill" ? "SIGKILL" : "SIGTERM");
    await running.stop();
    releaseFolder(folder);
  };

  await start();
  return {
    url: `redis://:${password}@127.0.0.1:${port}`,
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

/** The path of a Redis ≥ 6.2 or of a Valkey, or `undefined`. */
export function findRedis(): string | undefined {
  for (const name of ["redis-server", "valkey-server"]) {
    for (const folder of programFolders()) {
      const path = join(folder, name);
      if (existsSync(path) && isRecent(path)) return path;
    }
  }
  return undefined;
}

/** One line that names the ways to a Redis on this machine. */
export const howToGetRedis =
  "install Redis 6.2 or later, or Valkey (Debian and Ubuntu: apt-get install redis-server; " +
  "macOS: brew install redis), or set REDIS_URL";

/** `redis-server --version` prints `Redis server v=7.0.15 …`, Valkey likewise. */
function isRecent(program: string): boolean {
  try {
    const line = execFileSync(program, ["--version"], { encoding: "utf8", stdio: "pipe" });
    const [, major, minor] = /v=(\d+)\.(\d+)/.exec(line) ?? [];
    return Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 2);
  } catch {
    return false;
  }
}

function configuration(
  folder: string,
  port: number,
  password: string,
  { isPersistent = false, settings = {} }: RedisOptions,
): string {
  const all = {
    port: String(port),
    bind: "127.0.0.1",
    dir: JSON.stringify(folder),
    requirepass: password,
    daemonize: "no",
    save: '""',
    appendonly: isPersistent ? "yes" : "no",
    // BullMQ's keys must never be evicted: a full Redis refuses writes instead.
    "maxmemory-policy": "noeviction",
    ...settings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name} ${value}\n`)
    .join("");
}

function readOrCreatePassword(file: string): string {
  if (existsSync(file)) return readFileSync(file, "utf8").trim();
  const password = randomBytes(16).toString("hex");
  writeFileSync(file, `${password}\n`, { mode: 0o600 });
  return password;
}

async function startServer(
  program: string,
  folder: string,
  configFile: string,
  port: number,
  password: string,
): Promise<Child> {
  const logFile = join(folder, "redis.log");
  const log = openSync(logFile, "a", 0o600);
  const server = await startChild({
    command: program,
    args: [configFile],
    cwd: folder,
    output: log,
    stopSignal: "SIGTERM",
  });
  closeSync(log);
  recordServer(folder, server.pid);
  const end = performance.now() + 30_000;
  while (server.exit === undefined && performance.now() < end) {
    if (await answersPing(port, password)) return server;
    await sleep(20);
  }
  await server.stop();
  releaseFolder(folder);
  const tail = readFileSync(logFile, "utf8").split("\n").slice(-8).join("\n");
  throw new Error(`Redis did not start on port ${port}; its log ends:\n${tail}`);
}

/** True once commands are taken; a server that still loads its file answers -LOADING. */
async function answersPing(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let answer = "";
    const finish = () => {
      socket.destroy();
      resolve(answer.includes("+PONG"));
    };
    socket.setTimeout(1_000, finish);
    socket.once("error", finish);
    socket.once("close", finish);
    socket.once("connect", () => socket.write(`AUTH ${password}\r\nPING\r\nQUIT\r\n`));
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
  });
}
