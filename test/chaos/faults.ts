import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresStopMode, Role, Stack } from "@millrace/devstack";
import { identityOf, isAlive } from "@millrace/devstack";
import { freeze, kill, thaw } from "@millrace/testkit";
import { Redis } from "ioredis";
import type { FaultRecord } from "./record.ts";
import { seeded, type Random } from "./random.ts";

/**
 * The faults of PROMISES.md: what happens when follows from the seed, and which process is hit from
 * the seed and the processes that live then. Each lane is one thing that can be broken, and has one
 * fault at a time; lanes run beside each other.
 */
export type Fault =
  | (At & {
      readonly kind: "postgres stopped";
      readonly mode: PostgresStopMode;
      readonly forMs: number;
    })
  | (At & { readonly kind: "process killed"; readonly role: Role; readonly pick: number })
  | (At & { readonly kind: "worker stopped"; readonly pick: number; readonly forMs: number })
  | (At & { readonly kind: "redis connections cut" })
  | (At & { readonly kind: "redis emptied" })
  | (At & { readonly kind: "redis restarted empty"; readonly forMs: number })
  | (At & { readonly kind: "redis full"; readonly forMs: number })
  | (At & { readonly kind: "redis stopped"; readonly forMs: number });

interface At {
  /** Milliseconds from the begin of the load. */
  readonly atMs: number;
}

export const GROUPS = ["A", "B", "C", "D"] as const;
/** A: Postgres, B: processes, C: Redis, D: all at once. */
export type Group = (typeof GROUPS)[number];

/** All faults of a run, a lane each, in order of time. */
export function planFaults(seed: number, group: Group, durationMs: number): readonly Fault[][] {
  const lanes: Record<Exclude<Group, "D">, readonly Lane[]> = {
    A: [postgresLane],
    B: [killLane, stopLane],
    C: [cutLane, redisLane],
  };
  const chosen = group === "D" ? Object.values(lanes).flat() : lanes[group];
  return chosen.map((lane) =>
    lane(seeded(seed, lane.name), durationMs)
      .filter(({ atMs }) => atMs < durationMs)
      .toSorted((a, b) => a.atMs - b.atMs),
  );
}

type Lane = (random: Random, durationMs: number) => Fault[];

function postgresLane(random: Random, durationMs: number): Fault[] {
  return times(durationMs, () => random.between(5_000, 10_000)).map((atMs) => ({
    kind: "postgres stopped",
    atMs,
    mode: random.pick(["fast", "immediate", "kill"]),
    forMs: random.between(0, 2_000),
  }));
}

function killLane(random: Random, durationMs: number): Fault[] {
  return times(durationMs, () => random.between(2_000, 5_000)).map((atMs) => ({
    kind: "process killed",
    atMs,
    role: random.pick(["api", "worker", "scheduler", "worker"]),
    pick: random.next(),
  }));
}

/** Longer than a job's lock (30 s), so that the queue hands the job to somebody else meanwhile. */
function stopLane(random: Random, durationMs: number): Fault[] {
  return rarely(random, durationMs, 60_000).map((atMs) => ({
    kind: "worker stopped",
    atMs,
    pick: random.next(),
    forMs: random.between(32_000, 36_000),
  }));
}

function cutLane(_random: Random, durationMs: number): Fault[] {
  return times(durationMs, () => 5_000).map((atMs) => ({ kind: "redis connections cut", atMs }));
}

function redisLane(random: Random, durationMs: number): Fault[] {
  const every = (periodMs: number, fault: (atMs: number) => Fault) =>
    rarely(random, durationMs, periodMs).map(fault);
  return [
    ...every(60_000, (atMs) => {
      return { kind: "redis restarted empty", atMs, forMs: random.between(0, 2_000) };
    }),
    ...every(60_000, (atMs) => ({ kind: "redis emptied", atMs })),
    ...every(90_000, (atMs) => ({ kind: "redis full", atMs, forMs: random.between(3_000, 8_000) })),
    ...every(90_000, (atMs) => {
      return { kind: "redis stopped", atMs, forMs: random.between(2_000, 8_000) };
    }),
  ];
}

/** One after another, with such a pause before each. */
function times(durationMs: number, pauseMs: () => number): number[] {
  const found: number[] = [];
  for (let atMs = pauseMs(); atMs < durationMs; atMs += pauseMs()) found.push(atMs);
  return found;
}

/** Once a period, at any moment of its first two thirds; in a short run at least once. */
function rarely(random: Random, durationMs: number, wantedMs: number): number[] {
  const periodMs = Math.min(wantedMs, durationMs);
  const count = Math.floor(durationMs / periodMs);
  return Array.from(
    { length: count },
    (_, index) => periodMs * (index + random.between(0.05, 0.65)),
  );
}

