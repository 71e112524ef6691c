import { findRedis, howToGetRedis, type QueueBackend, type Stack } from "@millrace/devstack";
import type { Settings } from "./config.ts";
import { withoutPassword } from "./secrets.ts";

/** Which backend the queue gets, and why. */
export interface QueueChoice {
  readonly backend: QueueBackend;
  /** A server to use; a private one is started when absent and the backend is Redis. */
  readonly redisUrl: string | undefined;
  readonly reason: string;
}

export function queueChoice({
  queueBackend,
  redisUrl,
}: Pick<Settings, "queueBackend" | "redisUrl">): QueueChoice {
  if (queueBackend === "postgres") {
    return { backend: "postgres", redisUrl: undefined, reason: "asked for" };
  }
  if (redisUrl !== undefined) return { backend: "redis", redisUrl, reason: "REDIS_URL" };
  const program = findRedis();
  if (program !== undefined) {
    return { backend: "redis", redisUrl: undefined, reason: `a private ${program}` };
  }
  const reason = `no redis-server or valkey-server of version 6.2 or later on the PATH; ${howToGetRedis}`;
  return { backend: "postgres", redisUrl: undefined, reason };
}

export function queueText(
  { queueBackend, redisUrl }: Pick<Stack, "queueBackend" | "redisUrl">,
  reason: string,
): string {
  if (queueBackend === "postgres") return `BullMQ's Postgres backend (${reason})`;
  return `Redis, ${withoutPassword(redisUrl ?? "")} (${reason})`;
}
