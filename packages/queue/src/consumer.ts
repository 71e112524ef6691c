import type { Processor } from "bullmq";
import { setTimeout as sleep } from "node:timers/promises";
import type { Backend, ConsumingWorker } from "./backend.ts";
import { describe } from "./errors.ts";
import { type QueueLog, TroubleLog } from "./log.ts";
import { openSlots } from "./slots.ts";
import type { UnknownJob } from "./worker.ts";

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

/** What a handler has handed over, and goes on after the job has ended. */
export interface Running {
  readonly ended: Promise<unknown>;
}

/** What is to be done with jobs. */
export interface Handling {
  /** What the job carries: one thing or many. */
  readonly membersOf: (job: UnknownJob) => readonly unknown[];
  readonly handle: (member: unknown, jobId: string) => Promise<Running | void>;
  /** Members that found no slot go back, so that another worker may take them. */
  readonly putBack: (members: readonly object[], job: UnknownJob) => Promise<void>;
}

/** How long a close waits for the answers to jobs whose handlers have ended. */
const settleMs = 1_000;
const restartMs = 1_000;
/** What was fetched waits so long for a slot: short steps end within it, long ones do not hold it up. */
const patienceMs = 100;
/** Where some slots are free, and not as many as a job usually needs, others get so long to be. */
const fullMs = 30;

/**
 * Consumes for as long as it is open, whatever happens to the connection.
 *
 * At most `concurrency` members run at once, however many jobs brought them. BullMQ fetches while there
 * are slots for what the next job will probably bring, as many as the last one did.
 *
 * @param handling Errors of `handle` end the job like a success does: a job is only a nudge, and
 *   retries are rows in Postgres.
 */
export function openConsumer(
  backend: Backend,
  { name, concurrency }: { readonly name: string; readonly concurrency: number },
  { membersOf, handle, putBack }: Handling,
  log: QueueLog,
): Consumer {
  const trouble = new TroubleLog(log);
  const slots = openSlots(concurrency);
  /** Jobs that were fetched and whose members are not all handed out, and how many members wait. */
  let jobs = 0;
  let waiting = 0;
  /** Members of the latest job. */
  let usual = 1;
  let paused = false;
  let closing: Promise<void> | undefined;

  function onFetched(job: UnknownJob): void {
    const { length } = membersOf(job);
    usual = Math.max(1, length);
    jobs += 1;
    waiting += length;
    adjust();
  }

  const process: Processor<unknown, void> = async (job) => {
    try {
      await handOut(membersOf(job), job);
    } finally {
      jobs -= 1;
    }
    adjust();
    // BullMQ fetches the next job when this one has ended.
    await slots.room(usual, fullMs);
    adjust();
  };

  async function handOut(members: readonly unknown[], job: UnknownJob): Promise<void> {
    const runs: Promise<void>[] = [];
    const left: unknown[] = [];
    await Promise.all(
      members.map(async (member) => {
        const isTaken = await slots.take(patienceMs);
        waiting -= 1;
        if (isTaken) runs.push(run(member, job.id ?? ""));
        else left.push(member);
      }),
    );
    if (left.length > 0) {
      await putBack(left.filter(isObject), job).catch((error: unknown) =>
        log.debug(
          { queue: name, reason: describe(error) },
          "jobs not put back; they are found again",
        ),
      );
    }
    await Promise.all(runs);
  }

  async function run(member: unknown, jobId: string): Promise<void> {
    const failed = (error: unknown) =>
      trouble.warn({ queue: name, jobId }, "a job's handler threw", describe(error));
    const running = await handle(member, jobId).catch(failed);
    if (running) void running.ended.catch(failed).finally(slots.give);
    else slots.give();
  }

  /** How many jobs BullMQ may have at once: those that it has, and what the free slots are good for. */
  function adjust(): void {
    const room = Math.max(0, slots.free - waiting);
    worker.concurrency = Math.max(1, jobs + Math.floor(room / usual));
  }

  let worker = start();
  function start(): ConsumingWorker {
    const started = backend.worker(name, process, concurrency, onFetched);
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
    slots.shut();
    await worker.pause(true);
    // Ends a fetch that is waiting for a job. Where there is no connection, nothing is fetched, and
    // to disconnect then would leave the client parked.
    if (backend.reachable) await bounded(worker.getBackend().disconnectBlocking(true));
    await whileConnected(() => worker.fetching > 0);
  }

  async function resume(): Promise<void> {
    await bounded(worker.getBackend().reconnectBlocking());
    if (paused || closing) return;
    slots.open();
    await worker.resume();
  }

  async function close(force: boolean): Promise<void> {
    if (!force) {
      await pause();
      await slots.idle();
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
      return slots.taken;
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

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** The connection logs its own losses, once. */
function isLostConnection(reason: string): boolean {
  return /ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|Connection is closed|Socket timeout/.test(reason);
}

/** After Redis lost its data, or a job was taken up elsewhere, the end of the job finds nothing. */
function isLostJob(reason: string): boolean {
  return /Missing (key|lock) for job|Lock mismatch for job|not in the active state|could not renew lock/i.test(
    reason,
  );
}
