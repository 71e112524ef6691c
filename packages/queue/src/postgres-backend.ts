import {
  createPostgresBackend,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  Queue as BullQueue,
} from "bullmq";
import type { Backend, Publisher } from "./backend.ts";
import { redactUrl } from "./connection.ts";
import { describe, QueueUnavailableError } from "./errors.ts";
import type { QueueLog } from "./log.ts";
import { Listeners, parseWake, type Wake } from "./wake.ts";
import { PacedWorker } from "./worker.ts";

type PostgresQueue = BullQueue<
  unknown,
  void,
  string,
  unknown,
  void,
  string,
  PostgresQueueBackend,
  PostgresConnectionOptions
>;

const wakeChannel = "millrace_wake";
/** NOTIFY takes less than 8,000 bytes. A longer message only says "look at everything". */
const longestWake = 7_000;

/**
 * BullMQ on Postgres, for trying out where there is no Redis: it drains about six times slower.
 * It lives in the schema `bullmq`, which it creates and migrates by itself.
 *
 * @throws QueueUnavailableError When Postgres cannot be reached.
 */
export async function openPostgresBackend(settings: {
  readonly url: string;
  readonly prefix: string;
  readonly log: QueueLog;
}): Promise<Backend> {
  const { url, prefix, log } = settings;
  const connection = new PostgresConnection({ connectionString: url, max: 5, migrate: true });
  connection.on("error", () => {});
  try {
    await connection.waitUntilReady();
  } catch (error) {
    await connection.close().catch(() => {});
    throw new QueueUnavailableError(
      `BullMQ's tables in ${redactUrl(url)} are not usable: ${describe(error)}`,
      { cause: error },
    );
  }
  log.info({ postgres: redactUrl(url) }, "jobs travel through Postgres");

  const queues = new Map<string, PostgresQueue>();
  // The schema is shared by all; the prefix in the name keeps two installations apart.
  const queueOf = (name: string) => {
    const known = queues.get(name);
    if (known) return known;
    const queue: PostgresQueue = new BullQueue(
      `${prefix}.${name}`,
      { connection: url },
      (full, options) => new PostgresQueueBackend(connection, full, options, false),
    );
    queue.on("error", () => {});
    queues.set(name, queue);
    return queue;
  };
  const meta = queueOf("meta").getBackend();

  return {
    kind: "postgres",
    reachable: true,
    regained: () => Promise.resolve(true),
    publisher: (name): Publisher => queueOf(name),
    worker(name, process, concurrency, onFetched) {
      const options = {
        connection: { connectionString: url, max: 4 },
        prefix,
        concurrency,
        onFetched,
        // An interrupted wait ends like one that found something, so a fetch would follow.
        fetchesWhenPaused: false,
      };
      return new PacedWorker(`${prefix}.${name}`, process, options, createPostgresBackend);
    },
    async known(name, jobIds) {
      const backend = queueOf(name).getBackend();
      const found = new Set<string>();
      await Promise.all(
        jobIds.map(async (id) => {
          if (await backend.getJobData(id)) found.add(id);
        }),
      );
      return found;
    },
    async someQueues() {
      const { rows } = await connection.pool.query<{ queue: string }>(
        "select distinct queue from bullmq.job where starts_with(queue, $1)",
        [`${prefix}.`],
      );
      return rows.map(({ queue }) => queue.slice(prefix.length + 1));
    },
    async readEpoch() {
      return (await meta.getQueueMetaField("epoch")) ?? undefined;
    },
    async writeEpoch(value) {
      await meta.setQueueMeta({ epoch: value });
    },
    async tryWrite() {
      await connection.pool.query("select 1");
    },
    wake: openPostgresWake(connection, prefix, log),
    async close() {
      for (const queue of queues.values()) await queue.close().catch(() => {});
      await connection.close();
    },
  };
}

/** Wakes through NOTIFY: one channel for all, so that there is one LISTEN to renew. */
function openPostgresWake(connection: PostgresConnection, prefix: string, log: QueueLog): Wake {
  const listeners = new Listeners(log);
  let state: "off" | "starting" | "on" = "off";

  async function listen(): Promise<void> {
    if (state !== "off" || connection.isClosing) return;
    state = "starting";
    try {
      const client = await connection.getListenClient();
      client.on("notification", ({ channel, payload }) => {
        if (channel !== wakeChannel || payload === undefined) return;
        const { prefix: origin, channel: name, message } = parseWake(payload);
        if (origin !== prefix || typeof name !== "string") return;
        listeners.call(name, typeof message === "object" && message !== null ? { ...message } : {});
      });
      await client.query(`listen ${wakeChannel}`);
      state = "on";
      listeners.callAll();
    } catch {
      listenLater();
    }
  }
  function listenLater(): void {
    state = "off";
    setTimeout(() => void listen(), 1_000).unref();
  }
  connection.on("listenerinvalidated", listenLater);

  return {
    publish(channel, message) {
      const text = JSON.stringify({ prefix, channel, message });
      const payload =
        Buffer.byteLength(text) > longestWake
          ? JSON.stringify({ prefix, channel, message: {} })
          : text;
      connection.pool.query("select pg_notify($1, $2)", [wakeChannel, payload]).catch(() => {});
    },
    subscribe(channel, listener) {
      const own = (message: Parameters<typeof listener>[0]) => listener(message);
      listeners.add(channel, own);
      void listen();
      return () => {
        listeners.remove(channel, own);
      };
    },
    isHeard: () => Promise.resolve(true),
  };
}
