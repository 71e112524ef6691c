import pg from "pg";
import { driverUrl } from "./driver-url.ts";
import { storeErrorOf } from "./errors.ts";

/**
 * The pulse of a worker, apart from all other statements: the thread that gives it loads this file, the
 * driver and nothing else, since no worker takes a step before it beats.
 */

/** Age at which a beat counts as stopped: by its worker itself, and by whoever takes over. */
export const staleBeatMs = 4_000;

/** One row, touched by its own worker only: an update in place, as no index has the time. */
export const pulse = `update workers set beat_at = clock_timestamp(), rss_bytes = coalesce($2::bigint, rss_bytes)
  where id = $1 and beat_at > clock_timestamp() - interval '${staleBeatMs} ms'
  returning true as ok`;

/** Answered from `step_executions_held`. */
const held = `select instance_id, path, iteration, fence from step_executions
  where worker_id = $1 and status = 'RUNNING'`;

interface HeldRow extends Omit<StepRun, "instanceId"> {
  readonly instance_id: string;
}

export interface BeatConnection {
  /** Ahead of the first pulse. @throws DatabaseUnavailableError */
  connect(): Promise<void>;
  /**
   * As `beat`, and says how much memory the process has.
   *
   * @throws DatabaseUnavailableError
   */
  pulse(workerId: string, rssBytes?: number): Promise<boolean>;
  /**
   * `signOf` what the rows say that this worker runs.
   *
   * @throws DatabaseUnavailableError
   */
  held(workerId: string): Promise<ReadonlySet<number>>;
  close(): Promise<void>;
}

/**
 * A connection for the beat alone, so that a pool that is busy does not make a worker seem dead. It is
 * opened again when it was lost.
 */
export function openBeat(url: string): BeatConnection {
  let client: pg.Client | undefined;

  async function open(): Promise<pg.Client> {
    const fresh = new pg.Client({
      connectionString: driverUrl(url),
      application_name: "millrace-beat",
      connectionTimeoutMillis: staleBeatMs,
      query_timeout: staleBeatMs,
      keepAlive: true,
    });
    fresh.on("error", () => {
      client = undefined;
    });
    await fresh.connect();
    return fresh;
  }

  async function using<T>(act: (connection: pg.Client) => Promise<T>): Promise<T> {
    try {
      client ??= await open();
      return await act(client);
    } catch (error) {
      const broken = client;
      client = undefined;
      broken?.end().catch(() => {});
      throw storeErrorOf(error);
    }
  }

  return {
    connect: () => using(async () => {}),
    pulse: (workerId, rssBytes) =>
      using(async (connection) => {
        const { rows } = await connection.query(pulse, [workerId, rssBytes ?? null]);
        return rows.length > 0;
      }),
    held: (workerId) =>
      using(async (connection) => {
        const { rows } = await connection.query<HeldRow>(held, [workerId]);
        return new Set(
          rows.map(({ instance_id: instanceId, ...step }) => signOf({ instanceId, ...step })),
        );
      }),
    async close() {
      await client?.end();
      client = undefined;
    },
  };
}

/** The program of the thread, which is run with `BeatThreadData`. From the sources, the built file. */
export const beatThread = new URL(
  import.meta.url.endsWith(".ts") ? "../dist/beat-thread.js" : "./beat-thread.js",
  import.meta.url,
);

export interface BeatThreadData {
  readonly databaseUrl: string;
  /** Absent where the process is not the worker's to kill. */
  readonly signs?: Signs;
  /**
   * So long after the parent of this process has died the process is killed: where its event loop is
   * blocked, only this thread notices. Absent where it lives on.
   */
  readonly orphanMs?: number;
}

/** What the thread sees of its process while the event loop of that stands still. Both are in shared memory. */
export interface Signs {
  /** One number, which the event loop changes in each second in which it turns. */
  readonly turns: Int32Array;
  /** `signOf` each handler that has begun and not come to an end; 0 where there is none. */
  readonly handlers: Int32Array;
}

/** One run of a step: another one has another fence. */
export interface StepRun {
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
}

/** A number that stands for it in shared memory, by FNV-1a; never 0. */
export function signOf({ instanceId, path, iteration, fence }: StepRun): number {
  const text = `${instanceId}/${path}#${iteration}/${fence}`;
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash === 0 ? 1 : hash;
}
