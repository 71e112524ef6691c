import { randomUUID } from "node:crypto";
import { runScheduler } from "@millrace/runtime";
import { forgetEvents, forgetKeys, forgetRuns, forgetSettled } from "@millrace/store";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./api/support.ts";

// What has ended goes after its time, with all that is stored of it. No worker runs and no clock is waited
// for: instances end in their first commit, and the database is told that it was long ago.

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;
const look = { olderMs: monthMs, limit: 100 };

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  for (const definition of [
    { id: "done", steps: [end] },
    { id: "waiting", steps: [waitFor("paid")] },
    { id: "parent", steps: [child("done")] },
    { id: "launcher", steps: [child("done", { detached: true }), waitFor("paid")] },
    { id: "launched", steps: [child("waiting", { detached: true })] },
    { id: "begun", startTriggers: [{ eventPattern: "begin" }], steps: [end] },
    { id: "taking", steps: [waitFor("taken")] },
    { id: "past", steps: [waitFor("seen.one", { lookback: "P60D" })] },
    { id: "widely", steps: [waitFor("all.*.of", { lookback: "P60D" })] },
  ]) {
    await api.call("PUT", `/v1/definitions/${definition.id}`, definition);
  }
});
afterAll(() => api?.close());

const end = { stepId: "end", type: "END", outcome: "COMPLETED" };
function waitFor(eventPattern: string, more: object = {}) {
  return { stepId: "wait", type: "EVENT_WAIT", eventPattern, ...more };
}
function child(workflowId: string, more: object = {}) {
  const transitions = { default: "wait" };
  return {
    stepId: "child",
    type: "SUB_WORKFLOW",
    workflowId,
    ...more,
    ...(workflowId === "done" && "detached" in more && { transitions }),
  };
}

const db = () => api.services.database.db;
const get = (path: string) => api.call("GET", path);

async function start(workflowId: string, headers: Record<string, string> = {}): Promise<string> {
  const { status, body } = await api.call("POST", "/v1/instances", { workflowId }, headers);
  expect({ status, body }).toMatchObject({ status: 201 });
  return body.id as string;
}

async function cancel(id: string): Promise<void> {
  expect((await api.call("POST", `/v1/instances/${id}/cancel`, {})).status).toBe(202);
}

/** As if they had ended so much earlier. */
async function age(...ids: readonly string[]): Promise<void> {
  await sql`update workflow_instances set completed_at = completed_at - interval '40 days'
    where id = any (${ids}::uuid[])`.execute(db());
}

async function left(...ids: readonly string[]): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from workflow_instances where id = any (${ids}::uuid[])`.execute(db());
  return ids.filter((id) => rows.some((row) => row.id === id));
}

async function childOf(id: string): Promise<string> {
  const { rows } = await sql<{ child_id: string }>`
    select child_id from children where instance_id = ${id}`.execute(db());
  return rows[0]!.child_id;
}

test("what settled long ago goes, and is unknown from then on; what lives or has settled of late stays", async () => {
  const old = [await start("done"), await start("waiting")] as const;
  await cancel(old[1]);
  const young = await start("done");
  const live = await start("waiting");
  await age(...old, live);

  expect(await forgetSettled(db(), look)).toMatchObject({ deleted: 2 });

  expect(await left(...old, young, live)).toEqual([young, live]);
  for (const path of ["", "/history", "/why", "/consistency", "/steps", "/state?version=1"]) {
    expect(await get(`/v1/instances/${old[0]}${path}`)).toMatchObject({
      status: 404,
      body: { code: "INSTANCE_NOT_FOUND" },
    });
  }
  expect((await api.call("POST", `/v1/instances/${old[0]}/cancel`, {})).status).toBe(404);
});

test("no table keeps a row of an instance that has gone", async () => {
  const id = await start("done");
  const other = await start("done");
  // Keys and runs of schedules have times of their own.
  const kept = ["idempotency_keys", "schedule_runs"];
  const tables = (await tablesOfInstances()).filter((table) => !kept.includes(table));
  for (const table of tables) for (const each of [id, other]) await insertAnything(table, each);
  await age(id);

  expect(await forgetSettled(db(), look)).toMatchObject({ deleted: 1 });

  for (const table of tables) {
    expect({ table, rows: await rowsOf(table, id) }).toEqual({ table, rows: 0 });
    expect({ table, rows: await rowsOf(table, other) }).not.toEqual({ table, rows: 0 });
  }
  for (const table of tables) {
    await sql`delete from ${sql.table(table)} where instance_id = ${other}`.execute(db());
  }
});

async function tablesOfInstances(): Promise<readonly string[]> {
  const { rows } = await sql<{ table_name: string }>`
    select table_name from information_schema.columns
    where table_schema = 'public' and column_name = 'instance_id'`.execute(db());
  expect(rows.length).toBeGreaterThan(8);
  return rows.map(({ table_name: name }) => name);
}

async function rowsOf(table: string, id: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from ${sql.table(table)} where instance_id = ${id}`.execute(
    db(),
  );
  return rows[0]!.count;
}

