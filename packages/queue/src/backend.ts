import type { IQueueBackend, Processor, Queue as BullQueue } from "bullmq";
import type { Wake } from "./wake.ts";
import type { PacedWorker, UnknownJob } from "./worker.ts";

/** A BullMQ queue, to add to and to ask. */
export type Publisher = Pick<
  BullQueue<unknown, void>,
  "addBulk" | "remove" | "getJobCounts" | "getJobs"
>;

/** A consuming worker of either backend. */
export type ConsumingWorker = Pick<
  PacedWorker,
  "pause" | "resume" | "close" | "isRunning" | "waitUntilReady" | "fetching"
> & {
  /** How many jobs are taken at once. */
  concurrency: number;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "stalled", listener: (jobId: string) => void): unknown;
  getBackend(): Pick<IQueueBackend, "disconnectBlocking" | "reconnectBlocking">;
};

/** What differs between Redis and Postgres as the carrier of jobs. Names are those of BullMQ queues. */
export interface Backend {
  readonly kind: "redis" | "postgres";
  /** Whether a command sent now has somewhere to go. */
  readonly reachable: boolean;
  /**
   * Waits out a dropped connection for the fraction of a second that a reconnect takes.
   *
   * @returns Whether it is reachable; false at once when it has been away for longer.
   */
  regained(): Promise<boolean>;
  publisher(name: string): Publisher;
  worker(
    name: string,
    process: Processor<unknown, void>,
    concurrency: number,
    onFetched: (job: UnknownJob) => void,
  ): ConsumingWorker;
  known(name: string, jobIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Names of queues among a part of what is kept, another one each time. */
  someQueues(): Promise<readonly string[]>;
  readEpoch(): Promise<string | undefined>;
  writeEpoch(value: string): Promise<void>;
  readonly wake: Wake;
  /** A write that leaves nothing behind. */
  tryWrite(): Promise<void>;
  close(): Promise<void>;
}
