import { setTimeout as sleep } from "node:timers/promises";
import { advanceQueue, QueueUnavailableError, stepJobId } from "@millrace/queue";
import { eventually } from "@millrace/testkit";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { idsOf, steps } from "./jobs.ts";
import {
  depth,
  known,
  lines,
  messages,
  newPrefix,
  occupied,
  open,
  server,
  useOwnRedis,
} from "./redis.ts";

useOwnRedis();

test("jobs come out with what was put in, once each", async () => {
  const queue = await open();
  const seen: string[] = [];
  const jobs = steps(300);
  queue.consumeSteps("default", { concurrency: 20 }, async (job, jobId) => {
    expect(stepJobId(job)).toBe(jobId);
    seen.push(jobId);
  });

  await queue.addSteps(jobs);

  await eventually("all jobs", () => seen.length >= jobs.length);
  expect(seen.toSorted()).toEqual(idsOf(jobs).toSorted());
});

test("jobs of the same turn travel together, and none is left behind", async () => {
  const queue = await open();
  const client = new Redis(server.url);
  const scripts = async () => {
    const found = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info("commandstats"));
    return Number(found?.[1] ?? 0);
  };
  await queue.addSteps(steps(1));
  const before = await scripts();

  const jobs = steps(50);
  await Promise.all(jobs.map((job) => queue.addSteps([job])));

  expect((await scripts()) - before).toBeLessThanOrEqual(50);
  expect(await depth(queue)).toMatchObject({ prioritized: 51 });
  client.disconnect();
});

test("a job that is still kept is not added a second time; when it has ended it is", async () => {
  const queue = await open();
  const jobs = steps(1);
  await queue.addSteps([...jobs, ...jobs]);
  await queue.addSteps(jobs);
  expect(await depth(queue)).toMatchObject({ prioritized: 1 });

  let runs = 0;
  queue.consumeSteps("default", { concurrency: 5 }, async () => {
    runs += 1;
  });
  await eventually("the job to be gone", async () => (await known(queue, jobs)).size === 0);
  await queue.addSteps(jobs);

  await eventually("the second run", () => runs === 2);
});

test("a delayed job does not come early, and a removed one not at all", async () => {
  const queue = await open();
  const [late, removed] = steps(2, { delayMs: 300 });
  const at = new Map<string, number>();
  queue.consumeSteps("default", { concurrency: 5 }, async (_, jobId) => {
    at.set(jobId, performance.now());
  });
  const start = performance.now();
  await queue.addSteps([late, removed]);
  expect(await depth(queue)).toMatchObject({ delayed: 2 });

  await queue.removeStep("default", stepJobId(removed.job));

  await eventually("the delayed job", () => at.has(stepJobId(late.job)));
  expect(at.get(stepJobId(late.job))).toBeGreaterThanOrEqual(start + 299);
  await sleep(200);
  expect(at.size).toBe(1);
});

test("the higher priority runs first, and among equals the older", async () => {
  const queue = await open();
  const priorities = [0, -1_000, 5, 1_000, 5, 0];
  const jobs = steps(priorities.length).map((job, index) => ({
    ...job,
    priority: priorities[index] ?? 0,
  }));
  await queue.addSteps(jobs);

  const seen: string[] = [];
  queue.consumeSteps("default", { concurrency: 1 }, async (_, jobId) => {
    seen.push(jobId);
  });

  await eventually("all jobs", () => seen.length === jobs.length);
  expect(seen).toEqual([3, 2, 4, 0, 5, 1].map((index) => idsOf(jobs)[index]));
});

test("known tells the jobs that wait, are delayed or run from those that do not exist", async () => {
  const queue = await open();
  const [waiting, delayed, missing] = [steps(700), steps(1, { delayMs: 60_000 }), steps(700)];
  await queue.addSteps([...waiting, ...delayed]);
  const there = [...waiting, ...delayed];

  expect(await known(queue, [...there, ...missing])).toEqual(new Set(idsOf(there)));
  expect(await known(queue, [])).toEqual(new Set());
});

test("advance jobs have a queue of their own", async () => {
  const queue = await open();
  const instanceId = "0198c0de-0000-7000-8000-000000000001";
  const job = { tenantId: "default", instanceId, cause: "wait.7" };
  await queue.addAdvance([
    { job, priority: 0 },
    { job, priority: 0 },
  ]);
  expect(await queue.depths([advanceQueue, "default"])).toMatchObject([
    { queue: advanceQueue, prioritized: 1 },
    { queue: "default", prioritized: 0 },
  ]);

  const seen: object[] = [];
  queue.consumeAdvance({ concurrency: 1 }, async (...received) => {
    seen.push(received);
  });

  await eventually("the job", () => seen.length === 1);
  expect(seen).toEqual([[job, `${instanceId}.wait.7`]]);
});

