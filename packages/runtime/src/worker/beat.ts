import { Worker } from "node:worker_threads";
import { beatThread, signOf } from "@millrace/store";
import type { BeatThreadData, StepRun } from "@millrace/store";
import type { Services } from "../services.ts";

export interface Beat {
  /**
   * Beats for the worker of this id, and returns once it does: a worker that takes steps before would
   * count as gone. Its row must be there.
   *
   * @param onStale The beat was silent for too long: the worker gives up what it holds and answers its
   *   new id.
   */
  start(workerId: string, onStale: () => Promise<string>): Promise<void>;
  /** A handler begins; what is answered is called when it has ended. */
  shows(run: StepRun): () => void;
  stop(): Promise<void>;
}

/** Handlers that the thread sees; one that begins beside so many is not looked at. */
const most = 2_048;
const turnMs = 500;

/**
 * Opens the thread that beats: early, since it has to load and to connect before the worker is ready.
 *
 * @param orphanMs As in `BeatThreadData`.
 * @param isKilled Whether the thread kills the process when its event loop is kept by a step that has ended.
 */
export function openBeatThread(
  { database, log }: Services,
  { orphanMs, isKilled }: { readonly orphanMs?: number | undefined; readonly isKilled: boolean },
): Beat {
  const turns = new Int32Array(new SharedArrayBuffer(4));
  const handlers = new Int32Array(new SharedArrayBuffer(4 * most));
  const free = Array.from(handlers.keys());
  const turning = setInterval(() => Atomics.add(turns, 0, 1), turnMs).unref();
  const thread = new Worker(beatThread, {
    workerData: {
      databaseUrl: database.url,
      ...(orphanMs !== undefined && { orphanMs }),
      ...(isKilled && { signs: { turns, handlers } }),
    } satisfies BeatThreadData,
    // Not this process's conditions: in tests they resolve packages to sources, which Node cannot run.
    execArgv: [],
  });
  let stopping = false;
  thread.on("error", (error) => log.error({ err: error }, "the beat thread failed"));
  thread.on("exit", () => {
    // Without a beat others take the steps over, so this process must not go on as if it held them.
    if (!stopping) throw new Error("the beat thread ended");
  });

  return {
    start(workerId, onStale) {
      const beating = new Promise<void>((resolve) => {
        thread.on("message", ({ kind }: { readonly kind: "beating" | "stale" }) => {
          if (kind === "beating") return resolve();
          log.warn("the beat was silent for too long; taking a new id");
          onStale().then(
            (id) => thread.postMessage({ kind: "id", id }),
            (error: unknown) => log.error({ err: error }, "no new id"),
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
