import type { z } from "zod";
import type { Backend } from "./backend.ts";
import { type Addition, bundled, membersOf, returned } from "./bundle.ts";
import { type Consumer, openConsumer, type Running } from "./consumer.ts";
import { describe, QueueUnavailableError } from "./errors.ts";
import {
  type AdvanceJob,
  advanceJobId,
  advanceJobSchema,
  advanceQueue,
  isolatedQueueName,
  jobPriority,
  queueName,
  taskQueueOf,
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
  /** How many jobs of one turn travel as one (bundle.ts); 1 when absent. */
  readonly bundleSize?: number;
  readonly log: QueueLog;
}

export interface StepToAdd {
  readonly job: StepJob;
  readonly queue: string;
  /** That of the instance: −1000 to 1000, higher first. */
  readonly priority: number;
  readonly delayMs: number;
  /**
   * Its time has come by the database's clock: it goes beside a job of its own that waits, since the clock of
   * whoever added that may have been wrong by hours. No when absent.
   */
  readonly isDue?: boolean;
  /** Whether it goes to those who run such steps alone; no when absent. */
  readonly isolated?: boolean;
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
  /** Steps that are to run alone, or do; none of them is counted elsewhere. */
  readonly isolated: number;
}

/** A job that no worker has taken yet. */
export interface PendingJob {
  readonly jobId: string;
  /** Those that it carries; none where nobody here has written its data. */
  readonly steps: readonly StepJob[];
  /** By the clock of whoever added it. */
  readonly addedAt: Date;
}

export interface ConsumeOptions {
  readonly concurrency: number;
}

export interface ConsumeStepsOptions extends ConsumeOptions {
  /** Takes the steps that are to run alone, instead of all others; no when absent. */
  readonly isolated?: boolean;
}

/**
 * Handles one job. Its end is the end of the job; where it answers with what goes on running, the job
 * has ended, since the rows say who holds the work, and the slot is taken until that has settled too.
 */
export type Handler<T> = (job: T, jobId: string) => Promise<Running | void>;

export interface Queue {
  readonly backend: "redis" | "postgres";
  /**
   * Adds jobs, those of the same turn of the event loop together, and those that come while others are
   * being added. A job that is still kept under the
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
  somePending(queue: string, limit: number): Promise<readonly PendingJob[]>;
  /**
   * Task queues that have jobs, or had some: those found in a small part of what is kept, another one each
   * time, so that in time all are found.
   */
  someQueues(): Promise<readonly string[]>;
  consumeSteps(queue: string, options: ConsumeStepsOptions, handler: Handler<StepJob>): Consumer;
  consumeAdvance(options: ConsumeOptions, handler: Handler<AdvanceJob>): Consumer;
  /** How full task queues are; `advanceQueue` stands for the one that carries advance jobs. */
  depths(queues: readonly string[]): Promise<readonly QueueDepth[]>;
  /** The mark by which a total loss shows: absent or another than the one in Postgres. */
  readEpoch(): Promise<string | undefined>;
  writeEpoch(value: string): Promise<void>;
  readonly wake: Wake;
  /** Whether jobs can be added: it answers, and takes writes. @throws QueueUnavailableError */
  tryWrite(): Promise<void>;
  /** Closes the consumers that are still open, waiting for their handlers, then the connections. */
  close(): Promise<void>;
}

const pendingStates = ["waiting", "delayed", "prioritized"] as const;

/**
 * To apply an event takes a worker less than to take a job, so that so few are not shared out. A step
 * may run for long, and is.
 */
const fewAdvances = 10;

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
  const { bundleSize = 1 } = settings;
  const options = { commandTimeoutMs, bundleSize, log };
  if (redisUrl !== undefined) {
    const backend = await openRedisBackend({
      url: redisUrl,
      prefix,
      patienceMs: commandTimeoutMs,
      log,
    });
    return queueOn(backend, options);
  }
  if (postgresUrl === undefined) throw new Error("openQueue needs a redisUrl or a postgresUrl");
  return queueOn(await openPostgresBackend({ url: postgresUrl, prefix, log }), options);
}

interface Batch {
  readonly additions: Addition[];
  readonly sent: Promise<void>;
}

interface Options {
  readonly commandTimeoutMs: number;
  readonly bundleSize: number;
  readonly log: QueueLog;
}

