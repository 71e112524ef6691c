import {
  type BackendFactory,
  type IQueueBackend,
  type Job,
  type JobProgress,
  type Processor,
  Worker,
} from "bullmq";

export type UnknownJob = Job<unknown, void>;

const longestPauseMs = 1_000;

/**
 * BullMQ's worker, set for jobs that are nudges and kept from spinning.
 *
 * When a fetch fails with anything but a refused connection (out of memory, read-only replica, a
 * terminated backend), BullMQ reports it and fetches again at once. Here it pauses first, longer
 * each time up to a second.
 */
export class PacedWorker<Connection = unknown> extends Worker<
  unknown,
  void,
  string,
  IQueueBackend,
  JobProgress,
  Connection
> {
  readonly #fetchesWhenPaused: boolean;
  readonly #onFetched: (job: UnknownJob) => void;
  #failures = 0;
  #fetching = 0;

  constructor(
    name: string,
    process: Processor<unknown, void>,
    {
      fetchesWhenPaused,
      onFetched,
      ...options
    }: {
      readonly connection: Connection;
      readonly prefix: string;
      readonly concurrency: number;
      /** Whether a fetch whose wait has ended is still made after a pause. */
      readonly fetchesWhenPaused: boolean;
      /** Hears of each job when it comes; BullMQ may fetch others before it is processed. */
      readonly onFetched: (job: UnknownJob) => void;
    },
    factory: BackendFactory<IQueueBackend, Connection>,
  ) {
    super(
      name,
      process,
      {
        ...options,
        // The step rows count deliveries and say who holds a step. BullMQ only carries on; in Postgres
        // it counts in an integer of four bytes.
        maxStalledCount: 2_000_000_000,
        // A job ends as soon as its steps are claimed. One that outlives its lock was taken by a worker
        // that died before it could claim; the claim makes a second run of it harmless.
        lockDuration: 5_000,
        stalledInterval: 1_500,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
        // How long one blocking fetch lasts, in seconds: a dead socket shows within it.
        drainDelay: 5,
        runRetryDelay: 1_000,
      },
      factory,
    );
    this.#fetchesWhenPaused = fetchesWhenPaused;
    this.#onFetched = onFetched;
  }

  /** How many answers are awaited that may bring a job. After a pause the number falls to none. */
  get fetching(): number {
    return this.#fetching;
  }

  protected override async moveToActive(token: string, name?: string): Promise<UnknownJob> {
    // BullMQ itself answers a fetch during a pause with nothing, whatever the type says.
    if (this.paused && !this.#fetchesWhenPaused) return undefined as never;
    this.#fetching += 1;
    try {
      const job = await super.moveToActive(token, name);
      this.#failures = 0;
      return this.#fetched(job);
    } catch (error) {
      this.#failures = Math.min(this.#failures + 1, 10);
      await this.delay(Math.min(longestPauseMs, 10 * 2 ** this.#failures));
      throw error;
    } finally {
      this.#fetching -= 1;
    }
  }

  /** The end of a job brings the next one along. */
  protected override async handleCompleted(
    ...args: Parameters<Worker<unknown, void>["handleCompleted"]>
  ): Promise<UnknownJob> {
    this.#fetching += 1;
    try {
      return this.#fetched(await super.handleCompleted(...args));
    } finally {
      this.#fetching -= 1;
    }
  }

  /** There may be none, whatever the type says. */
  #fetched(job: UnknownJob): UnknownJob {
    if (job as UnknownJob | undefined) this.#onFetched(job);
    return job;
  }
}
