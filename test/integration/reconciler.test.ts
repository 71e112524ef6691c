import { setTimeout as sleep } from "node:timers/promises";
import { openRedis } from "@millrace/devstack";
import { stepJobId, type StepJob } from "@millrace/queue";
import {
  cancelInstance,
  closeServices,
  createSchedule,
  discardDeadLetter,
  openServices,
  registerDefinition,
  runScheduler,
  startInstance,
  startInstances,
  whyInstance,
  type Services,
} from "@millrace/runtime";
import {
  createDatabase,
  createKeyPrefix,
  createTemporaryFolder,
  eventually,
  type TestDatabase,
  type TestRedis,
} from "@millrace/testkit";
import { Redis } from "ioredis";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { openRelay } from "../support/relay.ts";

// What a crash or a lost message leaves undone, found by a scheduler that runs in this process.

const caller = { tenantId: "default", actor: "test" };
let database: TestDatabase;
let redis: TestRedis;
let services: Services;
let stopScheduler: (() => Promise<void>) | undefined;

beforeEach(async () => {
  [database, redis] = await Promise.all([createDatabase(), createKeyPrefix()]);
  services = await open(redis.url);
});
afterEach(async () => {
  await stopScheduler?.();
  stopScheduler = undefined;
  await closeServices(services);
  await redis.flush();
  await database.drop();
});

test("after hours of downtime the timers of those hours fire in order, a bounded number a second, and fresh ones in between", async () => {
  const { db } = services.database;
  await registerDefinition(services, caller, {
    id: "sleeper",
    steps: [{ stepId: "sleep", type: "DELAY", duration: "${ input.duration }" }],
  });
  const overdue = 1_500;
  const requests = Array.from({ length: overdue }, () => ({
    workflowId: "sleeper",
    correlationId: "overdue",
    input: { duration: "P1D" },
  }));
  await startInstances(services, caller, requests);
  await sql`
    update timers t set due_at = x.due_at, look_at = x.due_at
    from (select instance_id, now() - interval '3 hours'
      + row_number() over (order by instance_id) * interval '1 s' as due_at from timers) x
    where x.instance_id = t.instance_id`.execute(db);

  stopScheduler = (await runScheduler(services)).close;
  const fresh = Array.from({ length: 20 }, () => ({
    workflowId: "sleeper",
    correlationId: "fresh",
    input: { duration: "PT0.1S" },
  }));
  await startInstances(services, caller, fresh);
  await eventually(
    "the fresh ones",
    async () => (await completed("fresh")).length === fresh.length,
  );
  const late = (await completed("overdue")).length;
  await eventually("the backlog", async () => (await completed("overdue")).length === overdue, {
    timeoutMs: 30_000,
  });

  expect(late).toBeLessThan(overdue);
  const all = await completed("overdue");
  const inOrderOfTime = all.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const moved = all.map((instance, index) => Math.abs(index - inOrderOfTime.indexOf(instance)));
  expect(Math.max(...moved)).toBeLessThan(200);
  expect(mostInASecond(all.map(({ completed_at }) => completed_at.getTime()))).toBeLessThan(700);
});

