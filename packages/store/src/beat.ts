import pg from "pg";
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

export interface BeatConnection {
  /** Ahead of the first pulse. @throws DatabaseUnavailableError */
  connect(): Promise<void>;
  /**
   * As `beat`, and says how much memory the process has.
   *
   * @throws DatabaseUnavailableError
   */
  pulse(workerId: string, rssBytes?: number): Promise<boolean>;
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
      connectionString: url,
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
  /**
   * So long after the parent of this process has died the process is killed: where its event loop is
   * blocked, only this thread notices. Absent where it lives on.
   */
  readonly orphanMs?: number;
}
