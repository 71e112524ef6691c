import { CompiledQuery } from "kysely";
import {
  closeServices,
  openServices,
  runScheduler,
  runWorker,
  sampleInstallation,
} from "@millrace/runtime";
import type { RunningScheduler, RunningWorker, Services } from "@millrace/runtime";
import { grantSlots } from "@millrace/store";
import { createDatabase, createKeyPrefix, eventually } from "@millrace/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { occupation } from "../support/occupation.ts";
import { openTestApi } from "./api/support.ts";
import type { TestApi } from "./api/support.ts";

// Limits (CONTRACT 6, PROMISES P10): one API, and two schedulers and two workers with
// connections of their own, all in this process. The task says who is at it.

const tasks = [new URL("../support/tasks/occupy.mjs", import.meta.url).pathname];
const at = occupation();

let api: TestApi;
let database: Awaited<ReturnType<typeof createDatabase>>;
let redis: Awaited<ReturnType<typeof createKeyPrefix>>;
const others: Services[] = [];
const workers: RunningWorker[] = [];
let schedulers: RunningScheduler[] = [];

beforeAll(async () => {
  database = await createDatabase();
  redis = await createKeyPrefix();
  for (const name of ["one", "two"]) others.push(await openRuntime(name));
  api = await openTestApi({ databaseUrl: database.url, services: await openRuntime("api") });
  for (const services of others) {
    workers.push(
      await runWorker(services, { tasks, queues: ["default"], concurrency: 20, graceMs: 0 }),
    );
  }
  await startSchedulers();
});

afterAll(async () => {
  await stopSchedulers();
  for (const worker of workers) await worker.close();
  await api?.close();
  for (const services of others) await closeServices(services);
  await redis?.flush();
  await database?.drop();
});

beforeEach(() => {
  Object.assign(at, { most: 0, began: [], isHeld: false });
});

/** Whatever was held goes on, everything ends, and nothing of it is left under a limit. */
afterEach(async () => {
  at.isHeld = false;
  at.now.clear();
  for (const { id } of await instancesIn("CREATED,RUNNING,WAITING_FOR_EVENT,PAUSED")) {
    await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "the test is over" });
  }
  for (const { id } of (await limits()).filter(({ source }) => source === "SET")) {
    await api.call("DELETE", `/v1/limits/${encodeURIComponent(id)}`);
  }
  await hear();
  const left = await query("select * from limit_slots");
  if (left.length > 0) throw new Error(`left under a limit: ${JSON.stringify(left)}`);
});

const occupy = (stepId: string, next?: string) => ({
  stepId,
  type: "TASK",
  taskId: "occupy",
  retry: { maxAttempts: 1 },
  ...(next !== undefined && { transitions: { default: next } }),
});

const wait = { stepId: "wait", type: "EVENT_WAIT", eventPattern: "go.${ workflow.instance.id }" };

test("C74: with two schedulers and two workers a limit is reached and never exceeded, cancels and deaths of workers give slots back, and all come through", async () => {
  await register("crowd", {
    concurrency: { limit: 3 },
    steps: [
      occupy("first", "pause"),
      { stepId: "pause", type: "DELAY", duration: "PT0.02S", transitions: { default: "second" } },
      occupy("second"),
    ],
  });

  at.isHeld = true;
  const ids = await startMany("crowd", 24, { ms: 5 });
  await eventually("the limit to be reached", async () => at.now.size === 3);
  // One that is at work, and three that are queued.
  const cancelled = [...[...at.now].slice(0, 1), ...ids.filter((id) => !at.now.has(id)).slice(-3)];
  for (const id of cancelled) await verb(id, "cancel");
  await eventually("another one in its place", async () => new Set(at.began).size === 4);
  // As after kill -9: nothing is heard of them, and what they hold is run again.
  await query("update workers set beat_at = now() - interval '1 min'");
  await eventually("a run again", async () => at.began.length > new Set(at.began).size);
  expect(await query("select 1 from limit_slots where status <> 'WANTED'")).toHaveLength(3);
  at.isHeld = false;

  const isCancelled = (id: string) => cancelled.includes(id);
  await Promise.all(ids.map((id) => ended(id, isCancelled(id) ? "CANCELLED" : "COMPLETED")));
  expect(at.most).toBe(3);
  expect(await query("select 1 from limit_slots")).toEqual([]);
});

