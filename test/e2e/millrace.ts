import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startProcess, type TestProcess } from "@millrace/testkit";

export const root = resolve(import.meta.dirname, "../..");
export const program = join(root, "apps/cli/bin/millrace.js");

/** What `dev --ready-json` prints when all is up. */
export interface ReadyLine {
  readonly ready: true;
  readonly api: string;
  readonly databaseUrl: string;
  readonly redisUrl: string | null;
  readonly pids: Readonly<Record<"api" | "worker" | "scheduler", readonly number[]>>;
  readonly servers: { readonly postgres: number | null; readonly redis: number | null };
}

export interface Dev {
  readonly process: TestProcess;
  readonly ready: ReadyLine;
  readonly dataDir: string;
  /** Runs `millrace` against this API. */
  millrace(...args: readonly string[]): Promise<Ran>;
}

export interface Ran {
  readonly exitCode: number | null;
  /** Both outputs, as they came. */
  readonly output: string;
}

/** The environment of a newcomer, whatever that of the test run is. */
const bare = {
  DATABASE_URL: undefined,
  REDIS_URL: undefined,
  MILLRACE_API: undefined,
  MILLRACE_QUEUE_BACKEND: undefined,
  LOG_LEVEL: undefined,
};

/** `millrace dev` on a free port, with Postgres and Redis of its own. */
export async function startDev(...args: readonly string[]): Promise<Dev> {
  const dataDir = await mkdtemp(join(tmpdir(), "millrace-e2e-"));
  const process = await startProcess({
    args: [program, "dev", "--port", "0", "--data-dir", dataDir, "--ready-json", ...args],
    env: bare,
    cwd: root,
  });
  const [line] = await process.waitForOutput(/^\{"ready":true.*\}$/m, 60_000);
  const ready = JSON.parse(line) as ReadyLine;
  return {
    process,
    ready,
    dataDir,
    millrace: (...own) => runMillrace([...own, "--api", ready.api]),
  };
}

/** Stops it as Ctrl-C does, and removes its data. */
export async function stopDev(dev: Dev | undefined): Promise<void> {
  if (dev === undefined) return;
  dev.process.signal("SIGTERM");
  await dev.process.exited;
  await rm(dev.dataDir, { recursive: true, force: true });
}

export async function runMillrace(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<Ran> {
  const process = await startMillrace(args, env);
  const { code } = await process.exited;
  return { exitCode: code, output: process.output() };
}

export function startMillrace(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<TestProcess> {
  return startProcess({ args: [program, ...args], env: { ...bare, ...env }, cwd: root });
}
