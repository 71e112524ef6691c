import { openQueue, type Queue, QueueUnavailableError, stepJobId } from "@millrace/queue";
import {
  createEmptyDatabase,
  eventually,
  freePort,
  startProcess,
  stopProcesses,
  type TestDatabase,
} from "@millrace/testkit";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { idsOf, steps } from "./jobs.ts";

// BullMQ's Postgres backend, for machines without Redis: the same queue, so far as a first try needs.
let database: TestDatabase;
const opened: Queue[] = [];
const log = { debug() {}, info() {}, warn() {}, error() {} };

beforeAll(async () => {
  database = await createEmptyDatabase();
});
afterEach(async () => {
  await stopProcesses();
  await Promise.all(opened.splice(0).map((queue) => queue.close()));
});
afterAll(() => database.drop());

test("jobs go from one process to another, once each, and are gone when done", async () => {
  const prefix = "basic";
  const [here, there] = await Promise.all([open(prefix), open(prefix)]);
  expect(here.backend).toBe("postgres");
  const jobs = steps(100);
  const seen: string[] = [];
  there.consumeSteps("default", { concurrency: 10 }, async (job, jobId) => {
    expect(stepJobId(job)).toBe(jobId);
    seen.push(jobId);
  });

  await here.addSteps([...jobs, ...jobs]);

  await eventually("all jobs", () => seen.length >= jobs.length);
  expect(seen.toSorted()).toEqual(idsOf(jobs).toSorted());
  await eventually("their end", async () => (await here.known("default", idsOf(jobs))).size === 0);
});

test("a job whose worker died in the middle of it goes to another", async () => {
  const prefix = "died";
  const here = await open(prefix);
  const jobs = steps(1);
  await here.addSteps(jobs);
  const other = await startProcess({
    args: ["--input-type=module", "--eval", holding(prefix)],
    cwd: import.meta.dirname,
  });
  await other.waitForOutput(/taken/);

  await other.kill();

  const seen: string[] = [];
  here.consumeSteps("default", { concurrency: 1 }, async (_, jobId) => void seen.push(jobId));
  await eventually("the job to come again", () => seen.length > 0, { timeoutMs: 30_000 });
  expect(seen).toEqual(idsOf(jobs));
});

test("priority, delay, removal, depth and what is known are as with Redis", async () => {
  const queue = await open("order");
  const jobs = steps(3).map((job, index) => ({ ...job, priority: index }));
  const [late, removed] = steps(2).map((job) => ({ ...job, delayMs: 400 }));
  if (!late || !removed) throw new Error("no jobs");
  const [alone] = steps(1, { isolated: true });
  await queue.addSteps([...jobs, late, removed, alone]);
  const ids = idsOf([...jobs, late, removed, alone]);
  expect(await queue.known("default", [...ids, "missing"])).toEqual(new Set(ids));
  expect(await queue.depths(["default"])).toEqual([
    { queue: "default", waiting: 0, active: 0, delayed: 2, prioritized: 3, isolated: 1 },
  ]);
  await queue.removeStep("default", stepJobId(removed.job));

  const seen: string[] = [];
  queue.consumeSteps("default", { concurrency: 1 }, async (_, jobId) => {
    seen.push(jobId);
  });
  const seenAlone: string[] = [];
  queue.consumeSteps("default", { concurrency: 1, isolated: true }, async (_, jobId) => {
    seenAlone.push(jobId);
  });

  await eventually("the delayed job", () => seen.includes(stepJobId(late.job)));
  expect(seen).toEqual([...idsOf(jobs).toReversed(), stepJobId(late.job)]);
  expect(seenAlone).toEqual(idsOf([alone]));
});

test("all jobs that no worker has taken are seen in time, some of them at a time", async () => {
  const queue = await open("pending");
  const [late, ...jobs] = steps(25);
  if (!late) throw new Error("no jobs");
  await queue.addSteps([...jobs, { ...late, delayMs: 60_000 }]);
  const expected = idsOf([late, ...jobs]).toSorted();

  const seen = new Set<string>();
  await eventually("all of them", async () => {
    const page = await queue.somePending("default", 10);
    expect(page.length).toBeLessThanOrEqual(11);
    for (const {
      jobId,
      steps: [job],
    } of page) {
      seen.add(job !== undefined && stepJobId(job) === jobId ? jobId : "another");
    }
    return seen.size >= expected.length;
  });

  expect([...seen].toSorted()).toEqual(expected);
  expect(await queue.someQueues()).toEqual(["default"]);
  await queue.tryWrite();
});