/** A row of this instance, whatever the table. */
async function insertAnything(table: string, id: string): Promise<void> {
  const { rows } = await sql<{ name: string; type: string }>`
    select column_name as name, udt_name as type from information_schema.columns
    where table_schema = 'public' and table_name = ${table} and is_identity = 'NO'`.execute(db());
  const values: Record<string, string> = {
    text: "'x'",
    uuid: "gen_random_uuid()",
    int4: "77",
    int8: "77",
    bool: "true",
    timestamptz: "now()",
    json: "'{}'",
    jsonb: "'{}'",
    xid8: "'1'",
  };
  const known: Record<string, string> = {
    instance_id: `'${id}'`,
    tenant_id: "'default'",
    limit_key: "'type:done'",
    detached: "false",
  };
  const columns = rows.map(({ name }) => name).join(", ");
  const list = rows.map(({ name, type }) => known[name] ?? values[type] ?? "null").join(", ");
  await sql.raw(`insert into ${table} (${columns}) values (${list})`).execute(db());
}

test("an instance whose dead letter is open stays until somebody has resolved it", async () => {
  const id = await start("done");
  await insertAnything("dead_letters", id);
  await sql`update dead_letters set status = 'OPEN' where instance_id = ${id}`.execute(db());
  await age(id);

  const before = await forgetSettled(db(), look);
  await sql`update dead_letters set status = 'DISCARDED' where instance_id = ${id}`.execute(db());
  const after = await forgetSettled(db(), look);

  expect([before.deleted, after.deleted]).toEqual([0, 1]);
});

test("an instance stays while the event that started it may be matched once more", async () => {
  await publish("starter", "begin");
  const { rows } = await sql<{ id: string }>`
    select id from workflow_instances where start_event_id = 'starter'`.execute(db());
  const [{ id }] = rows as [{ id: string }];
  await age(id);
  await sql`update events set matched_at = null where id = 'starter'`.execute(db());

  const before = await forgetSettled(db(), look);
  await sql`update events set matched_at = now() where id = 'starter'`.execute(db());
  const after = await forgetSettled(db(), look);
  await sql`delete from events`.execute(db());

  expect([before.deleted, after.deleted]).toEqual([0, 1]);
});

test("a child stays while its parent lives, and a parent until its child has gone", async () => {
  const parent = await start("parent");
  const awaited = await childOf(parent);
  await age(awaited);

  expect((await forgetSettled(db(), look)).deleted).toBe(0);
  await cancel(parent);
  await age(parent);
  await sql`update workflow_instances set completed_at = now() where id = ${awaited}`.execute(db());
  expect((await forgetSettled(db(), look)).deleted).toBe(0);
  await age(awaited);
  await forgetSettled(db(), look);
  await forgetSettled(db(), look);

  expect(await left(parent, awaited)).toEqual([]);
});

