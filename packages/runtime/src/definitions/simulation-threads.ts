import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Calendar, simulate, SimulationResult } from "@millrace/engine";
import type { DefinitionDocument } from "@millrace/store";
import { SimulationNotBegunError } from "../errors.ts";

/** Threads that simulate, so that no simulation holds anything else of the process up. */
export interface SimulationThreads {
  /**
   * @returns Undefined where it takes more than a simulation may.
   * @throws SimulationNotBegunError
   */
  run(plan: SimulationPlan): Promise<SimulationResult | undefined>;
  close(): Promise<void>;
}

/** What a thread is given. Calendars are compiled there, since functions cannot be handed over. */
export interface SimulationPlan {
  readonly document: DefinitionDocument;
  readonly version: number;
  readonly scenario: Parameters<typeof simulate>[1];
  readonly calendars: readonly Calendar["source"][];
}

/** What a thread is started with. */
export interface SimulationThreadData {
  /** In a result. */
  readonly mostCharacters: number;
}

/** What one simulation may take, and its result: its thread ends beyond. */
export const simulationBounds = { ms: 5_000, mb: 256, resultMb: 16 };

/** What a thread may take to load, which is no part of a simulation: half a second, more where the machine is busy. */
const loadMs = 30_000;

/** How long a thread waits for the next one: it takes longer to begin than most simulations do. */
const idleMs = 10_000;

/** The program of a thread. From the sources, the built file. */
const program = new URL(
  import.meta.url.endsWith(".ts")
    ? "../../dist/definitions/simulation-thread.js"
    : "./simulation-thread.js",
  import.meta.url,
);

/** @param options Another program, or less time for it to load. */
export function openSimulationThreads(
  options: { readonly program?: URL; readonly loadMs?: number } = {},
): SimulationThreads {
  const all = new Set<Worker>();
  const idle = new Map<Worker, NodeJS.Timeout>();

  async function open(): Promise<Worker> {
    const workerData: SimulationThreadData = { mostCharacters: simulationBounds.resultMb * 1e6 };
    const thread = new Worker(options.program ?? program, {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: simulationBounds.mb },
      // Not this process's conditions: in tests they resolve packages to sources, which Node cannot run.
      execArgv: [],
    });
    all.add(thread);
    thread.on("exit", () => {
      all.delete(thread);
      idle.delete(thread);
    });
    const late = setTimeout(() => void thread.terminate(), options.loadMs ?? loadMs);
    const [loaded] = await Promise.race([once(thread, "message"), once(thread, "exit")]).finally(
      () => clearTimeout(late),
    );
    if (loaded !== "loaded") throw new SimulationNotBegunError();
    return thread;
  }

  async function take(): Promise<Worker> {
    const [resting] = idle.keys();
    if (resting === undefined) return open();
    clearTimeout(idle.get(resting));
    idle.delete(resting);
    return resting;
  }

  function rest(thread: Worker): void {
    const end = () => {
      idle.delete(thread);
      void thread.terminate();
    };
    idle.set(thread, setTimeout(end, idleMs).unref());
  }

  return {
    async run(plan) {
      const thread = await take();
      const timer = setTimeout(() => void thread.terminate(), simulationBounds.ms);
      const result = await answerOf(thread, plan).finally(() => clearTimeout(timer));
      if (result !== undefined) rest(thread);
      return result;
    },
    async close() {
      await Promise.all([...all].map((thread) => thread.terminate()));
    },
  };
}

/** Undefined where the thread ends without one. */
async function answerOf(
  thread: Worker,
  plan: SimulationPlan,
): Promise<SimulationResult | undefined> {
  const answered = new AbortController();
  const { signal } = answered;
  try {
    const answer = once(thread, "message", { signal });
    const end = once(thread, "exit", { signal });
    thread.ref();
    thread.postMessage(plan);
    const [result] = (await Promise.race([answer, end.then(() => [])])) as [SimulationResult?];
    return result;
  } catch (error) {
    if (isOutOfMemory(error)) return undefined;
    throw error;
  } finally {
    answered.abort();
    // An idle one keeps no process alive.
    thread.unref();
  }
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, "code") === "ERR_WORKER_OUT_OF_MEMORY";
}
