import { randomUUID } from "node:crypto";
import { runScheduler } from "@millrace/runtime";
import type { RunningScheduler } from "@millrace/runtime";
import { readChanges, readLifecycleCursor } from "@millrace/store";
import { eventually as asking } from "@millrace/testkit";
import { CompiledQuery, sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectConsistent } from "../support/consistent.ts";
import { openTestApi, type TestApi } from "./api/support.ts";

// Events that instances tell of themselves. All of the time two schedulers make them of one history.

let api: TestApi;
let second: RunningScheduler;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
  second = await runScheduler(api.services);
});
afterAll(async () => {
  await second?.close();
  try {
    await expectConsistent(api.url);
  } finally {
    await api?.close();
  }
});

/** What any other test has under way on this server holds the history up. */
const eventually: typeof asking = (what, check) => asking(what, check, { timeoutMs: 30_000 });

const db = () => api.services.database.db;
const fresh = () => `t${randomUUID().slice(0, 8)}`;
const to = (stepId: string) => ({ transitions: { default: stepId } });

async function register(definition: object, id = fresh()): Promise<string> {
  const { status, body } = await api.call("PUT", `/v1/definitions/${id}`, { id, ...definition });
  expect({ status, body }).toMatchObject({ status: 201 });
  return id;
}

async function start(workflowId: string, input: unknown = {}): Promise<string> {
  return (await api.call("POST", "/v1/instances", { workflowId, input })).body.id;
}

const read = async (id: string) => (await api.call("GET", `/v1/instances/${id}`)).body;
const settled = async (id: string) => (await api.call("GET", `/v1/instances/${id}?wait=20`)).body;

async function instancesOf(workflowId: string) {
  return (await api.call("GET", `/v1/instances?workflowId=${workflowId}&limit=500`)).body.items;
}

interface Row {
  readonly pattern: string;
  readonly delivered: number;
  readonly cancelled: number;
  readonly started: number;
}

/** What was stored of an instance, and what came of it. */
async function eventsOf(instanceId: string): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`select pattern, delivered, cancelled, started from events
    where payload ->> 'instanceId' = ${instanceId} and matched_at is not null
    order by pattern`.execute(db());
  return rows;
}

/** Until all that has been committed by now is read, and matched. */
async function caughtUp(): Promise<void> {
  await eventually("the history to be read", async () => {
    const { place, isListened } = await readLifecycleCursor(db());
    expect(isListened).toBe(true);
    const { changes, isHeldBack } = await readChanges(db(), place, 1);
    return changes.length === 0 && !isHeldBack;
  });
  await eventually("the events to be matched", async () => {
    const { rows } = await sql`select from events where matched_at is null`.execute(db());
    return rows.length === 0;
  });
}

const hears = (eventPattern: string, eventCondition?: string, more: object = {}) => ({
  stepId: "w",
  type: "EVENT_WAIT",
  eventPattern,
  ...(eventCondition && { eventCondition }),
  ...more,
});
const ofInput = "event.payload.instanceId === workflow.input.watched";
const at = (outcome: string, more: object = {}) => ({
  steps: [{ stepId: "end", type: "END", outcome, ...more }],
});
/** It waits until it is told to go on. */
const idle = (pattern = fresh()) => ({
  steps: [{ stepId: "idle", type: "EVENT_WAIT", eventPattern: pattern }],
});

test("an instance hears that the one it has started has completed, however soon that is", async () => {
  const child = await register(at("COMPLETED"));
  const parent = await register({
    steps: [
      { stepId: "child", type: "SUB_WORKFLOW", workflowId: child, detached: true, ...to("w") },
      hears("workflow.completed", "event.payload.instanceId === steps.child.output.instanceId"),
    ],
  });
  const parents = await Promise.all(Array.from({ length: 10 }, () => start(parent)));

  const ended = await Promise.all(parents.map(settled));

  for (const { status, output, state } of ended) {
    const { instanceId } = state.steps.child.output;
    expect(status).toBe("COMPLETED");
    expect(output).toMatchObject({
      pattern: "workflow.completed",
      payload: {
        workflowId: child,
        workflowVersion: 1,
        instanceId,
        tenantId: "default",
        status: "COMPLETED",
        oldStatus: "RUNNING",
        reason: null,
      },
    });
    expect(await eventsOf(instanceId)).toEqual([
      { pattern: "workflow.completed", delivered: 1, cancelled: 0, started: 0 },
    ]);
  }
});

