import { setTimeout as sleep } from "node:timers/promises";
import { pausedQueues, pauseQueue, resumeQueue } from "@millrace/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestDatabase, openTransaction } from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.drop());

const mail = { queue: "mail", by: "ann", reason: "down" };

/** As a claim does that has begun before the pause, and has not ended. */
async function reader() {
  const transaction = openTransaction(database.url);
  await transaction.run("select from paused_queues");
  return transaction;
}

test("a pause waits for statements that may not have seen it", async () => {
  const reading = await reader();
  let isAnswered = false;

  const pausing = pauseQueue(database.db, mail).then((isNew) => {
    isAnswered = true;
    return isNew;
  });
  await sleep(200);
  const early = isAnswered;
  await reading.commit();

  expect([early, await pausing]).toEqual([false, true]);
});

test("what reads for long, a backup say, does not keep a queue from being paused", async () => {
  const reading = await reader();

  await pauseQueue(database.db, { ...mail, queue: "print" });
  const paused = await pausedQueues(database.db);
  await reading.commit();

  expect(paused.map(({ queue }) => queue)).toContain("print");
});

test("who paused a queue first is told, and it is resumed once", async () => {
  await resumeQueue(database.db, "mail");
  const made = [await pauseQueue(database.db, mail)];
  made.push(await pauseQueue(database.db, { ...mail, by: "eve" }));
  const [paused] = await pausedQueues(database.db);

  expect(made).toEqual([true, false]);
  expect(paused).toEqual({ ...mail, at: expect.any(Date) });
  expect(await resumeQueue(database.db, "mail")).toBe(true);
  expect(await resumeQueue(database.db, "mail")).toBe(false);
});