/**
 * Lets the faults happen to this stack, and returns when the last one is over. It touches only what
 * the stack has started. When `signal` is aborted no new fault begins, and what is stopped goes on.
 */
export async function inject(
  lanes: readonly Fault[][],
  stack: Stack,
  record: (fault: FaultRecord) => void,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  const pause = (ms: number) => sleep(Math.max(0, ms), undefined, { signal }).catch(() => {});
  const run = async (faults: readonly Fault[]) => {
    for (const fault of faults) {
      await pause(startedAt + fault.atMs - performance.now());
      if (signal.aborted) return;
      const at = Date.now();
      const done = await act(fault, stack, pause);
      if (done) record({ kind: fault.kind, at, healedAt: Date.now(), ...done });
    }
  };
  await Promise.all(lanes.map(run));
}

type Pause = (ms: number) => Promise<unknown>;

/** What was done; undefined when there was nothing that it could be done to. */
async function act(
  fault: Fault,
  stack: Stack,
  pause: Pause,
): Promise<Pick<FaultRecord, "pid" | "about"> | undefined> {
  switch (fault.kind) {
    case "postgres stopped":
      await stack.postgres?.stop(fault.mode);
      await pause(fault.forMs);
      await stack.postgres?.start();
      return { about: `${fault.mode}, down ${Math.round(fault.forMs)} ms` };
    case "process killed": {
      const pid = pickOf(stack.pids()[fault.role], fault.pick);
      if (pid === undefined) return undefined;
      kill(pid);
      return { pid, about: `${fault.role} ${pid}` };
    }
    case "worker stopped":
      return stopWorker(stack, fault, pause);
    case "redis connections cut":
      return withRedis(stack, "connections of all clients", async (redis) => {
        await redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
        await redis.call("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes");
      });
    case "redis emptied":
      return withRedis(stack, "FLUSHALL", (redis) => redis.flushall());
    case "redis restarted empty":
      await stack.redis?.stop("kill");
      await pause(fault.forMs);
      await stack.redis?.start();
      return { about: `down ${Math.round(fault.forMs)} ms` };
    case "redis full":
      return fillRedis(stack, fault.forMs, pause);
    case "redis stopped": {
      const pid = stack.redis?.pid;
      if (pid === undefined) return undefined;
      await standStill(pid, fault.forMs, pause);
      return { about: `SIGSTOP for ${Math.round(fault.forMs)} ms` };
    }
  }
}

function pickOf(pids: readonly number[], pick: number): number | undefined {
  return pids[Math.floor(pick * pids.length)];
}

async function stopWorker(
  stack: Stack,
  { pick, forMs }: { readonly pick: number; readonly forMs: number },
  pause: Pause,
): Promise<Pick<FaultRecord, "pid" | "about"> | undefined> {
  const pid = pickOf(stack.pids().worker, pick);
  if (pid === undefined) return undefined;
  const outcome = await standStill(pid, forMs, pause);
  return { pid, about: `worker ${pid}, SIGSTOP for ${Math.round(forMs)} ms, then ${outcome}` };
}

/** It may be killed while it stands, and its number be somebody else's by then. */
async function standStill(pid: number, forMs: number, pause: Pause): Promise<string> {
  const identity = identityOf(pid);
  freeze(pid);
  await pause(forMs);
  if (identity === undefined || !isAlive(identity)) return "it had been killed";
  thaw(pid);
  return "it went on";
}

async function fillRedis(
  stack: Stack,
  forMs: number,
  pause: Pause,
): Promise<Pick<FaultRecord, "about"> | undefined> {
  const filled = await withRedis(stack, `maxmemory for ${Math.round(forMs)} ms`, async (redis) => {
    const used = /^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1] ?? "1";
    await redis.config("SET", "maxmemory", used);
  });
  await pause(forMs);
  await withRedis(stack, "", (redis) => redis.config("SET", "maxmemory", "0"));
  return filled;
}

/** On a connection of its own. Undefined when Redis does not answer: then it is broken already. */
async function withRedis(
  { redisUrl = "" }: Stack,
  about: string,
  use: (redis: Redis) => Promise<unknown>,
): Promise<Pick<FaultRecord, "about"> | undefined> {
  const redis = new Redis(redisUrl, {
    maxRetriesPerRequest: 0,
    retryStrategy: null,
    commandTimeout: 5_000,
  });
  redis.on("error", () => {});
  try {
    await use(redis);
    return { about };
  } catch {
    return undefined;
  } finally {
    redis.disconnect();
  }
}
