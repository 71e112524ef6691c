import { parentPort, workerData } from "node:worker_threads";
import { openBeat } from "./beat.ts";
import type { BeatThreadData } from "./beat.ts";

/**
 * The pulse of a worker process, on a thread and a connection of its own: a task that blocks the event
 * loop stays alive, while kill -9 and SIGSTOP stop the beat with everything else.
 */

const beatMs = 1_000;

const { databaseUrl, orphanMs } = workerData as BeatThreadData;
const parent = process.ppid;
let isOrphan = false;
const beat = openBeat(databaseUrl);
/** None yet, or the last one is no longer good. */
let id: string | undefined;
let stopped = false;
let wake = () => {};

parentPort?.on(
  "message",
  (message: { readonly kind: "stop" } | { readonly kind: "id"; readonly id: string }) => {
    if (message.kind === "stop") stopped = true;
    else id = message.id;
    wake();
  },
);

await beat.connect().catch(() => {});
while (!stopped) {
  try {
    if (id !== undefined) {
      const isAlive = await beat.pulse(id, process.memoryUsage.rss());
      if (!isAlive) id = undefined;
      parentPort?.postMessage({ kind: isAlive ? "beating" : "stale" });
    }
  } catch {
    // The database is away; the next beat finds out whether that lasted too long.
  }
  if (orphanMs !== undefined && process.ppid !== parent && !isOrphan) {
    isOrphan = true;
    setTimeout(() => process.kill(process.pid, "SIGKILL"), orphanMs).unref();
  }
  await new Promise<void>((resolve) => {
    wake = resolve;
    setTimeout(resolve, beatMs);
  });
}
await beat.close();
parentPort?.close();
