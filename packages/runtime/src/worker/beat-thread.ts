import { parentPort, workerData } from "node:worker_threads";
import { openBeat } from "@millrace/store";

/**
 * The pulse of a worker process, on a thread and a connection of its own: a task that blocks the event
 * loop stays alive, while kill -9 and SIGSTOP stop the beat with everything else.
 */

const beatMs = 1_000;

interface Start {
  readonly databaseUrl: string;
  readonly workerId: string;
}

const { databaseUrl, workerId } = workerData as Start;
const beat = openBeat(databaseUrl);
let id = workerId;
let stopped = false;
let stale = false;

parentPort?.on(
  "message",
  (message: { readonly kind: "stop" } | { readonly kind: "id"; readonly id: string }) => {
    if (message.kind === "stop") stopped = true;
    else {
      id = message.id;
      stale = false;
    }
  },
);

while (!stopped) {
  try {
    if (!stale) {
      const isAlive = await beat.pulse(id);
      stale = !isAlive;
      parentPort?.postMessage({ kind: isAlive ? "beating" : "stale" });
    }
  } catch {
    // The database is away; the next beat finds out whether that lasted too long.
  }
  await new Promise((resolve) => setTimeout(resolve, beatMs));
}
await beat.close();
parentPort?.close();
