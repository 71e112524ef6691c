import type { JobsOptions } from "bullmq";
import type { z } from "zod";
import type { Backend } from "./backend.ts";
import { type Consumer, openConsumer } from "./consumer.ts";
import { describe, QueueUnavailableError } from "./errors.ts";
import {
  type AdvanceJob,
  advanceJobId,
  advanceJobSchema,
  advanceQueue,
  jobPriority,
  queueName,
  type StepJob,
  stepJobId,
  stepJobSchema,
} from "./job.ts";
import type { QueueLog } from "./log.ts";
import { openPostgresBackend } from "./postgres-backend.ts";
import { openRedisBackend } from "./redis-backend.ts";
import type { Wake } from "./wake.ts";

// Postgres says who holds a step; a job is only a nudge. So nothing here is a promise: a job may be
// lost, come twice or come late, and the reconciler and the claim make up for it. What this code owes
// is to be quick, never to block a caller on a Redis that is away, and never to stop consuming.

export interface QueueSettings {
  readonly redisUrl?: string;
  /** Where there is no Redis: BullMQ's Postgres backend, in the schema `bullmq`. */
  readonly postgresUrl?: string;
  /** Keeps installations that share a Redis apart. */
  readonly prefix?: string;
  /** How long one command may take before its caller is told that the queue is unavailable. */
  readonly commandTimeoutMs?: number;
  readonly log: QueueLog;
}

export interface StepToAdd {
  readonly job: StepJob;
  readonly queue: string;
  /** That of the instance: −1000 to 1000, higher first. */
  readonly priority: number;
  readonly delayMs: number;
}

export interface AdvanceToAdd {
  readonly job: AdvanceJob;
  readonly priority: number;
}

export interface QueueDepth {
  readonly queue: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly prioritized: number;
}

/** A job that no worker has taken yet. */
export interface PendingStep {
  readonly jobId: string;
  readonly job: StepJob;
  /** By the clock of whoever added it. */
  readonly addedAt: Date;
}

export interface ConsumeOptions {
  readonly concurrency: number;
}