test("it cancels and starts, once each, what is not of its own definition, and nothing that listens since later", async () => {
  const failing = await register(
    at("FAILED", { error: { type: "Broken", message: "${ input.why }" } }),
  );
  const early = await start(failing, { why: "told" });
  const handler = await register({
    ...at("FAILED"),
    startTriggers: [{ eventPattern: "workflow.failed" }],
  });
  // A version more listens on, to what came before it, too.
  const between = await start(failing, { why: "told" });
  await register(
    {
      ...at("FAILED", { reason: "a handler may fail itself" }),
      startTriggers: [
        { eventPattern: "workflow.failed", eventCondition: `event.payload.reason === "told"` },
      ],
    },
    handler,
  );
  const cancelled = await register({
    ...idle(),
    cancellationTriggers: [
      { eventPattern: "workflow.*", eventCondition: ofInput, reason: "event.payload.reason" },
    ],
  });
  const watched = await start(await register(idle()));
  const waiting = await start(cancelled, { watched });

  const told = await Promise.all(Array.from({ length: 10 }, () => start(failing, { why: "told" })));
  await api.call("POST", `/v1/instances/${watched}/pause`, { reason: "for a while" });

  expect(await settled(waiting)).toMatchObject({
    status: "CANCELLED",
    cancellation: { source: "EVENT", reason: "for a while" },
  });
  await caughtUp();
  const started = await instancesOf(handler);
  const causes = started.map(({ input }: { input: { instanceId: string } }) => input.instanceId);
  expect(causes.toSorted()).toEqual([between, ...told].toSorted());
  expect(await eventsOf(early)).toEqual([]);
  expect(await eventsOf(watched)).toEqual([
    { pattern: "workflow.paused", delivered: 0, cancelled: 1, started: 0 },
  ]);
});

test("of its own definition an instance hears nothing; of others what comes after its wait, first things first", async () => {
  const id = await register({
    steps: [
      { stepId: "before", type: "TASK", taskId: "echo", ...to("w") },
      hears("workflow.step.**", undefined, to("w2")),
      hears("workflow.completed", undefined, { stepId: "w2" }),
    ],
  });
  const other = await register({
    steps: [
      { stepId: "skipped", type: "TASK", taskId: "echo", condition: "false", ...to("done") },
      { stepId: "done", type: "TASK", taskId: "echo" },
    ],
  });
  const early = await start(other);
  await settled(early);
  const one = await start(id);
  await eventually("its wait", async () => (await read(one)).status === "WAITING_FOR_EVENT");
  const two = await start(id);
  await eventually("its wait", async () => (await read(two)).status === "WAITING_FOR_EVENT");
  await caughtUp();
  const before = await Promise.all([read(one), read(two)]);

  const later = await start(other);

  // The steps of both of them have completed, and neither has heard of the other.
  expect(before.map(({ status }) => status)).toEqual(["WAITING_FOR_EVENT", "WAITING_FOR_EVENT"]);
  await eventually("both waits", async () => {
    const [first, last] = await Promise.all([read(one), read(two)]);
    return [first, last].every(({ state }) => state.steps.w.status === "COMPLETED");
  });
  const { state } = await read(one);
  expect(state.steps.w.output.payload).toMatchObject({ instanceId: later, stepId: "skipped" });
  await start(await register(at("COMPLETED")));
  await Promise.all([one, two].map(settled));
});

test("a lookback of whatever wait finds none of those that are stored", async () => {
  const id = await register({ steps: [hears("**", undefined, { lookback: "P1D" })] });

  const waiting = await start(id);

  await eventually("its look", async () => {
    const { rows } = await sql<{ done: boolean }>`select looked_back as done from waits
      where instance_id = ${waiting}`.execute(db());
    return rows[0]?.done;
  });
  const { rows } = await sql`select from events where pattern like 'workflow.%'`.execute(db());
  expect(rows.length).toBeGreaterThan(0);
  expect(await read(waiting)).toMatchObject({ status: "WAITING_FOR_EVENT" });
});

test("one of those that wait has it for itself", async () => {
  const id = await register({
    steps: [hears("workflow.cancelled", ofInput, { deliver: "ONE" })],
  });
  const watched = await start(await register(idle()));
  const waiting = await Promise.all([start(id, { watched }), start(id, { watched })]);

  await api.call("POST", `/v1/instances/${watched}/cancel`, { reason: "no more" });
  await eventually("the event", async () => (await eventsOf(watched)).length === 1);

  await eventually("one of them", async () => {
    const statuses = await Promise.all(waiting.map(async (each) => (await read(each)).status));
    return statuses.includes("COMPLETED") && statuses.includes("WAITING_FOR_EVENT");
  });
  expect(await eventsOf(watched)).toEqual([
    { pattern: "workflow.cancelled", delivered: 1, cancelled: 0, started: 0 },
  ]);
  for (const each of waiting) await api.call("POST", `/v1/instances/${each}/cancel`);
});

test("what stands behind a long transaction is heard when that has ended", async () => {
  const id = await register({ steps: [hears("workflow.resumed", ofInput)] });
  const watched = await start(await register(idle()));
  const waiting = await start(id, { watched });
  await eventually("its wait", async () => (await read(waiting)).status === "WAITING_FOR_EVENT");
  const statusBefore = await db()
    .transaction()
    .execute(async (trx) => {
      await trx.executeQuery(CompiledQuery.raw("select pg_current_xact_id()"));
      await api.call("POST", `/v1/instances/${watched}/pause`);
      await api.call("POST", `/v1/instances/${watched}/resume`, { reason: "go" });
      return (await read(waiting)).status;
    });

  const { status, output } = await settled(waiting);

  expect(statusBefore).toBe("WAITING_FOR_EVENT");
  expect({ status, output }).toMatchObject({
    status: "COMPLETED",
    output: { payload: { instanceId: watched, reason: "go" } },
  });
});