test("timers, retries and schedules out of a time of downtime let what is started meanwhile go first", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const overdue = await startInstance(services, caller, {
    workflowId: "task",
    startAt: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const retrying = await startInstance(services, caller, { workflowId: "task" });
  await services.queue.removeStep("default", stepJobId(jobOf(retrying.instance.snapshot.id)));
  await createSchedule(services, caller, "late", {
    type: "one-time",
    target: { type: "workflow", id: "task" },
    timing: { executeAt: new Date(Date.now() - 3_600_000).toISOString() },
  });
  const { db } = services.database;
  await sql`update timers set due_at = now() - interval '1 hour', look_at = now() - interval '1 hour'`.execute(
    db,
  );
  await sql`update step_executions set status = 'RETRYING', retry_at = now() - interval '1 hour',
    look_at = now() - interval '1 hour'`.execute(db);
  stopScheduler = (await runScheduler(services)).close;
  const client = new Redis(redis.url);
  onTestFinished(() => client.disconnect());
  const order = () => client.zrange(`${redis.prefix}:steps.default:prioritized`, "0", "-1");
  await eventually("their jobs", async () => (await order()).length === 3);

  const fresh = await startInstance(services, caller, { workflowId: "task" });

  const [first, ...others] = await order();
  expect(first).toBe(stepJobId(jobOf(fresh.instance.snapshot.id)));
  const [timer, retry] = [overdue, retrying].map(({ instance }) => jobOf(instance.snapshot.id));
  expect(others).toContain(stepJobId(timer as StepJob));
  expect(others).toContain(`${stepJobId(retry as StepJob)}.due`);
});

test("jobs whose step is gone, settled or further on are removed, and no others", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const start = async () =>
    (await startInstance(services, caller, { workflowId: "task" })).instance;
  const [live, settled, further, fresh] = [
    await start(),
    await start(),
    await start(),
    await start(),
  ];
  const { db } = services.database;
  await sql`insert into workers (id, host, pid, tasks, queues)
    values (gen_random_uuid(), 'here', 1, '{}', '{default}')`.execute(db);
  await sql`update step_executions set status = 'COMPLETED', look_at = null
    where instance_id in (${settled.snapshot.id}, ${fresh.snapshot.id})`.execute(db);
  await sql`update step_executions set fence = 1, look_at = now() + interval '1 hour'
    where instance_id = ${further.snapshot.id}`.execute(db);
  const gone = { ...jobOf(live.snapshot.id), path: "gone" };
  await services.queue.addSteps([{ job: gone, queue: "default", priority: 0, delayMs: 3_600_000 }]);
  const jobs = [
    jobOf(live.snapshot.id),
    jobOf(settled.snapshot.id),
    jobOf(further.snapshot.id),
    gone,
  ];
  await ageJobs(jobs);

  stopScheduler = (await runScheduler(services)).close;
  const left = [stepJobId(jobOf(live.snapshot.id)), stepJobId(jobOf(fresh.snapshot.id))];
  const known = () =>
    services.queue.known("default", [...jobs, jobOf(fresh.snapshot.id)].map(stepJobId));
  await eventually("their removal", async () => (await known()).size <= left.length);

  expect([...(await known())].toSorted()).toEqual(left.toSorted());
  expect(await metric("millrace_reconciler_found_total", "orphans")).toBe(3);
  await eventually(
    "the count",
    async () => (await metric("millrace_reconciler_repaired_total", "orphans")) === 3,
  );
});

test("jobs are removed from queues that no worker serves, too, and those that nobody here has written", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop", queue: "left" }],
  });
  const live = jobOf(await startTask(services));
  const gone = { ...live, path: "gone" };
  const foreign = { ...live, path: "foreign" };
  const damaged = { ...live, instanceId: "no-id" };
  const useless = [gone, foreign, damaged];
  await services.queue.addSteps(
    useless.map((job) => ({ job, queue: "left", priority: 0, delayMs: 3_600_000 })),
  );
  await ageJobs([live, ...useless], "left");
  const client = new Redis(redis.url);
  await client.hset(`${redis.prefix}:steps.left:${stepJobId(foreign)}`, "data", '{"other":1}');
  client.disconnect();

  stopScheduler = (await runScheduler(services)).close;
  const known = () => services.queue.known("left", [live, ...useless].map(stepJobId));
  await eventually("their removal", async () => (await known()).size <= 1);

  expect(await known()).toEqual(new Set([stepJobId(live)]));
});

test("what was found, made good, and how long the oldest waited is told by kind", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const { instance } = await startInstance(services, caller, { workflowId: "task" });
  await redis.flush();
  await sql`update step_executions set look_at = now() - interval '90 s'`.execute(
    services.database.db,
  );

  stopScheduler = (await runScheduler(services)).close;
  const jobId = stepJobId(jobOf(instance.snapshot.id));
  await eventually(
    "its job",
    async () => (await services.queue.known("default", [jobId])).size > 0,
  );

  expect(await metric("millrace_reconciler_found_total", "steps")).toBe(1);
  await eventually(
    "the end of the wait",
    async () => (await metric("millrace_reconciler_oldest_seconds", "steps")) === 0,
  );
});