export interface Queue {
  readonly backend: "redis" | "postgres";
  /**
   * Adds jobs, those of the same turn of the event loop together. A job that is still kept under the
   * same id stays as it is.
   *
   * @throws QueueUnavailableError Within the command timeout; some of the jobs may have been added.
   */
  addSteps(jobs: readonly StepToAdd[]): Promise<void>;
  /** As `addSteps`, to the queue that carries advance jobs. */
  addAdvance(jobs: readonly AdvanceToAdd[]): Promise<void>;
  /** Removes a job that waits. Best effort: never throws, and one that runs stays. */
  removeStep(queue: string, jobId: string): Promise<void>;
  /** Which of these jobs are still kept, be it waiting, delayed or running. */
  known(queue: string, jobIds: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Some of the step jobs that wait, for their time or for a worker: a page of at most `limit` of each
   * kind, another one each time, so that in time all are seen.
   */
  somePending(queue: string, limit: number): Promise<readonly PendingStep[]>;
  consumeSteps(
    queue: string,
    options: ConsumeOptions,
    handler: (job: StepJob, jobId: string) => Promise<void>,
  ): Consumer;
  consumeAdvance(
    options: ConsumeOptions,
    handler: (job: AdvanceJob, jobId: string) => Promise<void>,
  ): Consumer;
  /** How full task queues are; `advanceQueue` stands for the one that carries advance jobs. */
  depths(queues: readonly string[]): Promise<readonly QueueDepth[]>;
  /** The mark by which a total loss shows: absent or another than the one in Postgres. */
  readEpoch(): Promise<string | undefined>;
  writeEpoch(value: string): Promise<void>;
  readonly wake: Wake;
  /** Whether jobs can be added: it answers, and takes writes. @throws QueueUnavailableError */
  tryWrite(): Promise<void>;
  /** @throws QueueUnavailableError */
  ping(): Promise<void>;
  /** Closes the consumers that are still open, waiting for their handlers, then the connections. */
  close(): Promise<void>;
}

const pendingStates = ["waiting", "delayed", "prioritized"] as const;

/** So many jobs travel in one pipeline: a larger one holds Redis, and its caller, for too long. */
const chunkSize = 500;

/**
 * Opens the queue. With Redis it never fails and waits no longer than the command timeout, be Redis
 * there or not.
 *
 * @throws QueueUnavailableError Where Postgres is to carry the jobs and cannot be reached.
 */
export async function openQueue(settings: QueueSettings): Promise<Queue> {
  const { redisUrl, postgresUrl, prefix = "millrace", commandTimeoutMs = 1_000, log } = settings;
  if (redisUrl !== undefined) {
    const backend = await openRedisBackend({
      url: redisUrl,
      prefix,
      patienceMs: commandTimeoutMs,
      log,
    });
    return queueOn(backend, commandTimeoutMs, log);
  }
  if (postgresUrl === undefined) throw new Error("openQueue needs a redisUrl or a postgresUrl");
  return queueOn(
    await openPostgresBackend({ url: postgresUrl, prefix, log }),
    commandTimeoutMs,
    log,
  );
}

interface Addition {
  readonly name: string;
  readonly data: StepJob | AdvanceJob;
  readonly opts: JobsOptions;
}

interface Batch {
  readonly additions: Addition[];
  readonly sent: Promise<void>;
}

function queueOn(backend: Backend, commandTimeoutMs: number, log: QueueLog): Queue {
  const batches = new Map<string, Batch>();
  const consumers = new Set<Consumer>();
  let overdue = 0;

  /**
   * Runs one command, all of which may be repeated, within the timeout. While one that ran out of
   * time is still unanswered, further ones are refused: against a Redis that hangs they would only
   * pile up.
   */
  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (overdue > 0) throw new QueueUnavailableError("the job queue does not answer");
    return within(commandTimeoutMs, attempt(work));
  }

  async function attempt<T>(work: () => Promise<T>): Promise<T> {
    if (!backend.reachable && !(await backend.regained())) {
      throw new QueueUnavailableError("the job queue is not connected");
    }
    try {
      return await work();
    } catch (error) {
      // An answer of Redis is final. Anything else is a connection that may be back in a moment.
      if (isReply(error) || !(await backend.regained())) throw unavailable(error);
      return await work().catch((again: unknown) => {
        throw unavailable(again);
      });
    }
  }

  async function within<T>(ms: number, work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let state: "waiting" | "late" | "settled" = "waiting";
    const expired = new Promise<never>((_, reject) => {
      const expire = () => {
        if (state === "settled") return;
        state = "late";
        overdue += 1;
        reject(new QueueUnavailableError(`the job queue did not answer within ${ms} ms`));
      };
      // After a task has blocked the event loop the timer fires before answers that have long come
      // are read; the immediate gives them their turn.
      timer = setTimeout(() => setImmediate(expire), ms);
    });
    const settled = work.finally(() => {
      if (state === "late") overdue -= 1;
      state = "settled";
      clearTimeout(timer);
    });
    return await Promise.race([settled, expired]);
  }

  function add(name: string, addition: Addition): Promise<void> {
    let batch = batches.get(name);
    if (!batch) {
      const additions: Addition[] = [];
      const sent = endOfTurn().then(() => {
        batches.delete(name);
        return send(name, additions);
      });
      batch = { additions, sent };
      batches.set(name, batch);
    }
    batch.additions.push(addition);
    return batch.sent;
  }

  async function send(name: string, additions: Addition[]): Promise<void> {
    for (let from = 0; from < additions.length; from += chunkSize) {
      const chunk = additions.slice(from, from + chunkSize);
      await run(() => backend.publisher(name).addBulk(chunk));
    }
  }