test("C76: what a tenant has queued under its limit keeps no start of another tenant waiting", async () => {
  await register("noisy", { concurrency: { limit: 1 }, steps: [occupy("a")] });
  at.isHeld = true;
  await startMany("noisy", 200, {});
  await eventually("the first to be at work", async () => at.now.size === 1);

  const other = await start("noisy", {}, { tenantId: "quiet" });
  await working(other);
  at.now.delete(other);
  await ended(other, "COMPLETED");

  expect(await query("select 1 from limit_slots where status = 'WANTED'")).toHaveLength(199);
});

test("one that waits lends its slot to those that are queued, and goes before them when it can run", async () => {
  await register("lender", {
    concurrency: { limit: 1 },
    steps: [occupy("a", "wait"), { ...wait, transitions: { default: "b" } }, occupy("b")],
  });
  const first = await start("lender");
  await status(first, "WAITING_FOR_EVENT");
  at.isHeld = true;
  const second = await start("lender");
  await working(second);
  const third = await start("lender");

  await publish(first);
  const reason = await limitOf(first);
  expect(reason).toMatchObject({ limitKey: "type:lender", limit: 1, taken: 1, position: 1 });
  expect(reason.message).toContain("at place 1 of 2");
  expect(await limitOf(third)).toMatchObject({ position: 2, queued: 2 });
  expect(await statusOf(first)).toBe("WAITING_FOR_EVENT");
  expect(await statusOf(third)).toBe("CREATED");

  at.now.delete(second);
  await working(first);
  at.now.delete(first);
  await ended(first, "COMPLETED");
  await working(third);
  expect(at.began).toEqual([first, second, first, third]);
  expect(at.most).toBe(1);
});

test("a pause, a cancel and a failure give their slots to others; a resume and a retry wait for one", async () => {
  await register("verbs", { concurrency: { limit: 1 }, steps: [occupy("a", "b"), occupy("b")] });
  at.isHeld = true;
  const [paused, cancelled, failing, last] = [
    await start("verbs"),
    await start("verbs"),
    await start("verbs", { failing: true }),
    await start("verbs"),
  ];
  await working(paused);

  await verb(paused, "pause");
  await working(cancelled);
  await verb(paused, "resume");
  expect(await limitOf(paused)).toMatchObject({ position: 1, queued: 3 });
  // It runs on, and what would follow is not begun.
  at.now.delete(paused);
  await eventually(
    "its first step",
    async () => (await get(paused)).state.steps.a.status === "COMPLETED",
  );
  expect((await get(paused)).state.steps.b).toBeUndefined();

  await verb(cancelled, "cancel");
  await working(paused);
  at.now.delete(paused);
  await working(failing);
  at.now.delete(failing);
  await ended(failing, "FAILED");
  await working(last);
  await verb(failing, "retry");
  expect(await limitOf(failing)).toMatchObject({ position: 1, queued: 1 });

  at.isHeld = false;
  at.now.delete(last);
  await ended(last, "COMPLETED");
  await eventually("it to fail again", async () => (await get(failing)).status === "FAILED");
  await ended(paused, "COMPLETED");
});

