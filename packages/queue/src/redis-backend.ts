import { createRedisBackend, Queue as BullQueue } from "bullmq";
import type { Redis } from "ioredis";
import type { Backend, Publisher } from "./backend.ts";
import { logStateChanges, openClient, redactUrl, type Role } from "./connection.ts";
import type { QueueLog } from "./log.ts";
import { openRedisWake } from "./wake.ts";
import { PacedWorker } from "./worker.ts";

/** How long after a drop a publisher still waits for the reconnect. Most take 20–60 ms. */
const graceMs = 500;
/** Keys that one look for queues takes in: Redis is held for a fraction of a millisecond. */
const scanned = 1_000;
/** Nobody reads BullMQ's event streams here; this keeps them to a page. */
const keptEvents = 100;

/** Opens the connections; waits for Redis at most `patienceMs` and not at all once it refuses. */
export async function openRedisBackend(settings: {
  readonly url: string;
  readonly prefix: string;
  readonly patienceMs: number;
  readonly log: QueueLog;
}): Promise<Backend> {
  const { url, prefix, log } = settings;
  const closers: (() => void)[] = [];

  function open(role: Role): Redis {
    const client = openClient(url, role);
    const stopLog = logStateChanges(client, { role, redis: redactUrl(url) }, log);
    closers.push(() => {
      stopLog();
      client.disconnect();
    });
    return client;
  }

  const client = open("publish");
  let consuming: Redis | undefined;
  let reconnect: Promise<void> | undefined;
  let wasReady = false;
  let lostAt = Number.NEGATIVE_INFINITY;
  client.on("close", () => {
    if (wasReady) lostAt = performance.now();
    wasReady = false;
  });
  let policy: string | undefined;
  const queues = new Map<string, BullQueue<unknown, void>>();
  client.on("ready", () => {
    wasReady = true;
    // Redis may have come back empty: what a queue keeps of itself is written again.
    for (const queue of queues.values()) limitEvents(queue);
    void checkPolicy();
  });
  async function checkPolicy(): Promise<void> {
    const found = await evictionPolicy(client);
    if (found !== undefined && found !== "noeviction" && found !== policy) {
      log.warn({ policy: found }, "Redis may evict jobs: set maxmemory-policy to noeviction");
    }
    policy = found ?? policy;
  }
  await nextOf(client, ["ready", "error"], settings.patienceMs);

  /** Where the next look at the keys goes on. */
  let cursor = "0";
  const epochKey = `${prefix}:epoch`;
  const queueOf = (name: string) => {
    const known = queues.get(name);
    if (known) return known;
    const queue = new BullQueue<unknown, void>(name, {
      connection: client,
      prefix,
      // Without these two a queue made while Redis is away stays unusable until it is back.
      skipVersionCheck: true,
      skipWaitingForReady: true,
      skipMetasUpdate: true,
    });
    // The connection's own log tells the story; without a listener an error would be thrown.
    queue.on("error", () => {});
    queues.set(name, queue);
    limitEvents(queue);
    return queue;
  };

  return {
    kind: "redis",
    get reachable() {
      return isUsable(client);
    },
    async regained() {
      if (isUsable(client)) return true;
      const left = (wasReady ? performance.now() : lostAt) + graceMs - performance.now();
      if (left <= 0) return false;
      // All who wait share one listener.
      reconnect ??= nextOf(client, ["ready"], left).finally(() => {
        reconnect = undefined;
      });
      await reconnect;
      return isUsable(client);
    },
    publisher: (name): Publisher => queueOf(name),
    worker(name, process, concurrency, onFetched) {
      consuming ??= open("consume");
      const options = {
        connection: consuming,
        prefix,
        concurrency,
        onFetched,
        // Who has taken BullMQ's marker owes the fetch: the other workers sleep until the next one.
        fetchesWhenPaused: true,
      };
      return new PacedWorker(name, process, options, createRedisBackend);
    },
    async known(name, jobIds) {
      const queue = queueOf(name);
      const pipeline = client.pipeline();
      for (const id of jobIds) pipeline.exists(queue.toKey(id));
      const found = new Set<string>();
      for (const [index, [error, exists]] of ((await pipeline.exec()) ?? []).entries()) {
        if (error) throw error;
        const id = jobIds[index];
        if (exists === 1 && id !== undefined) found.add(id);
      }
      return found;
    },
    async someQueues() {
      const [next, keys] = await client.scan(
        cursor,
        "MATCH",
        `${asGlob(prefix)}:*:meta`,
        "COUNT",
        scanned,
      );
      cursor = next;
      return keys.map((key) => key.slice(prefix.length + 1, -":meta".length));
    },
    async readEpoch() {
      return (await client.get(epochKey)) ?? undefined;
    },
    async writeEpoch(value) {
      await client.set(epochKey, value);
    },
    async tryWrite() {
      await client.set(`${prefix}:probe`, "", "PX", 1);
    },
    wake: openRedisWake(client, () => open("wake"), prefix, log),
    async close() {
      for (const queue of queues.values()) await queue.close().catch(() => {});
      for (const close of closers) close();
    },
  };

  function limitEvents(queue: BullQueue<unknown, void>): void {
    if (client.status !== "ready") return;
    const meta = { "opts.maxLenEvents": keptEvents };
    queue
      .getBackend()
      .setQueueMeta(meta)
      .catch(() => {});
  }
}

/** A pattern that matches this text alone. */
function asGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, String.raw`\$&`);
}

/** A dropped socket shows before ioredis has changed its status. */
function isUsable(client: Redis): boolean {
  return client.status === "ready" && client.stream.writable;
}

/** Settles at the next of these events, and after `ms` at the latest. */
function nextOf(client: Redis, events: readonly ("ready" | "error")[], ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const event of events) client.off(event, done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const event of events) client.on(event, done);
  });
}

async function evictionPolicy(client: Redis): Promise<string | undefined> {
  try {
    return /^maxmemory_policy:(.*?)\r?$/m.exec(await client.info("memory"))?.[1];
  } catch {
    return undefined;
  }
}
