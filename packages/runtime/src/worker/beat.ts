import { Worker } from "node:worker_threads";
import { beatThread } from "@millrace/store";
import type { BeatThreadData } from "@millrace/store";
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
  stop(): Promise<void>;
}

/** Opens the thread that beats: early, since it has to load and to connect before the worker is ready. */
export function openBeatThread(
  { database, log }: Services,
  { orphanMs }: { readonly orphanMs?: number } = {},
): Beat {
  const thread = new Worker(beatThread, {
    workerData: {
      databaseUrl: database.url,
      ...(orphanMs !== undefined && { orphanMs }),
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
    async stop() {
      stopping = true;
      thread.postMessage({ kind: "stop" });
      await thread.terminate();
    },
  };
}
