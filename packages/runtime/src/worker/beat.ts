import { Worker } from "node:worker_threads";
import { beatThread, signOf } from "@millrace/store";
import type { BeatThreadData, StepRun } from "@millrace/store";

export interface Beat {
  /**
   * Beats for the worker of this id, and returns once it does: a worker that takes steps before would
   * count as gone. Its row must be there.
   *
   * @param onStale The beat was silent for too long: the worker gives up what it holds and answers its
   *   new id. Where it fails, nobody catches it: the process ends.
   */
  start(workerId: string, onStale: () => Promise<string>): Promise<void>;
  /** A handler begins; what is answered is called when it has ended. */
  shows(run: StepRun): () => void;
  stop(): Promise<void>;
}

/** Handlers that the thread sees; one that begins beside so many is not looked at. */
const most = 2_048;
const turnMs = 500;

export interface BeatSettings {
  /** As in `BeatThreadData`. */
  readonly orphanMs?: number;
  /** Whether the thread kills the process when its event loop is kept by a step that has ended. */
  readonly isKilled: boolean;
}

/** A cell whose worker has died ends itself; only one whose step blocks it does not, and is killed. */
export function orphanMsOf(graceMs: number): number {
  return graceMs + orphanMarginMs;
}

const orphanMarginMs = 6_000;

/**
 * Opens the thread that beats: before all else, since it has to load and to connect before the worker is
 * ready, beside what the worker loads and connects to itself.
 */
export function openBeatThread(databaseUrl: string, { orphanMs, isKilled }: BeatSettings): Beat {
  const turns = new Int32Array(new SharedArrayBuffer(4));
  const handlers = new Int32Array(new SharedArrayBuffer(4 * most));
  const free = Array.from(handlers.keys());
  const turning = setInterval(() => Atomics.add(turns, 0, 1), turnMs).unref();
  const thread = new Worker(beatThread, {
    workerData: {
      databaseUrl,
      ...(orphanMs !== undefined && { orphanMs }),
      ...(isKilled && { signs: { turns, handlers } }),
    } satisfies BeatThreadData,
    // Not this process's conditions: in tests they resolve packages to sources, which Node cannot run.
    execArgv: [],
  });
  let stopping = false;
  // Without a beat others take the steps over, so this process must not go on as if it held them.
  const endWithoutBeat = (why: string, cause?: unknown) => {
    if (stopping) return;
    // Not as a promise's failure, which a worker takes for one of its tasks' and only logs.
    queueMicrotask(() => {
      throw new Error(`${why}, so it ends: others take its steps over`, { cause });
    });
  };
  thread.on("error", (error) => endWithoutBeat("the beat of this worker failed", error));
  thread.on("exit", () => endWithoutBeat("the beat of this worker ended"));

  return {
    start(workerId, onStale) {
      const beating = new Promise<void>((resolve) => {
        thread.on("message", ({ kind }: { readonly kind: "beating" | "stale" }) => {
          if (kind === "beating") return resolve();
          onStale().then(
            (id) => thread.postMessage({ kind: "id", id }),
            (error: unknown) =>
              endWithoutBeat("a worker that had fallen silent could not go on", error),
          );
        });
      });
      thread.postMessage({ kind: "id", id: workerId });
      return beating;
    },
    shows(run) {
      const place = free.pop();
      if (place === undefined) return () => {};
      Atomics.store(handlers, place, signOf(run));
      return () => {
        Atomics.store(handlers, place, 0);
        free.push(place);
      };
    },
    async stop() {
      stopping = true;
      clearInterval(turning);
      thread.postMessage({ kind: "stop" });
      await thread.terminate();
    },
  };
}
