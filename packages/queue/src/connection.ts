import { Redis, type RedisOptions } from "ioredis";
import { describe } from "./errors.ts";
import type { QueueLog } from "./log.ts";

const firstRetryMs = 25;
const longestRetryMs = 2_000;

/**
 * What a connection is for decides how it meets an outage.
 *
 * - `publish`: nothing waits for a Redis that is away. No offline queue, nothing is sent again, and a
 *   socket that answers nothing for 5 s is given up.
 * - `consume`: BullMQ's loops expect their commands to wait until Redis is back. With a command that
 *   fails at once the loop would spin.
 * - `wake`: subscriptions are renewed by ioredis after a reconnect.
 */
export type Role = "publish" | "consume" | "wake";

const optionsOf = {
  publish: {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: 5_000,
  },
  // Longer than the longest blocking command (10 s). The blocking copies inherit it.
  consume: { maxRetriesPerRequest: null, socketTimeout: 15_000 },
  wake: { maxRetriesPerRequest: null },
} satisfies Record<Role, RedisOptions>;

/** Opens a connection that reconnects for ever, with bounded and jittered pauses. */
export function openClient(url: string, role: Role): Redis {
  const options = {
    connectTimeout: 5_000,
    keepAlive: 10_000,
    connectionName: `millrace:${role}`,
    retryStrategy: reconnectDelayMs,
    ...optionsOf[role],
  };
  return new Redis(url, options);
}

/** Logs each change between reachable and not, once, until the returned function is called. */
export function logStateChanges(
  client: Redis,
  fields: { readonly role: Role; readonly redis: string },
  log: QueueLog,
): () => void {
  let state: "unknown" | "up" | "down" = "unknown";
  const down = (reason: string) => {
    if (state === "down") return;
    log.warn({ ...fields, reason }, state === "up" ? "lost Redis" : "cannot reach Redis");
    state = "down";
  };
  const onReady = () => {
    log.info(fields, state === "down" ? "reached Redis again" : "connected to Redis");
    state = "up";
  };
  const onError = (error: unknown) => down(describe(error));
  const onClose = () => down("connection closed");
  client.on("ready", onReady).on("error", onError).on("close", onClose);
  return () => {
    client.off("ready", onReady).off("close", onClose);
    // The error listener stays: ioredis prints to the console where there is none.
    state = "down";
  };
}

const unreadable = "(not a URL)";

/** A Redis or Postgres URL with its password hidden, or a mark where it cannot be told apart. */
export function redactUrl(url: string): string {
  try {
    const parsed = new URL(url);
    if (!parsed.host) return unreadable;
    if (parsed.password) parsed.password = "***";
    for (const name of parsed.searchParams.keys()) {
      if (/pass|secret|token|key/i.test(name)) parsed.searchParams.set(name, "***");
    }
    return parsed.href;
  } catch {
    return unreadable;
  }
}

/** Half to all of a pause that doubles from 25 ms up to 2 s: a fleet does not come back in step. */
function reconnectDelayMs(attempt: number): number {
  const ceiling = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(attempt - 1, 10));
  return Math.ceil(ceiling * (0.5 + Math.random() / 2));
}
