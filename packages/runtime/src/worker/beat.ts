import { Worker } from "node:worker_threads";
import type { Services } from "../services.ts";

export interface Beat {
  stop(): Promise<void>;
}

interface BeatOptions {
  readonly workerId: string;
  /** The beat was silent for too long: the worker gives up what it holds and answers its new id. */
  readonly onStale: () => Promise<string>;
}

/**
 * Starts the thread that beats, and returns once it does: a worker that takes steps before would count
 * as gone while its thread is still starting. Run from the sources, it uses the built file beside them.
 */
export async function startBeat(
  { database, log }: Services,
  { workerId, onStale }: BeatOptions,
): Promise<Beat> {
  const here = import.meta.url;
  const file = here.endsWith(".ts") ? "../../dist/worker/beat-thread.js" : "./beat-thread.js";
  const thread = new Worker(new URL(file, here), {
    workerData: { databaseUrl: database.url, workerId },
    // Not this process's conditions: in tests they resolve packages to sources, which Node cannot run.
    execArgv: [],
  });
  let stopping = false;

  let sayBeating: () => void = () => {};
  const beating = new Promise<void>((resolve) => {
    sayBeating = resolve;
  });
  thread.on("message", ({ kind }: { readonly kind: "beating" | "stale" }) => {
    if (kind === "beating") return sayBeating();
    log.warn("the beat was silent for too long; taking a new id");
    onStale().then(
      (id) => thread.postMessage({ kind: "id", id }),
      (error: unknown) => log.error({ err: error }, "no new id"),
    );
  });
  thread.on("error", (error) => log.error({ err: error }, "the beat thread failed"));
  thread.on("exit", () => {
    // Without a beat others take the steps over, so this process must not go on as if it held them.
    if (!stopping) throw new Error("the beat thread ended");
  });

  await beating;
  return {
    async stop() {
      stopping = true;
      thread.postMessage({ kind: "stop" });
      await thread.terminate();
    },
  };
}