test("what a scheduler has stored and did not come to match is matched by the reconciler of another", async () => {
  const alone = await openTestApi();
  const call = async (method: string, path: string, body?: object) =>
    (await alone.call(method, path, body)).body;
  await call("PUT", "/v1/definitions/watching", {
    id: "watching",
    steps: [{ stepId: "say", type: "TASK", taskId: "echo" }],
    startTriggers: [{ eventPattern: "workflow.completed" }],
  });
  await call("PUT", "/v1/definitions/told", { id: "told", ...at("COMPLETED") });
  const damaged = await call("POST", "/v1/instances", { workflowId: "told" });
  const { intake, database } = alone.services;
  await sql`update history set entries = '{}' where instance_id = ${damaged.id}`.execute(
    database.db,
  );
  const dying = {
    ...alone.services,
    intake: { ...intake, shapes: () => Promise.reject(new Error("it dies here")) },
  };
  const scheduler = await runScheduler(dying);
  await Promise.all([1, 2, 3].map(() => call("POST", "/v1/instances", { workflowId: "told" })));
  const stored = () =>
    sql<{ done: boolean }>`select matched_at is not null as done from events`.execute(
      alone.services.database.db,
    );
  await eventually("the events", async () => (await stored()).rows.length === 3);
  await scheduler.close();

  const another = await runScheduler(alone.services);

  await eventually("the reconciler", async () => (await stored()).rows.every(({ done }) => done));
  const { items } = await call("GET", "/v1/instances?workflowId=watching");
  expect(items).toHaveLength(3);
  await another.close();
  await alone.close();
});

test("a change is from when its row was written, however long its statement had stood until then", async () => {
  const id = await start(
    await register({ steps: [{ stepId: "say", type: "TASK", taskId: "noop" }] }),
  );
  const written = sql<{ isLater: boolean }>`with stood as materialized (select pg_sleep(0.05))
    insert into history (
      tenant_id, instance_id, version, commit_id, at, engine_rev, actor, signals, changes, entries)
    select h.tenant_id, h.instance_id, 1000, gen_random_uuid(), h.at, h.engine_rev, h.actor, h.signals,
      h.changes, h.entries
    from stood cross join history h where h.instance_id = ${id} and h.version = 1
    returning written_at >= statement_timestamp() + interval '50 ms' as "isLater"`;

  let isLater: boolean | undefined;
  const undone = new Error("undone");
  const act = db()
    .transaction()
    .execute(async (trx) => {
      isLater = (await written.execute(trx)).rows[0]?.isLater;
      throw undone;
    });

  await expect(act).rejects.toBe(undone);
  expect(isLater).toBe(true);
});

test("what has had its time stays until those who listen have been told", async () => {
  const alone = await openTestApi();
  const { db: own } = alone.services.database;
  const call = async (method: string, path: string, body?: object) =>
    (await alone.call(method, path, body)).body;
  await call("PUT", "/v1/definitions/watching", {
    id: "watching",
    steps: [{ stepId: "say", type: "TASK", taskId: "echo" }],
    startTriggers: [{ eventPattern: "workflow.completed" }],
  });
  await sql`update start_triggers set since = now() - interval '1 d'`.execute(own);
  await call("PUT", "/v1/definitions/told", { id: "told", ...at("COMPLETED") });
  const { id } = await call("POST", "/v1/instances", { workflowId: "told" });
  await sql`update history set written_at = now() - interval '1 h'`.execute(own);
  await sql`update workflow_instances set completed_at = now() - interval '1 h'`.execute(own);
  await sql`insert into idempotency_keys values
    ('default', 'k', 'h', ${id}, now() - interval '3 d')`.execute(own);
  const isThere = async () => (await alone.call("GET", `/v1/instances/${id}`)).status === 200;

  let scheduler: RunningScheduler | undefined;
  const wasThere = await own.transaction().execute(async (trx) => {
    // Nothing is read while this stands.
    await trx.executeQuery(CompiledQuery.raw("select pg_current_xact_id()"));
    scheduler = await runScheduler(alone.services, { retentionMs: 60_000 });
    await eventually("a round of the deletion, in which keys come after instances", async () => {
      const { rows } = await sql`select from idempotency_keys`.execute(own);
      return rows.length === 0;
    });
    return isThere();
  });

  expect(wasThere).toBe(true);
  await eventually("its deletion", async () => !(await isThere()));
  const { items } = await call("GET", "/v1/instances?workflowId=watching");
  expect(items).toMatchObject([{ input: { instanceId: id } }]);
  await scheduler?.close();
  await alone.close();
});