test("who is first is said by the queue, a patch moves along in it, a pause leaves it as it was, and a new version changes the limit", async () => {
  const steps = [occupy("a")];
  await register("urgent", { concurrency: { limit: 1 }, steps });
  at.isHeld = true;
  const blocker = await start("urgent");
  await working(blocker);
  const low = await start("urgent", {}, { priority: -5, deadline: "2030-01-01T00:00:00Z" });
  const normal = await start("urgent", {}, { deadline: "2031-01-01T00:00:00Z" });
  const high = await start("urgent", {}, { priority: 5 });
  expect(await placesOf(low, normal, high)).toEqual([3, 2, 1]);

  await patch(low, { priority: 10 });
  expect(await placesOf(low, normal, high)).toEqual([1, 3, 2]);

  await register("urgent", { concurrency: { limit: 1, queue: "FIFO" }, steps });
  expect(await placesOf(low, normal, high)).toEqual([1, 2, 3]);

  await verb(low, "pause");
  expect(await placesOf(normal, high)).toEqual([1, 2]);
  await verb(low, "resume");
  expect(await placesOf(low, normal, high)).toEqual([1, 2, 3]);

  await register("urgent", { concurrency: { limit: 1, queue: "DEADLINE" }, steps });
  await patch(high, { deadline: "2029-01-01T00:00:00Z" });
  expect(await placesOf(low, normal, high)).toEqual([2, 3, 1]);
  at.now.delete(blocker);
  await working(high);

  await register("urgent", { concurrency: { limit: 3, queue: "DEADLINE" }, steps });
  await working(low);
  await working(normal);
  expect(at.most).toBe(3);
});

test("one that is promoted goes before all others, whatever the order of the queue, and the history says who did it", async () => {
  await register("promotion", { concurrency: { limit: 1 }, steps: [occupy("a")] });
  at.isHeld = true;
  const blocker = await start("promotion");
  await working(blocker);
  const [high, low, last] = [
    await start("promotion", {}, { priority: 9 }),
    await start("promotion", {}, { priority: -9 }),
    await start("promotion"),
  ];

  const promote = (id: string, more: object = {}, headers: Record<string, string> = {}) =>
    api.call("POST", `/v1/instances/${id}/promote`, more, headers);
  const { version } = await get(low);
  const stale = await promote(low, {}, { "if-match": `"${version + 1}"` });
  const who = { requestedBy: "ada", reason: "it is late" };
  const promoted = await promote(low, who, { "if-match": `"${version}"` });
  expect([stale.status, promoted.status]).toEqual([412, 202]);
  expect(promoted.headers.get("etag")).toBe(`"${version + 1}"`);
  expect(await placesOf(high, low, last)).toEqual([2, 1, 3]);
  await promote(last);
  expect(await placesOf(high, low, last)).toEqual([3, 2, 1]);
  await verb(last, "pause");
  expect((await promote(last)).body).toMatchObject({ status: 409, code: "STATUS_CONFLICT" });
  await verb(last, "resume");
  expect(await placesOf(high, low, last)).toEqual([3, 2, 1]);
  expect((await promote(blocker)).status).toBe(409);

  at.now.delete(blocker);
  await working(last);
  const { body } = await api.call("GET", `/v1/instances/${low}/history`);
  expect(body.items).toContainEqual(
    expect.objectContaining({
      type: "workflow.promoted",
      actor: "ada",
      data: { reason: "it is late" },
    }),
  );
});

test("a limit that is set while instances run counts those, admits no other before there is room, and goes before that of the definition", async () => {
  await register("set", { steps: [occupy("a")] });
  at.isHeld = true;
  const [one, two] = await startMany("set", 2, {});
  await working(one ?? "");
  await working(two ?? "");

  const created = await put("type:set", { limit: 2, queue: "FIFO" });
  const third = await start("set");
  await eventually("those that run to be counted", async () => (await heldOf("type:set")) === 2);
  expect(await statusOf(third)).toBe("CREATED");
  expect(await limitOf(third)).toMatchObject({ limitKey: "type:set", limit: 2, taken: 2 });
  expect(created).toMatchObject({ status: 201, body: { version: 1, kind: "TYPE" } });
  expect(created.headers.get("etag")).toBe('"1"');

  // Its definition's, which is read where none is set.
  await register("set", { concurrency: { limit: 3 }, steps: [occupy("a")] });
  const fourth = await start("set");
  expect(await limit("type:set")).toMatchObject({
    source: "SET",
    limit: 2,
    usage: { held: 2, queued: 2 },
  });
  expect(await limits()).toContainEqual(expect.objectContaining({ id: "type:set", limit: 2 }));
  const stale = await put("type:set", { limit: 9 }, { "if-match": '"7"' });
  expect(stale.status).toBe(412);
  await put("type:set", { limit: 3 }, { "if-match": '"1"' });
  await working(third);
  expect(at.now.size).toBe(3);

  await put("type:set", { limit: 1 });
  at.now.delete(third);
  await ended(third, "COMPLETED");
  expect(await statusOf(fourth)).toBe("CREATED");
  await api.call("DELETE", "/v1/limits/type:set");
  await working(fourth);
  expect(await limit("type:set")).toMatchObject({ source: "DEFINITION", version: 0, limit: 3 });
  expect(at.most).toBe(3);
});

