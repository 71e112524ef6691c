import { hostname } from "node:os";
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { openBeat, staleBeatMs } from "./beat.ts";
import type { BeatThreadData, Signs } from "./beat.ts";
import { StoreError } from "./errors.ts";

/**
 * The pulse of a worker process, on a thread and a connection of its own: a task that blocks the event
 * loop stays alive, while kill -9 and SIGSTOP stop the beat with everything else.
 */

const beatMs = 1_000;

/**
 * A process whose event loop has stood still for so many beats, and that runs what is not its own any more, is killed: its
 * step has run out of its time or was cancelled, and what keeps the loop hears of neither. Beats and not
 * seconds, since a process that was stopped or a machine that slept has not kept it.
 */
const stuckBeats = 30;

const { databaseUrl, orphanMs, signs } = workerData as BeatThreadData;
const parent = process.ppid;
let isOrphan = false;
const beat = openBeat(databaseUrl);
/** None yet, or the last one is no longer good. */
let id: string | undefined;
let stopped = false;
let wake = () => {};
let lastTurn = 0;
let beatsWithoutTurn = 0;
/** In a row, by a database that answers. */
let refusedBeats = 0;

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
    if (signs && isStuck(signs) && (await hasLost(signs, id))) killStuck();
    refusedBeats = 0;
  } catch (error) {
    // Where the database is away, the next beat finds out whether that lasted too long. Where it has refused for
    // so long that others take the steps over, it would not come to that: steps are still claimed.
    refusedBeats = isRefusal(error) ? refusedBeats + 1 : 0;
    if (refusedBeats * beatMs >= staleBeatMs) throw error;
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

function isRefusal(error: unknown): boolean {
  return error instanceof StoreError && !error.retryable;
}

function isStuck({ turns }: Signs): boolean {
  const turn = Atomics.load(turns, 0);
  beatsWithoutTurn = turn === lastTurn ? beatsWithoutTurn + 1 : 0;
  lastTurn = turn;
  return beatsWithoutTurn >= stuckBeats;
}

/** Whether a handler is at work for a step that the rows do not give to this worker any more. */
async function hasLost({ handlers }: Signs, workerId: string | undefined): Promise<boolean> {
  const held = workerId === undefined ? new Set<number>() : await beat.held(workerId);
  return handlers.some((sign) => sign !== 0 && !held.has(sign));
}

/** The logger is the event loop's, which stands still. */
function killStuck(): void {
  const entry = {
    level: "fatal",
    time: new Date().toISOString(),
    pid: process.pid,
    hostname: hostname(),
    name: "worker",
    msg: `a task has kept the event loop for ${stuckBeats} s, and a step that runs here has ended by its timeout or a cancel meanwhile; killing this process, so that others take over what it holds`,
  };
  writeSync(1, `${JSON.stringify(entry)}\n`);
  process.kill(process.pid, "SIGKILL");
}
