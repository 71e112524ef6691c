import { setTimeout as sleep } from "node:timers/promises";
import type { LoggingClient } from "./client.ts";

/** Looks at what has changed last, again and again: what it sees must never be taken back. */
export async function watch(client: LoggingClient, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await client.once({
      operation: "watch",
      method: "GET",
      path: "/v1/instances?order=-updatedAt&limit=100",
      subject: "latest",
    });
    await sleep(1_000, undefined, { signal }).catch(() => {});
  }
}
