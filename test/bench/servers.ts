import { openPostgres, openRedis } from "@millrace/devstack";
import type { Postgres, Redis } from "@millrace/devstack";
import { createTemporaryFolder } from "@millrace/testkit";
import { Redis as RedisClient } from "ioredis";
import pg from "pg";

/**
 * A private Postgres with full durability and a private Redis with an append-only file, shared by all
 * measurements of a run; each gets a fresh database and an empty Redis.
 */
export interface Servers {
  readonly folder: string;
  readonly postgres: Postgres;
  readonly redis: Redis & { readonly url: string };
  /** To the database `postgres`, for counters and for making databases. */
  readonly admin: pg.Client;
  readonly redisClient: RedisClient;
  /** Makes an empty database, after a checkpoint, and empties Redis. */
  freshDatabase(): Promise<FreshDatabase>;
  close(): Promise<void>;
}

export interface FreshDatabase {
  readonly url: string;
  readonly name: string;
  drop(): Promise<void>;
}

/** What differs from the defaults of Postgres; fsync and synchronous_commit are on. */
export const postgresSettings = {
  shared_buffers: "1GB",
  max_wal_size: "4GB",
  shared_preload_libraries: "pg_stat_statements",
} as const;

export const redisSettings = { appendfsync: "everysec" } as const;

export async function openServers({ isKept }: { readonly isKept: boolean }): Promise<Servers> {
  const folder = await createTemporaryFolder();
  const closers: (() => Promise<unknown>)[] = [];
  if (isKept) process.stderr.write(`data folder: ${folder.path}\n`);
  else closers.push(() => folder.remove());
  const close = async () => {
    for (const closeOne of closers.splice(0).toReversed()) await closeOne();
  };
  try {
    const postgres = await openPostgres({
      dataDir: `${folder.path}/postgres`,
      settings: postgresSettings,
    });
    closers.push(() => postgres.stop());
    const redis = await openRedis({
      dataDir: `${folder.path}/redis`,
      isPersistent: true,
      settings: redisSettings,
    });
    if (redis === undefined) throw new Error("the benchmarks need a redis-server on the PATH");
    closers.push(() => redis.stop());
    const admin = new pg.Client({ connectionString: databaseUrl(postgres.url, "postgres") });
    await admin.connect();
    closers.push(() => admin.end());
    await admin.query("create extension if not exists pg_stat_statements");
    await admin.query("create extension if not exists pg_walinspect");
    const redisClient = new RedisClient(redis.url);
    closers.push(async () => redisClient.disconnect());
    let count = 0;
    return {
      folder: folder.path,
      postgres,
      redis,
      admin,
      redisClient,
      async freshDatabase() {
        const name = `bench_${++count}`;
        await admin.query(`create database ${name}`);
        await admin.query("checkpoint");
        await redisClient.flushall();
        return {
          name,
          url: databaseUrl(postgres.url, name),
          async drop() {
            await admin.query(`drop database if exists ${name} with (force)`);
          },
        };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function databaseUrl(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}
