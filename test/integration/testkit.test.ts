import {
  createDatabase,
  createKeyPrefix,
  eventually,
  startProcess,
  stopProcesses,
} from "@millrace/testkit";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, expect, test } from "vitest";

afterEach(stopProcesses);

test("databases made at the same time are apart from each other, and gone after drop", async () => {
  const [one, other] = await Promise.all([createDatabase(), createDatabase()]);

  await query(one.url, "create table mine (id int)");
  const tables = "select from information_schema.tables where table_name = 'mine'";

  expect(await query(one.url, tables)).toBe(1);
  expect(await query(other.url, tables)).toBe(0);
  await Promise.all([one.drop(), other.drop()]);
  await expect(query(one.url, tables)).rejects.toThrow("does not exist");
});

test("a flush of one key prefix leaves the keys of another", async () => {
  const [mine, theirs] = await Promise.all([createKeyPrefix(), createKeyPrefix()]);
  const redis = new Redis(mine.url);
  await redis.mset({ [`${mine.prefix}:a`]: 1, [`${mine.prefix}:b`]: 2, [`${theirs.prefix}:a`]: 3 });
  redis.disconnect();

  await mine.flush();

  expect(await mine.keys()).toEqual([]);
  expect(await theirs.keys()).toEqual([`${theirs.prefix}:a`]);
  await theirs.flush();
});

test("a frozen process does nothing until it is thawed, and kill ends it for good", async () => {
  const script = 'let n = 0; setInterval(() => console.log("beat", ++n), 20);';
  const beating = await startProcess({ args: ["-e", script] });
  await beating.waitForOutput(/beat 2/);

  beating.freeze();
  await eventually("silence", () => isSilent(() => beating.output()));
  const before = beating.output();
  beating.thaw();
  await eventually("a further beat", () => beating.output() !== before);

  expect(await beating.kill()).toEqual({ code: null, signal: "SIGKILL" });
});

test("waiting for the output of a process that ends says how it ended and what it said", async () => {
  const failing = await startProcess({ args: ["-e", 'console.error("no luck"); process.exit(3)'] });

  await expect(failing.waitForOutput(/success/)).rejects.toThrow(/exit code 3(.|\n)*no luck/);
});

async function isSilent(output: () => string): Promise<boolean> {
  const before = output();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return output() === before;
}

async function query(url: string, text: string): Promise<number | null> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rowCount;
  } finally {
    await client.end();
  }
}