test("C74: under limits of all, of a tenant, of a user and of a workflow an instance has a slot of each or of none, none is exceeded, and none leaks", async () => {
  await register("many", {
    concurrency: { limit: 4 },
    steps: [
      occupy("first", "pause"),
      { stepId: "pause", type: "DELAY", duration: "PT0.02S", transitions: { default: "second" } },
      occupy("second"),
    ],
  });
  await register("free", { steps: [occupy("a")] });
  await put("global", { limit: 5 });
  await put("tenant", { limit: 4, queue: "FIFO" });
  await put("user:ada", { limit: 1 });

  at.isHeld = true;
  const users = ["ada", "ada", "ada", "ada", "bob", "bob", "bob"];
  const ids = await Promise.all(
    users.map((userId) => start("many", { ms: 5 }, { userId, priority: userId === "ada" ? 9 : 0 })),
  );
  await eventually("the tenant's limit to be reached", async () => at.now.size === 4);
  // That one user is held up holds up nobody else.
  expect(ids.slice(0, 4).filter((id) => at.now.has(id))).toHaveLength(1);
  expect(ids.slice(4).every((id) => at.now.has(id))).toBe(true);
  const waiting = ids.slice(0, 4).find((id) => !at.now.has(id)) ?? "";
  expect(await limitOf(waiting)).toMatchObject({ limitKey: "tenant", taken: 4, queued: 3 });

  const elsewhere = await Promise.all(
    [1, 2].map(() => start("free", {}, { tenantId: "another", userId: "ada" })),
  );
  await eventually("the global limit to be reached", async () => at.now.size === 5);
  const [queued = ""] = elsewhere.filter((id) => !at.now.has(id));
  expect(await limitOf(queued)).toMatchObject({ limitKey: "global", limit: 5, taken: 5 });
  expect(await query("select 1 from limit_slots where status <> 'WANTED'")).toHaveLength(5);
  const uses = (await limits()).map(({ id, usage }) => [id, usage.held]);
  expect(Object.fromEntries(uses)).toMatchObject({
    global: 5,
    tenant: 4,
    "type:many": 4,
    "user:ada": 1,
  });

  // As after kill -9: what it holds is run again, with the slot that it has.
  await query("update workers set beat_at = now() - interval '1 min'");
  await verb(waiting, "cancel");
  at.isHeld = false;
  at.now.clear();
  const all = [...ids, ...elsewhere].filter((id) => id !== waiting);
  await Promise.all(all.map((id) => ended(id, "COMPLETED")));
  expect(at.most).toBe(5);
  expect(await query("select 1 from limit_slots")).toEqual([]);
  const { body } = await api.call("GET", `/v1/instances/${ids[0]}/consistency`);
  expect(body).toMatchObject({ ok: true, skipped: [] });
});

test("one that waited when a limit was set needs a slot to go on, and is free again once it is deleted", async () => {
  await register("later", {
    steps: [{ ...wait, transitions: { default: "a" } }, occupy("a")],
  });
  const [first, second] = [
    await start("later", {}, { userId: "a b" }),
    await start("later", {}, { userId: "a b" }),
  ];
  await status(second, "WAITING_FOR_EVENT");
  at.isHeld = true;
  await put("user:a b", { limit: 1 });
  await api.call("POST", "/v1/events", { pattern: `go.${first}`, payload: {} });
  await working(first);
  await publish(second);
  expect(await limitOf(second)).toMatchObject({ limitKey: "user:a b", position: 1, taken: 1 });
  const { body: history } = await api.call("GET", `/v1/instances/${second}/history`);
  expect(history.items).toContainEqual(
    expect.objectContaining({ type: "workflow.limited", data: { limits: ["user:a%20b"] } }),
  );

  await api.call("DELETE", "/v1/limits/user:a%20b");
  await working(second);
});