test("detached, each goes by itself, and the other is none the worse for it", async () => {
  const launcher = await start("launcher");
  const launched = await childOf(launcher);
  const gone = await start("launched");
  const orphan = await childOf(gone);
  await age(launched, gone);

  await forgetSettled(db(), look);

  expect(await left(launcher, launched, gone, orphan)).toEqual([launcher, orphan]);
  for (const id of [launcher, orphan]) {
    expect((await get(`/v1/instances/${id}/consistency`)).body.findings).toEqual([]);
    expect((await get(`/v1/instances/${id}`)).status).toBe(200);
  }
});

test("of several that delete at once each instance falls to one, and a look goes on where the last one ended", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => start("done")));
  // At the same moment, so that a look ends among them.
  await sql`update workflow_instances set completed_at = '2026-01-01' where id = any (${ids}::uuid[])`.execute(
    db(),
  );
  const deleteAll = async () => {
    let [deleted, after] = [0, undefined as Awaited<ReturnType<typeof forgetSettled>>["place"]];
    for (let looks = 0; looks < 20; looks++) {
      const swept = await forgetSettled(db(), { olderMs: monthMs, limit: 7, after });
      deleted += swept.deleted;
      if (swept.place === undefined) break;
      after = swept.place;
    }
    return deleted;
  };

  const counts = await Promise.all([deleteAll(), deleteAll(), deleteAll()]);
  counts.push(await deleteAll());

  expect(counts.reduce((sum, count) => sum + count)).toBe(ids.length);
  expect(await left(...ids)).toEqual([]);
});

test("a deletion that comes to grief half-way leaves everything, and the next one takes it", async () => {
  const ids = [await start("done"), await start("done"), await start("done")];
  await age(...ids);
  await sql`create function grief() returns trigger language plpgsql as
    $$ begin raise exception 'grief'; end $$`.execute(db());
  await sql`create trigger grief before delete on workflow_instances for each row
    when (old.id = ${sql.lit(ids[1])}) execute function grief()`.execute(db());

  await expect(forgetSettled(db(), look)).rejects.toThrow("grief");
  const counts = await Promise.all(ids.map((id) => rowsOf("history", id)));
  await sql`drop function grief() cascade`.execute(db());
  const { deleted } = await forgetSettled(db(), look);

  expect(counts).toEqual([1, 1, 1]);
  expect(deleted).toBe(3);
});

test("events go once nobody can ask for them, and their ids can be used again", async () => {
  const [past, widely, taking] = [
    await start("past"),
    await start("widely"),
    await start("taking"),
  ];
  const named: Readonly<Record<string, string>> = {
    wanted: "seen.one",
    "widely-wanted": "all.sorts.of",
    "taken-not-applied": "taken",
    "to-be-handed-on": "seen.two",
    unmatched: "seen.two",
    another: "seen.two",
  };
  for (const [id, pattern] of Object.entries(named)) await publish(id, pattern);
  // These two waits have been there before: what they have heard would be gone for others.
  await sql`update waits set matched_event_id = null, matched_at = null
    where instance_id in (${past}, ${widely})`.execute(db());
  await sql`update events set received_at = now() - interval '40 days',
    matched_at = case when id <> 'unmatched' then matched_at end`.execute(db());
  await sql`insert into event_releases (tenant_id, instance_id, event_id, taken_at, released_at)
    values ('default', ${randomUUID()}, 'to-be-handed-on', now(), now())`.execute(db());

  expect((await forgetEvents(db(), { ...look, olderMs: 50 * dayMs })).deleted).toBe(0);
  expect((await forgetEvents(db(), look)).deleted).toBe(1);
  expect((await publish("wanted", "seen.one")).duplicate).toBe(true);
  expect((await publish("another", "seen.two")).duplicate).toBe(false);
  for (const id of [past, widely, taking]) await cancel(id);
  expect((await forgetEvents(db(), look)).deleted).toBe(3);
  expect((await publish("wanted", "seen.one")).duplicate).toBe(false);
  await sql`delete from event_releases`.execute(db());
  expect((await forgetEvents(db(), look)).deleted).toBe(1);

  const { rows } = await sql<{ id: string }>`
    select id from events where received_at < now() - interval '1 day' order by id`.execute(db());
  expect(rows.map(({ id }) => id)).toEqual(["unmatched"]);
});