test("a step whose worker died before it added the job is due once the death is known, not half a minute later", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  await sql`insert into workers (id, host, pid, tasks, queues, beat_at)
    values (gen_random_uuid(), 'here', 1, '{}', '{default}', now() - interval '3 s')`.execute(
    services.database.db,
  );
  const { instance } = await startInstance(services, caller, { workflowId: "task" });
  const jobId = stepJobId(jobOf(instance.snapshot.id));
  await services.queue.removeStep("default", jobId);

  stopScheduler = (await runScheduler(services)).close;
  const known = await eventually("its job", async () => {
    const found = await services.queue.known("default", [jobId]);
    return found.size > 0 ? found : undefined;
  });

  expect([...known]).toEqual([jobId]);
});

test("of what a dead worker held, what it had begun last goes where steps run alone", async () => {
  const { db } = services.database;
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const ids = [await startTask(services), await startTask(services), await startTask(services)];
  for (const [index, id] of ids.entries()) {
    await services.queue.removeStep("default", stepJobId(jobOf(id)));
    await sql`update step_executions set status = 'RUNNING', look_at = null, fence = 1,
      worker_id = '00000000-0000-7000-8000-000000000001',
      started_at = now() - interval '1 min' + ${index} * interval '1 s'
      where instance_id = ${id}`.execute(db);
  }

  stopScheduler = (await runScheduler(services)).close;
  const [depth] = await eventually("their jobs", async () => {
    const depths = await services.queue.depths(["default"]);
    return depths[0]?.isolated === 1 ? depths : undefined;
  });

  const { rows } = await sql`select instance_id, blocked from step_executions`.execute(db);
  expect(depth).toMatchObject({ isolated: 1 });
  for (const [index, id] of ids.entries()) {
    expect(rows).toContainEqual({ instance_id: id, blocked: index === 2 ? "isolated" : null });
  }
});

test("a retry that is due runs though its own job is put off for hours, by a host whose clock was wrong", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const { instance } = await startInstance(services, caller, { workflowId: "task" });
  const job = jobOf(instance.snapshot.id);
  await services.queue.removeStep("default", stepJobId(job));
  await services.queue.addSteps([{ job, queue: "default", priority: 0, delayMs: 3_600_000 }]);
  await sql`update step_executions set status = 'RETRYING', retry_at = now(), look_at = now()`.execute(
    services.database.db,
  );

  stopScheduler = (await runScheduler(services)).close;
  const depth = await eventually("a job that is to run now", async () => {
    const [each] = await services.queue.depths(["default"]);
    return each !== undefined && each.prioritized > 0 ? each : undefined;
  });

  expect(depth).toMatchObject({ prioritized: 1, delayed: 1 });
});

test("what was not added while Redis was away or full is due once it takes jobs, though the processes of that time are gone", async () => {
  const folder = await createTemporaryFolder();
  const server = await openRedis({ dataDir: folder.path });
  if (!server) throw new Error("the tests need a real Redis");
  onTestFinished(async () => {
    await server.stop("kill");
    await folder.remove();
  });
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const full = async (bytes: string) => {
    const client = new Redis(server.url);
    await client.config("SET", "maxmemory", bytes);
    client.disconnect();
  };
  const first = await open(server.url);
  await full("1");
  const ids = [await startTask(first)];
  await closeServices(first);
  await server.stop("kill");

  const second = await open(server.url);
  const scheduler = await runScheduler(second);
  ids.push(await startTask(second));
  await scheduler.close();
  await closeServices(second);
  const third = await open(server.url);
  stopScheduler = (await runScheduler(third)).close;
  ids.push(await startTask(third));
  await sleep(2_500);
  const { rows } = await sql<{ looks: number }>`select looks from step_executions`.execute(
    services.database.db,
  );
  await server.start();

  expect(rows.map(({ looks }) => looks)).toEqual([0, 0, 0]);
  const known = () =>
    third.queue.known(
      "default",
      ids.map((id) => stepJobId(jobOf(id))),
    );
  await eventually("their jobs", async () => (await known()).size === ids.length);
  await stopScheduler();
  stopScheduler = undefined;
  await closeServices(third);
}, 30_000);