test("who is first in line is admitted first, however many wait under limits of their own", async () => {
  await stopSchedulers();
  const { database: own, limits: known } = api.services;
  const sets = Array.from({ length: 205 }, (_, ix) => `tenant user:${1_000 + ix}`);
  await query(`insert into limit_slots (tenant_id, limit_key, instance_id, status, request, has_run,
      priority, wanted_at, promoted_at)
    select 'default', key, gen_random_uuid(), 'WANTED', 1, false, 0, now(),
      case when key = '${sets.at(-1)}' then now() else '-infinity' end
    from unnest(array['${sets.join("', '")}']) key`);
  const limitToGrant = { limit: 1, queue: "FIFO" } as const;
  await known.reload(own.db);

  const granted = await grantSlots(own.db, {
    tenantId: "default",
    sets: sets.map((limitSet) => ({ tenantId: "default", limitSet })),
    limitOf: () => limitToGrant,
    revision: known.revision,
  });

  expect(granted?.grants.map(({ limitKey }) => limitKey)).toEqual([sets.at(-1)]);
  await query("delete from limit_slots");
  await startSchedulers();
});

test("what runs when a limit is set is all counted before anybody is admitted under it, whatever becomes of some", async () => {
  await register("idle", { steps: [{ ...occupy("a"), queue: "nobody" }] });
  await register("next", { steps: [occupy("a")] });
  const [broken = ""] = await startMany("idle", 120, {});
  const bind = (version: number) =>
    query(`update workflow_instances set workflow_version = ${version},
      snapshot = jsonb_set(snapshot::jsonb, '{workflowVersion}', '${version}') where id = '${broken}'`);
  await bind(99);
  at.isHeld = true;

  await put("tenant", { limit: 110 });
  const next = await start("next");

  await eventually("them to be counted", async () => (await heldOf("tenant")) >= 119);
  await bind(1);
  expect(at.began).toEqual([]);
  expect(await limitOf(next)).toMatchObject({ limitKey: "tenant", position: 1 });
});

test("from the answer to a change of a limit on nobody is admitted by what was before", async () => {
  await register("strict", { steps: [occupy("a")] });
  await put("tenant", { limit: 0 });
  await start("strict");
  await stopSchedulers();
  const { database: own, limits: known } = api.services;
  const sets = [{ tenantId: "default", limitSet: "tenant" }];
  const limitToGrant = { limit: 5, queue: "FIFO" } as const;
  const scope = { tenantId: "default", sets, limitOf: () => limitToGrant };
  const { revision } = known;

  await put("tenant", { limit: 0, maxQueued: 9 });

  expect(await grantSlots(own.db, { ...scope, revision })).toBeUndefined();
  const now = await grantSlots(own.db, { ...scope, revision: known.revision });
  expect(now?.grants).toHaveLength(1);
  // And none goes through while slots are granted.
  let isChanged = false;
  let change: Promise<unknown> | undefined;
  await others[0]?.database.db.transaction().execute(async (trx) => {
    const share = "select pg_advisory_xact_lock_shared(hashtextextended('', 13))";
    await trx.executeQuery(CompiledQuery.raw(share));
    change = put("tenant", { limit: 1 }).then(() => (isChanged = true));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(isChanged).toBe(false);
  });
  await change;
  await startSchedulers();
});