test("a paused consumer takes nothing, resumes, and closes", async () => {
  const queue = await open("pause");
  const instanceId = "0198c0de-0000-7000-8000-000000000001";
  const seen: string[] = [];
  const consumer = queue.consumeAdvance({ concurrency: 2 }, async (_, jobId) => {
    seen.push(jobId);
  });
  const add = (cause: string) =>
    queue.addAdvance([{ job: { tenantId: "t", instanceId, cause }, priority: 0 }]);
  await add("one");
  await eventually("the first", () => seen.length === 1);

  await consumer.pause();
  await add("two");
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(seen).toEqual([`${instanceId}.one`]);

  consumer.resume();
  await eventually("the second", () => seen.length === 2);
  await consumer.close();
});

test("the epoch is kept with the jobs, apart for each prefix", async () => {
  const [one, other] = await Promise.all([open("epoch-1"), open("epoch-2")]);
  expect(await one.readEpoch()).toBeUndefined();
  await one.writeEpoch("e1");
  expect(await one.readEpoch()).toBe("e1");
  expect(await other.readEpoch()).toBeUndefined();
});

test("a wake reaches another process, and the LISTEN is renewed when it is lost", async () => {
  const [here, there, elsewhere] = await Promise.all([open("wake"), open("wake"), open("apart")]);
  const heard: object[] = [];
  there.wake.subscribe("instance.7", (message) => heard.push(message));
  elsewhere.wake.subscribe("instance.7", (message) => heard.push({ ...message, isWrong: true }));
  await eventually("the LISTEN", () => heard.length > 0);

  here.wake.publish("instance.7", { v: 1 });
  await eventually("the wake", () => heard.some((message) => "v" in message));
  expect(heard).not.toContainEqual({ v: 1, isWrong: true });

  await terminateAll(database.url);
  await eventually("a later wake", () => {
    here.wake.publish("instance.7", { v: 2 });
    return heard.some((message) => "v" in message && message.v === 2);
  });
});

test("consuming goes on after every connection was terminated", async () => {
  const queue = await open("terminated");
  const seen: string[] = [];
  queue.consumeSteps("default", { concurrency: 5 }, async (_, jobId) => {
    seen.push(jobId);
  });
  await queue.addSteps(steps(1));
  await eventually("the first", () => seen.length === 1);

  await terminateAll(database.url);

  await eventually("an answer", () => queue.tryWrite().then(() => true));
  await eventually("adding", () => queue.addSteps(steps(1)).then(() => true));
  await eventually("a later job", () => seen.length >= 2);
  expect(new Set(seen).size).toBe(seen.length);
});

test("without a Postgres it does not open", async () => {
  const postgresUrl = `postgres://user:hunter2@127.0.0.1:${await freePort()}/none`;
  const error = await openQueue({ postgresUrl, log }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(QueueUnavailableError);
  expect(String(error)).not.toContain("hunter2");
});

async function open(prefix: string): Promise<Queue> {
  const queue = await openQueue({
    postgresUrl: database.url,
    prefix,
    commandTimeoutMs: 5_000,
    log,
  });
  opened.push(queue);
  return queue;
}

async function terminateAll(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity" +
      " where datname = current_database() and pid <> pg_backend_pid()",
  );
  await client.end();
}

/** A program that takes a job and never ends it. */
function holding(prefix: string): string {
  const options = JSON.stringify({ postgresUrl: database.url, prefix });
  return `
    import { openQueue } from "@millrace/queue";
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const queue = await openQueue({ ...${options}, log: silent });
    queue.consumeSteps("default", { concurrency: 1 }, () => {
      console.log("taken");
      return new Promise(() => {});
    });`;
}
