import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { testServices } from "./services.ts";

/** The part of the shared Redis that one test file has to itself. */
export interface TestRedis {
  readonly url: string;
  /** Every key of the file begins with it. */
  readonly prefix: string;
  /** The keys that exist now under the prefix. */
  keys(): Promise<string[]>;
  /** Deletes those keys: what a FLUSHALL is to the product, without disturbing other tests. */
  flush(): Promise<void>;
}

/** A key prefix of its own for one test file. Flush it in `afterAll`. */
export async function createKeyPrefix(): Promise<TestRedis> {
  const { redisUrl: url } = await testServices();
  const prefix = `test-${randomBytes(6).toString("hex")}`;
  const keys = () => withRedis(url, (redis) => scan(redis, prefix));
  return {
    url,
    prefix,
    keys,
    flush: () =>
      withRedis(url, async (redis) => {
        const found = await scan(redis, prefix);
        if (found.length > 0) await redis.unlink(...found);
      }),
  };
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}

async function scan(redis: Redis, prefix: string): Promise<string[]> {
  const found: string[] = [];
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", `${prefix}*`, "COUNT", 1_000);
    cursor = next;
    found.push(...keys);
  } while (cursor !== "0");
  return found;
}
