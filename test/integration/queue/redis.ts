import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { howToGetRedis, openRedis, type Redis as Server } from "@millrace/devstack";
import { openQueue, type Queue, type QueueLog, type StepToAdd } from "@millrace/queue";
import { eventually } from "@millrace/testkit";
import { afterAll, afterEach, beforeAll } from "vitest";
import { idsOf, steps } from "./jobs.ts";

let folder: string;
export let server: Server;
const opened: Queue[] = [];
export let lines: { fields: object; message: string }[] = [];

/** A server of its own for a file: its tests kill it, stop it and empty it. */
export function useOwnRedis(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-queue-"));
    const started = await openRedis({ dataDir: folder });
    if (!started) throw new Error(`the tests need a real Redis: ${howToGetRedis}`);
    server = started;
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((queue) => queue.close()));
    lines = [];
  });

  afterAll(async () => {
    await server.stop("kill");
    await rm(folder, { recursive: true, force: true });
  });
}

/** Keeps one handler busy until it is released. */
export async function occupied(queue: Queue) {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const consumer = queue.consumeSteps("default", { concurrency: 2 }, () => held);
  const jobs = steps(1);
  await queue.addSteps(jobs);
  await eventually("the handler", () => consumer.active === 1);
  return { jobs, release: () => release(), consumer };
}

export async function open(
  settings: Partial<Parameters<typeof openQueue>[0]> = {},
): Promise<Queue> {
  const queue = await openQueue({ redisUrl: server.url, prefix: newPrefix(), log, ...settings });
  opened.push(queue);
  return queue;
}

const write = (fields: object, message: string) => void lines.push({ fields, message });
const log: QueueLog = { debug() {}, info: write, warn: write, error: write };

export function messages(): string[] {
  return lines.map(({ message }) => message);
}

export function newPrefix(): string {
  return `test-${randomBytes(6).toString("hex")}`;
}

export function known(queue: Queue, jobs: readonly StepToAdd[]): Promise<ReadonlySet<string>> {
  return queue.known("default", idsOf(jobs));
}

export async function depth(queue: Queue) {
  const [found] = await queue.depths(["default"]);
  return found;
}

export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  await work;
  return true;
}

export function serverPid(): number {
  if (server.pid === undefined) throw new Error("Redis is not running");
  return server.pid;
}