async function publish(id: string, pattern: string): Promise<{ readonly duplicate: boolean }> {
  const { status, body } = await api.call("POST", "/v1/events", { id, pattern, payload: {} });
  expect(status).toBe(202);
  return body;
}

test("the key of a start is remembered for its time, whether or not the instance is there", async () => {
  const headers = { "idempotency-key": "once" };
  const again = () => api.call("POST", "/v1/instances", { workflowId: "done" }, headers);
  const id = await start("done", headers);
  await age(id);
  await forgetSettled(db(), look);

  expect((await forgetKeys(db(), look)).deleted).toBe(0);
  expect(await again()).toMatchObject({ status: 404, body: { code: "INSTANCE_NOT_FOUND" } });
  await sql`update idempotency_keys set created_at = now() - interval '40 days'`.execute(db());
  expect((await forgetKeys(db(), look)).deleted).toBe(1);
  expect((await again()).status).toBe(201);
});

test("of a schedule's runs the latest hundred stay; older ones go after their instances, and no backfill repeats them", async () => {
  const schedule = {
    id: "minutely",
    type: "recurring",
    target: { type: "workflow", id: "waiting" },
    timing: { cronExpression: "* * * * *" },
  };
  expect((await api.call("POST", "/v1/schedules", schedule)).status).toBe(201);
  const live = await start("waiting");
  await sql`insert into schedule_runs (tenant_id, schedule_id, kind, tick_at, status, instance_id, created_at, started_at)
    select 'default', 'minutely', 'TICK', date_trunc('minute', now()) - (300 - n) * interval '1 min', 'STARTED',
      case n when 3 then ${live}::uuid else gen_random_uuid() end, now() - interval '40 days', now()
    from generate_series(1, 150) n`.execute(db());
  const { rows } = await sql<{ tick: Date; last: Date }>`
    select min(tick_at) as tick, min(tick_at) + interval '49 min' as last from schedule_runs`.execute(
    db(),
  );
  const [{ tick, last }] = rows as [(typeof rows)[0]];

  expect((await forgetRuns(db(), look)).deleted).toBe(49);
  expect((await forgetRuns(db(), look)).deleted).toBe(0);

  expect(await rowsOf("schedule_runs", live)).toBe(1);
  const backfill = (from: Date, to: Date) =>
    api.call("POST", "/v1/schedules/minutely/backfill", { from, to, overlapPolicy: "BUFFER_ALL" });
  expect((await backfill(tick, last)).body).toMatchObject({ ticks: 50, alreadyRan: 50 });
  // Runs whose instances have gone do not stand in the way of others.
  await cancel(live);
  const later = new Date(tick.getTime() + 200 * 60_000);
  const { body } = await backfill(later, later);
  expect(body).toMatchObject({ ticks: 1, alreadyRan: 0, started: 1 });
});

test("schedulers delete by themselves and say how much; what is promised of events and keys outlasts a short setting", async () => {
  const ids = await Promise.all(Array.from({ length: 20 }, () => start("done")));
  await age(...ids);
  const recent = await start("done", { "idempotency-key": "recent" });
  await publish("recent", "seen.recently");
  await sql`update idempotency_keys set created_at = now() - interval '23 hours'`.execute(db());
  await sql`update events set received_at = now() - interval '6 days'
    where id = 'recent'`.execute(db());

  const scheduler = await runScheduler(api.services, { retentionMs: 60_000 });
  await eventually("their deletion", async () => (await left(...ids)).length === 0);
  // When it has stopped, it has looked at everything once.
  await scheduler.close();

  const text = await api.services.metrics.text();
  expect(text).toContain('millrace_retention_deleted_total{kind="instances"} 20');
  expect(await rowsOf("idempotency_keys", recent)).toBe(1);
  expect((await publish("recent", "seen.recently")).duplicate).toBe(true);
});