test("a start whose answer was lost is carried on soon after, whether or not it is asked for again", async () => {
  await registerDefinition(services, caller, {
    id: "task",
    steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
  });
  const relay = await openRelay(database.url);
  const cut = await open(redis.url, relay.url);
  await startTask(cut);

  relay.cutAnswers();
  const lost = await startTask(cut).catch((error: unknown) => error);
  relay.mend();
  const killed = await startInstance(services, caller, { workflowId: "task" }, "key");
  await services.queue.removeStep("default", stepJobId(jobOf(killed.instance.snapshot.id)));
  const again = await startInstance(services, caller, { workflowId: "task" }, "key");
  stopScheduler = (await runScheduler(services)).close;

  expect(lost).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  expect(again.replayed).toBe(true);
  const { rows } = await sql<{ id: string }>`
    select id from workflow_instances order by created_at`.execute(services.database.db);
  expect(rows).toHaveLength(3);
  const jobs = rows.map(({ id }) => stepJobId(jobOf(id)));
  // Sooner than their rows are looked at.
  await eventually("the jobs of all", async () => {
    const known = await services.queue.known("default", jobs);
    return known.size === jobs.length;
  });
  await closeServices(cut);
  await relay.close();
});

test("what nobody can make good is tried less and less often, and keeps nobody from what can be", async () => {
  const { db } = services.database;
  const work = { stepId: "a", type: "TASK", taskId: "noop", timeout: "PT1M" };
  // Another process: what it has read of a definition it keeps.
  const starter = await open(redis.url);
  onTestFinished(() => closeServices(starter));
  for (const id of ["lost", "kept"]) {
    await registerDefinition(starter, caller, { id, steps: [work] });
  }
  const moreThanOneLook = 501;
  const lost = Array.from({ length: moreThanOneLook }, () => ({ workflowId: "lost" }));
  await startInstances(starter, caller, lost);
  const kept = (await startInstance(starter, caller, { workflowId: "kept" })).instance;
  const { rows } = await sql<{ id: string }>`
    insert into workers (id, host, pid, tasks, queues, beat_at)
    values (gen_random_uuid(), 'here', 1, '{}', '{}', now() + interval '1 hour')
    returning id`.execute(db);
  await sql`update step_executions set status = 'RUNNING', worker_id = ${rows[0]?.id}, look_at = null,
    due_clock = 'timeout', due_at = now() - case when instance_id = ${kept.snapshot.id}
      then interval '1 minute' else interval '1 hour' end`.execute(db);
  await sql`delete from workflow_definitions where id = 'lost'`.execute(db);
  await sql`insert into timers
      (tenant_id, instance_id, path, iteration, kind, attempt, due_at, look_at)
    select tenant_id, id, '', 0, 'timeout', 1, now() - interval '1 hour', now()
    from workflow_instances where workflow_id = 'lost' limit 1`.execute(db);

  stopScheduler = (await runScheduler(services)).close;
  await eventually("the end of the attempt", async () => {
    const { rows: steps } = await sql<{ status: string }>`select status from step_executions
      where instance_id = ${kept.snapshot.id}`.execute(db);
    return steps[0]?.status === "RETRYING";
  });
  await eventually("the timer of one that is lost, put off for long", async () => {
    const { rows: timers } = await sql`select 1 from timers
      where look_at between now() + interval '5 minutes' and now() + interval '10 minutes'`.execute(
      db,
    );
    return timers.length === 1;
  });

  // Counted once all that was found beside it has been tried.
  const repaired = await eventually(
    "the count",
    async () => (await metric("millrace_reconciler_repaired_total", "attempts")) || undefined,
  );
  expect(repaired).toBe(1);
});

