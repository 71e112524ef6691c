import { setTimeout as sleep } from "node:timers/promises";
import { QueueUnavailableError } from "@millrace/queue";
import { eventually } from "@millrace/testkit";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { idsOf, steps } from "./jobs.ts";
import { known, lines, messages, open, server, serverPid, succeeds, useOwnRedis } from "./redis.ts";

useOwnRedis();

test("consuming goes on after Redis was killed and came back empty", async () => {
  const queue = await open();
  const seen = new Set<string>();
  queue.consumeSteps("default", { concurrency: 10 }, async (_, jobId) => {
    await sleep(20);
    seen.add(jobId);
  });
  await queue.addSteps(steps(200));
  await eventually("some jobs", () => seen.size > 20);

  await server.stop("kill");
  await sleep(1_000);
  await server.start();

  await eventually("the connection", () => succeeds(queue.tryWrite()));
  const after = steps(100);
  await queue.addSteps(after);
  await eventually("the new jobs", () => idsOf(after).every((id) => seen.has(id)));
  expect(messages()).toContain("lost Redis");
  expect(messages()).toContain("reached Redis again");
  expect(lines.length).toBeLessThan(20);
});

test("consuming goes on after every connection was killed again and again", async () => {
  const queue = await open();
  const seen = new Set<string>();
  queue.consumeSteps("default", { concurrency: 10 }, async (_, jobId) => {
    seen.add(jobId);
  });
  const killer = new Redis(server.url);
  const all = [];
  for (let round = 0; round < 5; round += 1) {
    const jobs = steps(20);
    all.push(...jobs);
    const kill = killer.call("client", "kill", "skipme", "yes", "type", "normal");
    // A dropped connection is ridden out: the publisher need not try again.
    await Promise.all([kill, queue.addSteps(jobs)]);
    await sleep(150);
  }
  await eventually("all jobs", () => seen.size >= all.length);
  expect([...seen].toSorted()).toEqual(idsOf(all).toSorted());
  killer.disconnect();
});

test("with a cut of every connection each second consumers get on in between", async () => {
  const queue = await open();
  let seen = 0;
  await queue.addSteps(steps(3_000));
  queue.consumeSteps("default", { concurrency: 10 }, async () => {
    await sleep(10);
    seen += 1;
  });
  const killer = new Redis(server.url);
  await eventually("the first", () => seen > 0);

  const progress: number[] = [];
  for (let second = 0; second < 3; second += 1) {
    await killer.call("client", "kill", "skipme", "yes", "type", "normal");
    const before = seen;
    await sleep(1_000);
    progress.push(seen - before);
  }
  killer.disconnect();

  expect(progress.filter((taken) => taken > 50)).toHaveLength(3);
});

test("openQueue returns while Redis is away, publishers fail fast, and all works once it is there", async () => {
  await server.stop("kill");
  const start = performance.now();
  const queue = await open();
  const seen: string[] = [];
  const woken: object[] = [];
  queue.consumeSteps("default", { concurrency: 2 }, async (_, jobId) => {
    seen.push(jobId);
  });
  queue.wake.subscribe("instance", (message) => woken.push(message));
  expect(performance.now() - start).toBeLessThan(1_500);

  for (let time = 0; time < 20; time += 1) {
    const before = performance.now();
    await expect(queue.addSteps(steps(100))).rejects.toThrow(QueueUnavailableError);
    expect(performance.now() - before).toBeLessThan(200);
  }
  await expect(queue.tryWrite()).rejects.toThrow(QueueUnavailableError);
  await expect(queue.readEpoch()).rejects.toThrow(QueueUnavailableError);
  await expect(queue.depths(["default"])).rejects.toThrow(QueueUnavailableError);
  await queue.removeStep("default", "x");
  queue.wake.publish("instance", { id: 1 });
  expect(lines.length).toBeLessThan(6);

  await server.start();

  await eventually("the connection", () => succeeds(queue.tryWrite()));
  const jobs = steps(3);
  await queue.addSteps(jobs);
  await eventually("the jobs", () => seen.length === 3);
  expect(seen.toSorted()).toEqual(idsOf(jobs).toSorted());
  await eventually("a wake", () => {
    queue.wake.publish("instance", { id: 2 });
    return woken.some((message) => "id" in message && message.id === 2);
  });
});

test("against a Redis that hangs, publishers are told in time and the connection recovers", async () => {
  const queue = await open({ commandTimeoutMs: 300 });
  await queue.addSteps(steps(1));
  process.kill(serverPid(), "SIGSTOP");
  try {
    const start = performance.now();
    await expect(queue.addSteps(steps(1))).rejects.toThrow("within 300 ms");
    expect(performance.now() - start).toBeLessThan(600);

    // While that one is unanswered nothing else is even tried.
    const next = performance.now();
    await expect(queue.addSteps(steps(1))).rejects.toThrow("does not answer");
    expect(performance.now() - next).toBeLessThan(100);
  } finally {
    process.kill(serverPid(), "SIGCONT");
  }
  await eventually("an answer", () => succeeds(queue.addSteps(steps(1))));
});

test("answers that came while the event loop was blocked are not taken for late", async () => {
  const queue = await open({ commandTimeoutMs: 250 });
  const added = queue.addSteps(steps(1));
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));

  const until = performance.now() + 700;
  while (performance.now() < until);

  await expect(added).resolves.toBeUndefined();
});

test("a queue closes although Redis is away", async () => {
  const queue = await open();
  queue.consumeSteps("default", { concurrency: 2 }, async () => {});
  queue.wake.subscribe("instance", () => {});
  await queue.addSteps(steps(1));
  await server.stop("kill");
  try {
    const start = performance.now();
    await queue.close();
    expect(performance.now() - start).toBeLessThan(3_000);
  } finally {
    await server.start();
  }
});

test("a full Redis refuses jobs without a storm of attempts or lines", async () => {
  const queue = await open();
  queue.consumeSteps("default", { concurrency: 5 }, async () => sleep(5));
  await queue.addSteps(steps(50));
  const client = new Redis(server.url);
  await client.config("SET", "maxmemory", "1");
  try {
    await expect(queue.addSteps(steps(5))).rejects.toThrow(QueueUnavailableError);
    await expect(queue.tryWrite()).rejects.toThrow(/OOM/);
    const calls = async () =>
      Number(/total_commands_processed:(\d+)/.exec(await client.info("stats"))?.[1]);
    // What was under way comes to rest first.
    await sleep(500);
    const [before, began] = [await calls(), performance.now()];
    await sleep(1_000);
    const perSecond = ((await calls()) - before) / ((performance.now() - began) / 1_000);
    // About 250 with a pause after each failure, about 1,900 without.
    expect(perSecond).toBeLessThan(1_000);
    expect(lines.length).toBeLessThan(10);
  } finally {
    await client.config("SET", "maxmemory", "0");
    client.disconnect();
  }
  const jobs = steps(5);
  await queue.addSteps(jobs);
  await eventually("the jobs", async () => (await known(queue, jobs)).size === 0);
});

test("the epoch is gone when the data are", async () => {
  const queue = await open();
  expect(await queue.readEpoch()).toBeUndefined();
  await queue.writeEpoch("e1");
  expect(await queue.readEpoch()).toBe("e1");

  const client = new Redis(server.url);
  await client.flushall();
  client.disconnect();

  expect(await queue.readEpoch()).toBeUndefined();
});
