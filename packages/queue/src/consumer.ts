import type { Job, Processor } from "bullmq";
import { setTimeout as sleep } from "node:timers/promises";
import type { Backend, ConsumingWorker } from "./backend.ts";
import { describe } from "./errors.ts";
import { type QueueLog, TroubleLog } from "./log.ts";

/** Takes jobs of one queue and hands them to a function, some at a time. */
export interface Consumer {
  /**
   * Stops fetching at once and settles when the last answer that could bring a job is there.
   * Running handlers go on.
   */
  pause(): Promise<void>;
  resume(): void;
  /** Stops fetching and waits for the running handlers; with `force` it does not wait for them. */
  close(force?: boolean): Promise<void>;
  /** How many handlers run now. */
  readonly active: number;
}

/** How long a close waits for the answers to jobs whose handlers have ended. */
const settleMs = 1_000;
const restartMs = 1_000;

/**
 * Consumes for as long as it is open, whatever happens to the connection.
 *
 * @param handle Its errors end the job like a success does: a job is only a nudge, and retries are
 *   rows in Postgres.
 */
export function openConsumer(
  backend: Backend,
  name: string,
  concurrency: number,
  handle: (job: Job<unknown, void>) => Promise<void>,
  log: QueueLog,
): Consumer {
  const trouble = new TroubleLog(log);
  let active = 0;
  let paused = false;
  let closing: Promise<void> | undefined;
  let onIdle: (() => void) | undefined;

  const process: Processor<unknown, void> = async (job) => {
    active += 1;
    try {
      await handle(job);
    } catch (error) {
      trouble.warn({ queue: name, jobId: job.id }, "a job's handler threw", describe(error));
    } finally {
      active -= 1;
      if (active === 0) onIdle?.();
    }
  };

  let worker = start();
  function start(): ConsumingWorker {
    const started = backend.worker(name, process, concurrency);
    started.on("error", (error) => report(error));
    started.on("stalled", (jobId) => log.debug({ queue: name, jobId }, "job taken up again"));
    // A worker that could not be set up stays unusable: make another one.
    started.waitUntilReady().catch(async (error: unknown) => {
      if (closing) return;
      report(error);
      await started.close(true).catch(() => {});
      await sleep(restartMs);
      if (!closing && worker === started) worker = start();
      if (paused) await worker.pause(true);
    });
    return started;
  }

  function report(error: unknown): void {
    const reason = describe(error);
    if (closing || isLostConnection(reason)) return;
    if (isLostJob(reason)) log.debug({ queue: name, reason }, "a job was gone when it ended");
    else trouble.warn({ queue: name }, "trouble with the job queue", reason);
  }

  async function pause(): Promise<void> {
    paused = true;
    await worker.pause(true);
    // Ends a fetch that is waiting for a job. Where there is no connection, nothing is fetched, and
    // to disconnect then would leave the client parked.
    if (backend.reachable) await bounded(worker.getBackend().disconnectBlocking(true));
    await whileConnected(() => worker.fetching > 0);
  }

  async function resume(): Promise<void> {
    await bounded(worker.getBackend().reconnectBlocking());
    if (!paused && !closing) await worker.resume();
  }

  async function close(force: boolean): Promise<void> {
    if (!force) {
      await pause();
      if (active > 0) await new Promise<void>((resolve) => (onIdle = resolve));
      await whileConnected(() => worker.isRunning());
    }
    // What is left of the graceful close in BullMQ waits for Redis without end.
    await bounded(worker.close(true));
  }

  async function whileConnected(condition: () => boolean): Promise<void> {
    const until = performance.now() + settleMs;
    while (condition() && backend.reachable && performance.now() < until) await sleep(2);
  }

  return {
    pause,
    resume() {
      if (closing) return;
      paused = false;
      void resume();
    },
    close(force = false) {
      closing ??= close(force);
      return closing;
    },
    get active() {
      return active;
    },
  };
}

/** Waits for it, but neither longer than a second nor for its error. */
async function bounded(work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const patience = sleep(settleMs, undefined, { signal: timer.signal });
  await Promise.race([work, patience]).catch(() => {});
  timer.abort();
  await patience.catch(() => {});
}

/** The connection logs its own losses, once. */
function isLostConnection(reason: string): boolean {
  return /ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|Connection is closed|Socket timeout/.test(reason);
}

/** After Redis lost its data, or a job was taken up elsewhere, the end of the job finds nothing. */
function isLostJob(reason: string): boolean {
  return /Missing (key|lock) for job|not in the active state|could not renew lock/i.test(reason);
}
