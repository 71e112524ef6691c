import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { howToGetRedis, openPostgres, openRedis } from "@millrace/devstack";
import {
  createTemplate,
  createTemporaryFolder,
  removeLeftovers,
  type TestServices,
} from "@millrace/testkit";
import type { TestProject } from "vitest/node";
import { testSettings } from "./config.ts";

interface RunningServices {
  readonly services: TestServices;
  close(): Promise<void>;
}

/**
 * Global set-up of every test project that needs Postgres and Redis: one server of each per test
 * run, shared by the projects. The tests get at them through `createDatabase` and
 * `createKeyPrefix` of the testkit.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  shared.users += 1;
  shared.running ??= openServices();
  try {
    project.provide("services", (await shared.running).services);
  } catch (error) {
    shared.users -= 1;
    throw error;
  }
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    const running = await shared.running;
    delete shared.running;
    await running?.close();
  };
}

/** Each project loads this file anew, in the same process: what they share hangs on the global. */
const shared: { users: number; running?: Promise<RunningServices> } = ((
  globalThis as { millraceTestServices?: { users: number } }
).millraceTestServices ??= { users: 0 });

const bundling = join(import.meta.dirname, "../../scripts/bundle.mjs");

async function openServices(): Promise<RunningServices> {
  const settings = testSettings();
  await removeLeftovers();
  // Tests on processes run the apps as they are built.
  await promisify(execFile)(process.execPath, [bundling]);
  const folder = await createTemporaryFolder();
  const closers = [() => folder.remove()];
  const close = async () => {
    for (const closeOne of closers.toReversed()) await closeOne();
  };
  try {
    let databaseUrl = settings.databaseUrl;
    if (databaseUrl === undefined) {
      const dataDir = join(folder.path, "postgres");
      const postgres = await openPostgres({ dataDir, isDurable: settings.isDurable });
      closers.push(() => postgres.stop("immediate"));
      databaseUrl = postgres.url;
    }
    let redisUrl = settings.redisUrl;
    if (redisUrl === undefined) {
      const redis = await openRedis({ dataDir: join(folder.path, "redis") });
      if (redis === undefined) throw new Error(`the tests need a real Redis: ${howToGetRedis}`);
      closers.push(() => redis.stop());
      redisUrl = redis.url;
    }
    const template = await createTemplate(databaseUrl);
    closers.push(() => template.drop());
    return { services: { databaseUrl, redisUrl, templateDatabase: template.name }, close };
  } catch (error) {
    await close();
    throw error;
  }
}
