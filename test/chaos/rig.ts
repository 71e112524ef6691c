import { readdirSync, readFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { howToGetRedis, openStack, type Stack } from "@millrace/devstack";
import { createTemporaryFolder } from "@millrace/testkit";
import { Redis } from "ioredis";
import pg from "pg";
import type { Stores } from "../support/leftovers.ts";
import { sideQueue } from "./definitions.ts";
import { openLedgerThread, type LedgerThread } from "./ledger.ts";

/** A whole Millrace that belongs to the run, servers and all, and the ledger that its tasks tell. */
export interface Rig {
  readonly stack: Stack;
  readonly ledger: LedgerThread;
  readonly stores: Stores;
  /** Logs of the processes are below it. */
  readonly folder: string;
  /** What the processes have logged, those lines that match. */
  linesOfLogs(pattern: RegExp): readonly string[];
  /** Stops everything, last things first. With `isKept` the folder stays, and its new path is answered. */
  close(options: { readonly isKept: boolean }): Promise<string | undefined>;
}

export interface RigOptions {
  readonly workers: number;
  readonly isDurable: boolean;
}

// From the compiled file: test/chaos/dist/chaos.
const tasksFolder = resolve(import.meta.dirname, "../../tasks");

export async function openRig({ workers, isDurable }: RigOptions): Promise<Rig> {
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async () => {
    for (const closeOne of closers.splice(0).toReversed()) await closeOne();
  };
  const folder = await createTemporaryFolder();
  try {
    const ledger = await openLedgerThread();
    closers.push(() => ledger.close());
    const stack = await openStack({
      dataDir: folder.path,
      databaseUrl: undefined,
      redisUrl: undefined,
      queueBackend: "redis",
      isDurable,
      apis: 2,
      schedulers: 2,
      workers,
      tasks: [tasksFolder],
      // Of the environment of whoever starts the run, nothing reaches the product.
      env: {
        MILLRACE_QUEUES: `default,${sideQueue}`,
        MILLRACE_DEMO_LEDGER: `${ledger.url}/entries`,
      },
    });
    closers.push(() => stack.close());
    if (stack.redis === undefined) throw new Error(`a chaos run needs a Redis: ${howToGetRedis}`);
    return {
      stack,
      ledger,
      stores: storesOf(stack),
      folder: folder.path,
      linesOfLogs: (pattern) => linesOf(join(folder.path, "logs"), pattern),
      close: async ({ isKept }) => {
        await closeAll();
        if (!isKept) {
          await folder.remove();
          return undefined;
        }
        // Under a name by which it is not taken for a leftover.
        const kept = folder.path.replace("millrace-test-", "millrace-chaos-");
        await rename(folder.path, kept);
        return kept;
      },
    };
  } catch (error) {
    await closeAll();
    await folder.remove();
    throw error;
  }
}

function storesOf({ databaseUrl, redisUrl = "" }: Stack): Stores {
  return {
    query: async <Row extends object>(text: string) => {
      const client = new pg.Client({ connectionString: databaseUrl });
      await client.connect();
      try {
        return (await client.query(text)).rows as Row[];
      } finally {
        await client.end();
      }
    },
    withRedis: async (use) => {
      const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1 });
      redis.on("error", () => {});
      try {
        return await use(redis);
      } finally {
        redis.disconnect();
      }
    },
  };
}

function linesOf(folder: string, pattern: RegExp): readonly string[] {
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), "utf8")
      .split("\n")
      .filter((line) => pattern.test(line))
      .map((line) => `${name}: ${line}`),
  );
}