function queueOn(backend: Backend, { commandTimeoutMs, bundleSize, log }: Options): Queue {
  const batches = new Map<string, Batch>();
  /** By queue, the end of the last sending. */
  const sending = new Map<string, Promise<unknown>>();
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
      // What comes while others are being sent waits for them, and is bundled.
      const sent = Promise.all([endOfTurn(), sending.get(name)]).then(() => {
        batches.delete(name);
        return send(name, additions);
      });
      const settled = sent.catch(() => {});
      sending.set(name, settled);
      batch = { additions, sent };
      batches.set(name, batch);
    }
    batch.additions.push(addition);
    return batch.sent;
  }

  async function send(name: string, additions: Addition[]): Promise<void> {
    const most = isIsolated(name) ? 1 : bundleSize;
    const jobs = bundled(additions, most, name === queueName(advanceQueue) ? fewAdvances : 1);
    for (let from = 0; from < jobs.length; from += chunkSize) {
      const chunk = jobs.slice(from, from + chunkSize);
      await run(() => backend.publisher(name).addBulk(chunk));
    }
  }

  function consume<T>(
    name: string,
    { concurrency }: ConsumeOptions,
    schema: z.ZodType<T>,
    handler: Handler<T>,
  ): Consumer {
    const consumer = openConsumer(
      backend,
      { name, concurrency },
      {
        membersOf: ({ data }) => membersOf(data),
        async handle(data, jobId) {
          const parsed = schema.safeParse(data);
          if (parsed.success) return handler(parsed.data, jobId);
          log.error({ queue: name, jobId }, "dropped a job whose data nobody here has written");
        },
        async putBack(members, { id = "", opts }) {
          const job = returned(members, id, opts.priority ?? jobPriority(0));
          await run(() => backend.publisher(name).addBulk([job]));
        },
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

  async function pageOf(name: string, limit: number): Promise<readonly PendingJob[]> {
    const publisher = backend.publisher(name);
    const counts = await run(() => publisher.getJobCounts(...pendingStates));
    const most = Math.max(0, ...Object.values(counts));
    if (most === 0) return [];
    const from = Math.floor(Math.random() * Math.ceil(most / limit)) * limit;
    const jobs = await run(() => publisher.getJobs([...pendingStates], from, from + limit - 1));
    return jobs.flatMap((found) => {
      // One that was taken since its id was read.
      if (found?.id === undefined) return [];
      const steps = membersOf(found.data).flatMap((member) => {
        const step = stepJobSchema.safeParse(member);
        return step.success ? step.data : [];
      });
      return { jobId: found.id, steps, addedAt: new Date(found.timestamp) };
    });
  }

  function countsOf(name: string): Promise<Readonly<Record<string, number>>> {
    return run(() =>
      backend.publisher(name).getJobCounts("waiting", "active", "delayed", "prioritized"),
    );
  }

  return {
    backend: backend.kind,
    async addSteps(jobs) {
      const sent = new Set<Promise<void>>();
      for (const { job, queue, priority, delayMs, isDue = false, isolated = false } of jobs) {
        const id = stepJobId(job);
        const addition = {
          id: isDue ? `${id}.due` : id,
          data: job,
          priority: jobPriority(priority),
          delayMs,
        };
        sent.add(add(isolated ? isolatedQueueName(queue) : queueName(queue), addition));
      }
      await Promise.all(sent);
    },
    async addAdvance(jobs) {
      const sent = new Set<Promise<void>>();
      for (const { job, priority } of jobs) {
        const id = advanceJobId(job);
        const addition = { id, data: job, priority: jobPriority(priority), delayMs: 0 };
        sent.add(add(queueName(advanceQueue), addition));
      }
      await Promise.all(sent);
    },
    async removeStep(queue, jobId) {
      const remove = (name: string) => run(() => backend.publisher(name).remove(jobId));
      await Promise.allSettled(namesOf(queue).map(remove));
    },
    async known(queue, jobIds) {
      const found = new Set<string>();
      for (const name of namesOf(queue)) {
        for (let from = 0; from < jobIds.length; from += chunkSize) {
          const chunk = jobIds.slice(from, from + chunkSize);
          for (const id of await run(() => backend.known(name, chunk))) found.add(id);
        }
      }
      return found;
    },
    async somePending(queue, limit) {
      const pages = namesOf(queue).map((name) => pageOf(name, limit));
      return (await Promise.all(pages)).flat();
    },
    async someQueues() {
      const names = await run(() => backend.someQueues());
      return [...new Set(names.flatMap((name) => taskQueueOf(name) ?? []))];
    },
    consumeSteps(queue, { isolated = false, ...options }, handler) {
      const name = isolated ? isolatedQueueName(queue) : queueName(queue);
      return consume(name, options, stepJobSchema, handler);
    },
    consumeAdvance: (options, handler) =>
      consume(queueName(advanceQueue), options, advanceJobSchema, handler),
    depths: (queues) =>
      Promise.all(
        queues.map(async (queue) => {
          const [counts = {}, alone = {}] = await Promise.all(namesOf(queue).map(countsOf));
          const { waiting = 0, active = 0, delayed = 0, prioritized = 0 } = counts;
          const isolated = Object.values(alone).reduce((sum, count) => sum + count, 0);
          return { queue, waiting, active, delayed, prioritized, isolated };
        }),
      ),
    readEpoch: () => run(() => backend.readEpoch()),
    writeEpoch: (value) => run(() => backend.writeEpoch(value)),
    wake: backend.wake,
    tryWrite: () => run(() => backend.tryWrite()),
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.close()));
      await Promise.allSettled([...batches.values()].map((batch) => batch.sent));
      await backend.close();
    },
  };
}

/** Where the steps of a task queue may be: its own BullMQ queue, then that of those that run alone. */
function namesOf(queue: string): readonly string[] {
  return queue === advanceQueue ? [queueName(queue)] : [queueName(queue), isolatedQueueName(queue)];
}

function isIsolated(name: string): boolean {
  return name.startsWith(isolatedQueueName(""));
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