test("steps that are to run alone go to those who take such steps, each as a job of its own", async () => {
  const queue = await open({ bundleSize: 25 });
  const isolated = steps(6, { isolated: true });
  await queue.addSteps([...steps(2), ...isolated]);
  expect(await depth(queue)).toMatchObject({ prioritized: 2, isolated: 6 });
  expect(await known(queue, isolated)).toEqual(new Set(idsOf(isolated)));
  const pending = await queue.somePending("default", 10);
  expect(pending.flatMap(({ steps: carried }) => carried.map(stepJobId))).toEqual(
    expect.arrayContaining(idsOf(isolated)),
  );

  const seen: string[] = [];
  const [removed = "", ...left] = idsOf(isolated);
  await queue.removeStep("default", removed);
  queue.consumeSteps("default", { concurrency: 1, isolated: true }, async (_, jobId) => {
    seen.push(jobId);
  });

  await eventually("those", async () => (await depth(queue))?.isolated === 0);
  expect(seen.toSorted()).toEqual(left.toSorted());
  expect(await depth(queue)).toMatchObject({ prioritized: 2 });
});

test("jobs of a turn travel as bundles, and each is handled once and never too many at once", async () => {
  const queue = await open({ bundleSize: 25 });
  const jobs = steps(500);
  await queue.addSteps(jobs);
  expect(await depth(queue)).toMatchObject({ prioritized: 20 });

  const seen: string[] = [];
  let [running, most] = [0, 0];
  queue.consumeSteps("default", { concurrency: 40 }, async (job) => {
    running += 1;
    most = Math.max(most, running);
    await sleep(2);
    const end = async () => {
      await sleep(5);
      running -= 1;
      seen.push(stepJobId(job));
    };
    return { ended: end() };
  });

  await eventually("all jobs", () => seen.length >= jobs.length);
  expect(seen.toSorted()).toEqual(idsOf(jobs).toSorted());
  expect(most).toBeLessThanOrEqual(40);
  expect(most).toBeGreaterThan(20);
  await eventually("their end", async () => (await depth(queue))?.active === 0);
});

test("a job has ended once its steps are held, and the next comes when one has ended", async () => {
  const queue = await open({ bundleSize: 25 });
  const releases: (() => void)[] = [];
  const consumer = queue.consumeSteps("default", { concurrency: 2 }, async () => ({
    ended: new Promise<void>((resolve) => void releases.push(resolve)),
  }));
  const jobs = steps(3, { priority: 5 });
  for (const job of jobs) await queue.addSteps([job]);

  await eventually("two of them", () => releases.length === 2);
  await sleep(50);
  expect(consumer.active).toBe(2);
  expect(releases).toHaveLength(2);

  releases[0]?.();
  await eventually("the third", () => releases.length === 3);
  expect(consumer.active).toBe(2);
  for (const release of releases) release();
  await eventually("their end", async () => (await known(queue, jobs)).size === 0);
});