test("a limit of a tenant is nobody else's, and the global one is no tenant's", async () => {
  await put("tenant", { limit: 0, maxQueued: 1 });
  await put("global", { limit: 5 });
  const other = { "millrace-tenant": "another" };
  const own = { "millrace-tenant": "default" };

  await put("user:ada", { limit: 7 }, other);
  const { body } = await api.call("GET", "/v1/limits", undefined, other);
  const answers = [
    await api.call("GET", "/v1/limits/tenant", undefined, other),
    await api.call("DELETE", "/v1/limits/tenant", undefined, other),
    await api.call("GET", "/v1/limits/global", undefined, other),
    await put("global", { limit: 1 }, other),
    await api.call("GET", "/v1/limits/user:ada", undefined, own),
    await api.call("DELETE", "/v1/limits/user:ada", undefined, other),
  ];

  expect(body.items.map(({ id }: { id: string }) => id)).toContain("user:ada");
  expect(body.items.map(({ id }: { id: string }) => id)).not.toContain("tenant");
  expect(body.items.map(({ id }: { id: string }) => id)).not.toContain("global");
  expect(answers.map(({ status: code }) => code)).toEqual([404, 404, 404, 404, 404, 204]);
  expect(await limit("tenant")).toMatchObject({ limit: 0, maxQueued: 1 });
  expect(await limit("global")).toMatchObject({ limit: 5 });

  // Nor do its own instances tell it of those of others.
  await put("global", { limit: 0 });
  await register("everybody", { steps: [occupy("a")] });
  await start("everybody");
  await api.call(
    "PUT",
    "/v1/definitions/everybody",
    { id: "everybody", steps: [occupy("a")] },
    other,
  );
  const held = await api.call("POST", "/v1/instances", { workflowId: "everybody" }, other);
  const { body: why } = await api.call(
    "GET",
    `/v1/instances/${held.body.id}/why`,
    undefined,
    other,
  );
  expect(why.reasons[0]).toMatchObject({ limitKey: "global", taken: 0, position: 1, queued: 1 });
  await api.call("POST", `/v1/instances/${held.body.id}/cancel`, {}, other);
  for (const { id } of await instancesIn("CREATED")) await verb(id, "cancel");
  await put("global", { limit: 5 });

  // The tenant's own bounds its starts, too.
  await register("bounded", { steps: [occupy("a")] });
  const queued = await start("bounded");
  const refused = await api.call("POST", "/v1/instances", { workflowId: "bounded" });
  expect(refused).toMatchObject({ status: 429, body: { code: "TOO_MANY_QUEUED" } });
  expect(refused.body.detail).toContain('limit "tenant"');
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await limitOf(queued)).toMatchObject({ limitKey: "tenant", limit: 0 });
});

test("beyond maxQueued a start is refused with 429, alone and among others, and never too early or too late", async () => {
  await register("short", { concurrency: { limit: 1, maxQueued: 2 }, steps: [occupy("a")] });
  at.isHeld = true;
  const body = { workflowId: "short" };
  const key = { "idempotency-key": "the first" };
  const first = await api.call("POST", "/v1/instances", body, key);

  const answers = await Promise.all(
    Array.from({ length: 10 }, () => api.call("POST", "/v1/instances", body)),
  );
  expect(answers.filter(({ status: code }) => code === 201)).toHaveLength(2);
  const refused = answers.find(({ status: code }) => code === 429);
  expect(refused?.body).toMatchObject({
    code: "TOO_MANY_QUEUED",
    title: "Too many instances are queued",
  });
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
  // One that is there already is not refused.
  expect((await api.call("POST", "/v1/instances", body, key)).status).toBe(200);

  await working(first.body.id);
  at.now.delete(first.body.id);
  await ended(first.body.id, "COMPLETED");
  await eventually("another one to be admitted", async () => at.now.size === 1);
  const { body: batch } = await api.call("POST", "/v1/instances:batch", [body, body]);
  expect(batch.results.map((result: { status: number }) => result.status).toSorted()).toEqual([
    201, 429,
  ]);
});