  function consume<T>(
    queue: string,
    { concurrency }: ConsumeOptions,
    schema: z.ZodType<T>,
    handler: (job: T, jobId: string) => Promise<void>,
  ): Consumer {
    const consumer = openConsumer(
      backend,
      queueName(queue),
      concurrency,
      async ({ id = "", data }) => {
        const parsed = schema.safeParse(data);
        if (parsed.success) await handler(parsed.data, id);
        else log.error({ queue, jobId: id }, "dropped a job whose data nobody here has written");
      },
      log,
    );
    const open: Consumer = {
      pause: () => consumer.pause(),
      resume: () => consumer.resume(),
      async close(force) {
        await consumer.close(force);
        consumers.delete(open);
      },
      get active() {
        return consumer.active;
      },
    };
    consumers.add(open);
    return open;
  }

  return {
    backend: backend.kind,
    async addSteps(jobs) {
      const sent = new Set<Promise<void>>();
      for (const { job, queue, priority, delayMs } of jobs) {
        const opts = jobOptions(stepJobId(job), priority, delayMs);
        sent.add(add(queueName(queue), { name: "step", data: job, opts }));
      }
      await Promise.all(sent);
    },
    async addAdvance(jobs) {
      const sent = new Set<Promise<void>>();
      for (const { job, priority } of jobs) {
        const opts = jobOptions(advanceJobId(job), priority, 0);
        sent.add(add(queueName(advanceQueue), { name: "advance", data: job, opts }));
      }
      await Promise.all(sent);
    },
    async removeStep(queue, jobId) {
      await run(() => backend.publisher(queueName(queue)).remove(jobId)).catch(() => {});
    },
    async known(queue, jobIds) {
      const found = new Set<string>();
      for (let from = 0; from < jobIds.length; from += chunkSize) {
        const chunk = jobIds.slice(from, from + chunkSize);
        for (const id of await run(() => backend.known(queueName(queue), chunk))) found.add(id);
      }
      return found;
    },
    async somePending(queue, limit) {
      const publisher = backend.publisher(queueName(queue));
      const counts = await run(() => publisher.getJobCounts(...pendingStates));
      const most = Math.max(0, ...Object.values(counts));
      if (most === 0) return [];
      const from = Math.floor(Math.random() * Math.ceil(most / limit)) * limit;
      const jobs = await run(() => publisher.getJobs([...pendingStates], from, from + limit - 1));
      return jobs.flatMap((found) => {
        // One that was taken since its id was read.
        const job = stepJobSchema.safeParse(found?.data);
        if (!job.success || found?.id === undefined) return [];
        return { jobId: found.id, job: job.data, addedAt: new Date(found.timestamp) };
      });
    },
    consumeSteps: (queue, options, handler) => consume(queue, options, stepJobSchema, handler),
    consumeAdvance: (options, handler) => consume(advanceQueue, options, advanceJobSchema, handler),
    depths: (queues) =>
      Promise.all(
        queues.map(async (queue) => {
          const counts = await run(() =>
            backend
              .publisher(queueName(queue))
              .getJobCounts("waiting", "active", "delayed", "prioritized"),
          );
          const { waiting = 0, active = 0, delayed = 0, prioritized = 0 } = counts;
          return { queue, waiting, active, delayed, prioritized };
        }),
      ),
    readEpoch: () => run(() => backend.readEpoch()),
    writeEpoch: (value) => run(() => backend.writeEpoch(value)),
    wake: backend.wake,
    tryWrite: () => run(() => backend.tryWrite()),
    ping: () => run(() => backend.ping()),
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.close()));
      await Promise.allSettled([...batches.values()].map((batch) => batch.sent));
      await backend.close();
    },
  };
}

function jobOptions(jobId: string, priority: number, delayMs: number): JobsOptions {
  const opts = { jobId, priority: jobPriority(priority), attempts: 1 };
  return delayMs > 0 ? { ...opts, delay: Math.ceil(delayMs) } : opts;
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}

function unavailable(error: unknown): QueueUnavailableError {
  return error instanceof QueueUnavailableError
    ? error
    : new QueueUnavailableError(`the job queue failed: ${describe(error)}`, { cause: error });
}