test("members of a bundle that find no slot go to another worker", async () => {
  const prefix = newPrefix();
  const [busy, free] = [
    await open({ prefix, bundleSize: 25 }),
    await open({ prefix, bundleSize: 25 }),
  ];
  const jobs = steps(40);
  const seen: string[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  busy.consumeSteps("default", { concurrency: 1 }, async (job) => {
    seen.push(stepJobId(job));
    return { ended: held };
  });
  await busy.addSteps(jobs);
  await eventually("one", () => seen.length === 1);

  free.consumeSteps("default", { concurrency: 10 }, async (job) => {
    seen.push(stepJobId(job));
  });

  await eventually("all", () => seen.length === jobs.length);
  expect(seen.toSorted()).toEqual(idsOf(jobs).toSorted());
  release();
});

test("a paused consumer takes nothing new while its handlers go on, then resumes", async () => {
  const queue = await open();
  const { jobs: held, release, consumer } = await occupied(queue);

  await consumer.pause();
  const jobs = steps(5);
  await queue.addSteps(jobs);
  await sleep(200);
  expect(consumer.active).toBe(1);
  expect(await depth(queue)).toMatchObject({ active: 1, prioritized: 5 });

  release();
  await eventually("the running one", async () => (await known(queue, held)).size === 0);
  expect(await depth(queue)).toMatchObject({ active: 0, prioritized: 5 });

  consumer.resume();
  await eventually("the others", async () => (await known(queue, jobs)).size === 0);
});

test("a consumer that is paused and resumed at rest takes new jobs at once", async () => {
  const queue = await open();
  let runs = 0;
  const consumer = queue.consumeSteps("default", { concurrency: 2 }, async () => {
    runs += 1;
  });
  await sleep(100);

  for (let round = 1; round <= 3; round += 1) {
    await consumer.pause();
    consumer.resume();
    await queue.addSteps(steps(1));
    await eventually("the job", () => runs >= round, { timeoutMs: 2_000 });
    expect(runs).toBe(round);
  }
});

test("close waits for the handlers; a forced one does not", async () => {
  const queue = await open();
  const waiting = await occupied(queue);
  let isClosed = false;
  const closed = waiting.consumer.close().then(() => {
    isClosed = true;
    return isClosed;
  });
  await sleep(100);
  expect(isClosed).toBe(false);
  waiting.release();
  await closed;
  expect(await known(queue, waiting.jobs)).toEqual(new Set());

  const forced = await occupied(queue);
  await forced.consumer.close(true);
  expect(forced.consumer.active).toBe(1);
  forced.release();
});

test("a handler that throws ends its job and harms nobody", async () => {
  const queue = await open();
  let runs = 0;
  queue.consumeSteps("default", { concurrency: 2 }, async () => {
    runs += 1;
    throw new Error("no luck");
  });
  const jobs = steps(20);
  await queue.addSteps(jobs);

  await eventually("all jobs", async () => (await known(queue, jobs)).size === 0);
  expect(runs).toBe(20);
  expect(lines.filter(({ message }) => message === "a job's handler threw")).toHaveLength(1);
});

test("job data that this program has not written is dropped", async () => {
  const prefix = newPrefix();
  const queue = await open({ prefix });
  const [first] = steps(1);
  await queue.addSteps([first]);
  const client = new Redis(server.url);
  const key = `${prefix}:steps.default:${stepJobId(first.job)}`;
  await client.hset(key, "data", '{"instanceId":7}');
  client.disconnect();

  let runs = 0;
  queue.consumeSteps("default", { concurrency: 1 }, async () => {
    runs += 1;
  });

  await eventually("it to be gone", async () => (await known(queue, [first])).size === 0);
  expect(runs).toBe(0);
});

test("a wake reaches the subscribers of its channel in every process, and those alone", async () => {
  const prefix = newPrefix();
  const [here, there, elsewhere] = [await open({ prefix }), await open({ prefix }), await open()];
  const heard: string[] = [];
  const stop = here.wake.subscribe("instance.7", (message) =>
    heard.push(`here ${JSON.stringify(message)}`),
  );
  there.wake.subscribe("instance.7", () => {
    throw new Error("a bad listener");
  });
  there.wake.subscribe("instance.7", (message) => heard.push(`there ${JSON.stringify(message)}`));
  there.wake.subscribe("instance.8", () => heard.push("wrong instance"));
  elsewhere.wake.subscribe("instance.7", () => heard.push("wrong prefix"));
  await sleep(200);

  here.wake.publish("instance.7", { v: 1 });

  await eventually("both", () => heard.length >= 2);
  stop();
  await sleep(100);
  there.wake.publish("instance.7", { v: 2 });
  await eventually("the one that is left", () => heard.length >= 3);
  expect(heard.toSorted()).toEqual(['here {"v":1}', 'there {"v":1}', 'there {"v":2}']);
});

test("after a gap a subscriber is told to look at everything", async () => {
  const queue = await open();
  const heard: object[] = [];
  queue.wake.subscribe("timer", (message) => heard.push(message));
  await sleep(200);

  await server.restart("kill");

  await eventually("the call", () => heard.length > 0);
  expect(heard).toEqual([{}]);
});

test("a Redis that may evict is warned about, and no line shows its password", async () => {
  const client = new Redis(server.url);
  await client.config("SET", "maxmemory-policy", "allkeys-lru");
  await open();
  await eventually("the warning", () => messages().some((text) => text.includes("noeviction")));
  await client.config("SET", "maxmemory-policy", "noeviction");
  client.disconnect();

  const { password } = new URL(server.url);
  expect(password).not.toBe("");
  expect(JSON.stringify(lines)).not.toContain(password);
});

test("a wrong password is reported without showing it, and blocks nobody", async () => {
  const url = new URL(server.url);
  url.password = "hunter2";
  const queue = await open({ redisUrl: url.href });
  queue.consumeSteps("default", { concurrency: 1 }, async () => {});

  await expect(queue.addSteps(steps(1))).rejects.toThrow(QueueUnavailableError);
  await sleep(300);
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.length).toBeLessThan(10);
  expect(JSON.stringify(lines)).not.toContain("hunter2");
});