test("parents and children of one limit do not wait for each other", async () => {
  await register("family", {
    concurrency: { limit: 1 },
    inputSchema: {
      type: "object",
      properties: { depth: { type: "integer" } },
      required: ["depth"],
    },
    steps: [
      {
        stepId: "child",
        condition: "input.depth > 0",
        type: "SUB_WORKFLOW",
        workflowId: "family",
        input: { depth: "${ input.depth - 1 }" },
        transitions: { default: "work" },
      },
      occupy("work"),
    ],
  });

  const [one, two] = await Promise.all([
    start("family", { depth: 2 }),
    start("family", { depth: 1 }),
  ]);

  await ended(one, "COMPLETED");
  await ended(two, "COMPLETED");
  expect(at.most).toBe(1);
  expect(at.began).toHaveLength(5);
});

test("an admitter that dies before its commit has granted nothing, one that dies after it is made up for", async () => {
  await register("orphan", { concurrency: { limit: 1 }, steps: [occupy("a")] });
  await stopSchedulers();
  const id = await start("orphan");

  const grant = "update limit_slots set status = 'GRANTED', granted_at = now(), look_at = now()";
  const { db } = api.services.database;
  await expect(
    db.transaction().execute(async (trx) => {
      await trx.executeQuery(CompiledQuery.raw(grant));
      await trx.executeQuery(CompiledQuery.raw("select pg_terminate_backend(pg_backend_pid())"));
    }),
  ).rejects.toThrow("Connection terminated");
  expect(await query("select status from limit_slots")).toEqual([{ status: "WANTED" }]);

  await query(grant);
  expect(await limitOf(id)).toMatchObject({ position: null });
  await startSchedulers();
  await ended(id, "COMPLETED");
});

test("a slot of an instance that does not run, or of one of another workflow, is given up", async () => {
  await register("leak", { concurrency: { limit: 2 }, steps: [occupy("a")] });
  const gone = await start("leak");
  await ended(gone, "COMPLETED");
  await stopSchedulers();
  await register("alien", { steps: [{ ...occupy("a"), queue: "nobody" }] });
  const alien = await start("alien");
  await query(`insert into limit_slots (tenant_id, limit_key, instance_id, status, request, has_run,
      priority, wanted_at, granted_at)
    values ('default', 'type:leak', '${alien}', 'HELD', 1, false, 0, now(), now())`);
  await query(`insert into limit_slots (tenant_id, limit_key, instance_id, status, request, has_run,
      priority, wanted_at, granted_at)
    values ('default', 'type:leak', '${gone}', 'HELD', 1, false, 0, now(), now())`);
  const { body } = await api.call("GET", `/v1/instances/${gone}/consistency`);
  expect(body.findings).toMatchObject([{ code: "SLOT_STRAY", repairable: true }]);

  const next = await start("leak");
  await startSchedulers();

  await ended(next, "COMPLETED");
});

test("an instance that runs without its slot gets it back by a repair", async () => {
  await register("bare", { concurrency: { limit: 1 }, steps: [occupy("a")] });
  at.isHeld = true;
  const id = await start("bare");
  await working(id);
  const slots = "select status, request from limit_slots";
  const before = await query(slots);
  await query("delete from limit_slots");

  const { body } = await api.call("POST", `/v1/instances/${id}/repair`);

  expect(body).toMatchObject({ repaired: [{ code: "SLOT_MISSING" }], after: { ok: true } });
  expect(await query(slots)).toEqual(before);
});

test("metrics say of limited workflows how many slots there are, are taken and are waited for", async () => {
  await register("seen", { concurrency: { limit: 1 }, steps: [occupy("a")] });
  at.isHeld = true;
  await working(await start("seen"));
  await start("seen");
  const { metrics } = api.services;
  sampleInstallation(api.services, []);

  const text = await metrics.text();

  for (const name of ["limit_slots", "limit_slots_taken", "limit_queued_instances"]) {
    expect(text).toContain(`millrace_${name}{workflow="seen"} 1`);
  }
});

async function openRuntime(name: string): Promise<Services> {
  return openServices({
    name,
    databaseUrl: database.url,
    redisUrl: redis.url,
    queueBackend: "redis",
    keyPrefix: redis.prefix,
    // Whoever holds the lock of a limit must not need another connection.
    poolSize: name === "api" ? 1 : 5,
    logLevel: "silent",
  });
}