test("a compensation whose definition is lost comes to a dead letter, and ends where that is discarded: what was not undone is told", async () => {
  const { db } = services.database;
  const say = { type: "EMIT_EVENT", eventPattern: "said", payload: 1 };
  const undo = { type: "TASK", taskId: "noop" };
  await registerDefinition(services, caller, {
    id: "undone",
    steps: [
      { ...say, stepId: "a", transitions: { default: "b" } },
      { ...say, stepId: "b", transitions: { default: "rest" } },
      { stepId: "rest", type: "DELAY", duration: "P1D" },
    ],
    compensationSteps: ["a", "b"].map((id) => ({
      ...undo,
      stepId: `undo-${id}`,
      compensationFor: id,
    })),
  });
  const { instance } = await startInstance(services, caller, { workflowId: "undone" });
  const { id } = instance.snapshot;
  await cancelInstance(services, caller, id, {});
  await sql`update workflow_instances set workflow_version = 99`.execute(db);
  await sql`update step_executions set status = 'RUNNING', lapses = 4, look_at = null,
    worker_id = gen_random_uuid() where compensates is not null`.execute(db);

  stopScheduler = (await runScheduler(services)).close;
  const letter = await eventually("the dead letter", async () => {
    const { rows } = await sql<{ id: string }>`select id::text from dead_letters`.execute(db);
    return rows[0]?.id;
  });
  const { reasons } = await whyInstance(services, caller, id);
  await discardDeadLetter(services, caller, letter, { reason: "gone" });

  const { rows } = await sql<{ status: string; compensation: string; is_over: boolean }>`
    select status, compensation::text as compensation, completed_at is not null as is_over
    from workflow_instances`.execute(db);
  expect(reasons).toMatchObject([{ kind: "DEAD_LETTER", stepId: "undo-b" }]);
  expect(rows).toMatchObject([{ status: "CANCELLED", is_over: true }]);
  expect(JSON.parse(rows[0]?.compensation ?? "")).toMatchObject({
    status: "COMPLETED_WITH_ERRORS",
    completed: [],
    failed: [
      { stepId: "undo-b", error: { kind: "POISONED" } },
      { stepId: "undo-a", error: { kind: "DEFINITION", type: "DEFINITION_MISSING" } },
    ],
  });
});

async function startTask(using: Services): Promise<string> {
  return (await startInstance(using, caller, { workflowId: "task" })).instance.snapshot.id;
}

function open(redisUrl: string, databaseUrl = database.url): Promise<Services> {
  return openServices({
    name: "test",
    databaseUrl,
    redisUrl,
    queueBackend: "redis",
    keyPrefix: redis.prefix,
    poolSize: 10,
    logLevel: "silent",
  });
}

function jobOf(instanceId: string): StepJob {
  const place = { path: "a", iteration: 1, attempt: 1, fence: 0, taskId: "noop" };
  return { tenantId: "default", instanceId, ...place };
}

/** As if they had been added a minute ago. */
async function ageJobs(jobs: readonly StepJob[], queue = "default"): Promise<void> {
  const client = new Redis(redis.url);
  for (const job of jobs) {
    const key = `${redis.prefix}:steps.${queue}:${stepJobId(job)}`;
    await client.hset(key, "timestamp", Date.now() - 60_000);
  }
  client.disconnect();
}

/** In the order in which they ended. */
async function completed(correlationId: string) {
  const { rows } = await sql<{ id: string; completed_at: Date }>`
    select id, completed_at from workflow_instances
    where correlation_id = ${correlationId} and status = 'COMPLETED'
    order by completed_at`.execute(services.database.db);
  return rows;
}

function mostInASecond(times: readonly number[]): number {
  const from = times.map((start) => times.filter((t) => t >= start && t < start + 1_000).length);
  return Math.max(...from);
}

async function metric(name: string, kind: string): Promise<number | undefined> {
  const line = (await services.metrics.text())
    .split("\n")
    .find((each) => each.startsWith(`${name}{kind="${kind}"}`));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}