async function startSchedulers(): Promise<void> {
  schedulers = await Promise.all(others.map((services) => runScheduler(services)));
}

async function stopSchedulers(): Promise<void> {
  for (const scheduler of schedulers) await scheduler.close();
  schedulers = [];
}

async function register(id: string, definition: object): Promise<void> {
  const answer = await api.call("PUT", `/v1/definitions/${id}`, { id, ...definition });
  expect(answer).toMatchObject({ body: { id } });
}

async function start(workflowId: string, input: object = {}, more: object = {}): Promise<string> {
  const answer = await api.call("POST", "/v1/instances", { workflowId, input, ...more });
  expect(answer).toMatchObject({ status: 201 });
  return answer.body.id;
}

async function startMany(workflowId: string, count: number, input: object): Promise<string[]> {
  const body = Array.from({ length: count }, () => ({ workflowId, input }));
  const answer = await api.call("POST", "/v1/instances:batch", body);
  return answer.body.results.map((result: { instance: { id: string } }) => result.instance.id);
}

async function get(id: string) {
  return (await api.call("GET", `/v1/instances/${id}`)).body;
}

async function statusOf(id: string): Promise<string> {
  return (await get(id)).status;
}

async function status(id: string, expected: string): Promise<void> {
  await eventually(`${id} to be ${expected}`, async () => (await statusOf(id)) === expected);
}

async function ended(id: string, expected: string): Promise<void> {
  const { body } = await api.call("GET", `/v1/instances/${id}?wait=30`);
  expect(body).toMatchObject({ status: expected });
}

async function working(id: string): Promise<void> {
  await eventually(`${id} to be at work`, async () => at.now.has(id));
}

async function verb(id: string, name: string): Promise<void> {
  const body = name === "cancel" ? { reason: "a test" } : {};
  const answer = await api.call("POST", `/v1/instances/${id}/${name}`, body);
  expect(answer).toMatchObject({ status: 202 });
}

async function patch(id: string, body: object): Promise<void> {
  const { version } = await get(id);
  const answer = await api.call("PATCH", `/v1/instances/${id}`, body, {
    "if-match": `"${version}"`,
  });
  expect(answer).toMatchObject({ status: 200 });
}

async function publish(id: string): Promise<void> {
  const answer = await api.call("POST", "/v1/events", { pattern: `go.${id}`, payload: {} });
  expect(answer.body).toMatchObject({ delivered: 1 });
  await eventually("its place in the queue", async () => (await reasons(id))[0]?.kind === "LIMIT");
}

async function reasons(id: string) {
  return (await api.call("GET", `/v1/instances/${id}/why`)).body.reasons;
}

async function limitOf(id: string) {
  const [reason] = await reasons(id);
  expect(reason).toMatchObject({ kind: "LIMIT" });
  return reason;
}

async function placesOf(...ids: readonly string[]): Promise<readonly number[]> {
  return Promise.all(ids.map(async (id) => (await limitOf(id)).position));
}

async function put(id: string, body: object, headers: Record<string, string> = {}) {
  const answer = await api.call("PUT", `/v1/limits/${encodeURIComponent(id)}`, body, headers);
  await hear();
  return answer;
}

/** All others know of it within a second; here they know at once. */
async function hear(): Promise<void> {
  await Promise.all(others.map(({ limits: known, database: { db } }) => known.reload(db)));
}

async function limit(id: string) {
  return (await api.call("GET", `/v1/limits/${encodeURIComponent(id)}`)).body;
}

async function heldOf(id: string): Promise<number> {
  return (await limit(id)).usage.held;
}

async function limits(): Promise<
  readonly { id: string; source: string; usage: { held: number; queued: number } }[]
> {
  return (await api.call("GET", "/v1/limits?limit=500")).body.items;
}

async function instancesIn(statuses: string): Promise<readonly { id: string }[]> {
  return (await api.call("GET", `/v1/instances?status=${statuses}&limit=500`)).body.items;
}

async function query(text: string): Promise<readonly unknown[]> {
  return (await api.services.database.db.executeQuery(CompiledQuery.raw(text))).rows;
}
