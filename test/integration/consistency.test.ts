import type { ConsistencyCode, ConsistencyView, RepairView } from "@millrace/contract";
import { stepJobId } from "@millrace/queue";
import { runScheduler, runWorker, type Services } from "@millrace/runtime";
import {
  countKeysWithoutInstance,
  deleteLeftovers,
  findFaultyDefinitions,
  findLeftovers,
  restoreHistory,
} from "@millrace/store";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CompiledQuery } from "kysely";
import { damages, definitions, type Damage } from "../support/damages.ts";
import { openTestApi, type TestApi } from "./api/support.ts";

// Damage of every kind, done to healthy instances past Millrace: each is found, and repaired or explained.
// No worker and no scheduler runs while it is looked for, so that nobody else mends it.

let api: TestApi;
let services: Services;
beforeAll(async () => {
  api = await openTestApi();
  services = api.services;
  for (const definition of definitions) {
    await api.call("POST", "/v1/definitions", definition);
  }
  await withWorker(async () => {
    const worked = damages.filter(({ of }) => ended.includes(of));
    await Promise.all(
      worked.map(async (damage) => {
        const id = await start(damage.of);
        instances.set(damage, id);
        await (damage.of === "retries" ? retrying(id) : settled(id));
      }),
    );
  });
  for (const damage of damages) {
    if (!instances.has(damage)) instances.set(damage, await start(damage.of));
    const path = `/v1/instances/${instances.get(damage)}`;
    for (const patch of damage.patches ?? []) {
      await api.call("PATCH", path, patch, { "if-match": "*" });
    }
  }
}, 60_000);
afterAll(() => api.close());

/** Those that a worker is to bring to where they are damaged. */
const ended: readonly Damage["of"][] = ["chain", "each", "fails", "retries"];
const instances = new Map<Damage, string>();

// To release a lost step is to look for all of them: two at a time would find each other's.
const isAmongAll = ({ codes }: Damage) => codes.includes("STEP_HOLDER_LOST");
test.concurrent.each(damages.filter((damage) => !isAmongAll(damage)))("$name: $codes", isFound);
test.each(damages.filter(isAmongAll))("$name: $codes", isFound);

async function isFound(damage: Damage): Promise<void> {
  const { sql, codes, isAll, says = [], isRepaired } = damage;
  const id = instances.get(damage) ?? "";
  expect((await check(id)).findings).toEqual([]);

  for (const statement of sql) await query(statement, [id]);
  const found = await check(id);
  const { after } = await repair(id);

  expect(codesOf(found)).toEqual(expect.arrayContaining([...codes]));
  const others = codesOf(found).filter((code) => !codes.includes(code));
  expect(isAll ? others : []).toEqual([]);
  expect(found.ok).toBe(false);
  const messages = found.findings.map(({ message }) => message).join("\n");
  expect(says.filter((each) => !messages.includes(each))).toEqual([]);
  for (const finding of found.findings) {
    expect(finding.message).toMatch(/\w/);
    expect(finding.repairable ? finding.repair : finding.advice).toMatch(/\w/);
  }
  const left = codes.filter((code) => codesOf(after).includes(code));
  expect(left).toEqual(isRepaired ? [] : codes);
  expect(after.ok).toBe(isRepaired);
}

test("the job of a step is deleted from Redis: STEP_JOB_MISSING", async () => {
  const id = await start("idle");
  await query(
    "update step_executions set created_at = now() - interval '30 s' where instance_id = $1",
    [id],
  );
  const jobId = stepJobId({ ...step, instanceId: id, path: "work", taskId: "noop" });
  expect((await check(id)).findings).toEqual([]);

  await services.queue.removeStep("idle", jobId);
  const found = await check(id);
  const { repaired, after } = await repair(id);

  expect(codesOf(found)).toEqual(["STEP_JOB_MISSING"]);
  expect(repaired).toEqual(found.findings);
  expect(after.ok).toBe(true);
  expect(await services.queue.known("idle", [jobId])).toEqual(new Set([jobId]));
});

const step = { tenantId: "default", iteration: 1, attempt: 1, fence: 0 };

test("a child has settled, and its parent will not hear of it: CHILD_END_UNREPORTED", async () => {
  const id = await start("parent");
  const childId = await childOf(id);
  await api.call("POST", `/v1/instances/${childId}/cancel`, {});
  await query("delete from child_signals where instance_id = $1", [id]);

  const found = await check(id);
  const { after } = await repair(id);
  await withWorker(() => settled(id));

  expect(codesOf(found)).toEqual(["CHILD_END_UNREPORTED", "STUCK"]);
  expect(after.ok).toBe(true);
  expect((await api.call("GET", `/v1/instances/${id}`)).body.status).toBe("FAILED");
});

test("what parent and child told each other cannot be read: CHILD_SIGNAL_UNREADABLE; each is told again by the other's row", async () => {
  const id = await start("parent");
  const childId = await childOf(id);
  await query(
    `insert into child_signals (tenant_id, instance_id, kind, child_id, sent_version, path, iteration,
      attempt, body, sent_at, look_at)
    values ('default', $1, 'CANCEL', $1, 1, 'child', 1, 1, 'null', now(), 'infinity')`,
    [childId],
  );

  const ofChild = await check(childId);
  const child = await repair(childId);
  await query("update child_signals set body = '7' where instance_id = $1", [id]);
  await withWorker(async () => {
    await services.queue.addAdvance([
      { job: { tenantId: "default", instanceId: id, cause: `child.${childId}` }, priority: 0 },
    ]);
    const seen = await api.call("GET", `/v1/instances/${childId}`);
    expect(seen.body.status).toBe("CANCELLED");
  });
  const ofParent = await check(id);
  const { after } = await repair(id);
  await withWorker(() => settled(id));

  expect(codesOf(ofChild)).toEqual(["CHILD_SIGNAL_UNREADABLE"]);
  expect(child.after.ok).toBe(true);
  expect(codesOf(ofParent)).toEqual(["CHILD_SIGNAL_UNREADABLE"]);
  expect(after.ok).toBe(true);
  const { body } = await api.call("GET", `/v1/instances/${id}`);
  expect(body.error).toMatchObject({ type: "CHILD_CANCELLED" });
});

test("a parent is deleted, and its child is not: PARENT_MISSING", async () => {
  const id = await start("parent");
  const childId = await childOf(id);
  await query("delete from workflow_instances where id = $1", [id]);

  const found = await check(childId);

  expect(codesOf(found)).toEqual(["PARENT_MISSING"]);
});

test("the definition version is deleted: DEFINITION_MISSING, and nothing is done without it", async () => {
  const id = await start("doomed");
  await query("delete from workflow_definitions where id = 'doomed'", []);
  await query("delete from timers where instance_id = $1", [id]);

  const found = await check(id);
  const { repaired } = await repair(id);

  expect(codesOf(found)).toEqual(["DEFINITION_MISSING", "TIMER_MISSING", "STUCK"]);
  expect(found.findings.every(({ repairable }) => !repairable)).toBe(true);
  expect(repaired).toEqual([]);
});

test("a step that killed its workers is poisoned by a repair, as it would be by a scheduler; its dead letter is deleted: DEAD_LETTER_MISSING", async () => {
  const id = await start("task");
  await query(
    `update step_executions set status = 'RUNNING', fence = 5, lapses = 4, worker_id = gen_random_uuid(),
      started_at = now() - interval '1 min', look_at = null
    where instance_id = $1`,
    [id],
  );
  const poisoned = await repair(id);
  await query("delete from dead_letters where instance_id = $1", [id]);

  const found = await check(id);
  const { after } = await repair(id);

  expect(poisoned.after.ok).toBe(true);
  expect(codesOf(found)).toEqual(["DEAD_LETTER_MISSING"]);
  expect(after.ok).toBe(true);
  const { body } = await api.call("GET", `/v1/dead-letters`);
  expect(body.items.map(({ instanceId }: { instanceId: string }) => instanceId)).toContain(id);
});

test("an event that came while its wait was gone is found when the wait is opened again", async () => {
  const id = await start("wait");
  await query("delete from waits where instance_id = $1", [id]);
  await api.call("POST", "/v1/events", { pattern: "paid", payload: { order: 1 } });

  await repair(id);
  await withWorker(() => settled(id));

  const { body } = await api.call("GET", `/v1/instances/${id}`);
  expect(body).toMatchObject({ status: "COMPLETED" });
  expect((await check(id)).findings).toEqual([]);
});

test("how a wait is keyed is forgotten: SHAPE_MISSING; a repair finds what came meanwhile, and all that wait so look for it", async () => {
  const wait = {
    stepId: "pay",
    type: "EVENT_WAIT",
    eventPattern: "unheard",
    eventCondition: "event.payload.order === input.order",
  };
  await api.call("POST", "/v1/definitions", { id: "unheard", steps: [wait] });
  const early = await start("unheard");
  await query("delete from wait_shapes where pattern = 'unheard'", []);
  const late = await start("unheard");
  await api.call("POST", "/v1/events", { pattern: "unheard", payload: { order: 1 } });

  const found = await check(late);
  const refused = await api.call("POST", `/v1/instances/${late}/repair`, undefined, {
    "if-match": '"99"',
  });
  const { after } = await repair(late);

  expect(codesOf(found)).toEqual(["SHAPE_MISSING"]);
  expect(refused.status).toBe(412);
  expect(after.ok).toBe(true);
  const waits = await query(
    `select instance_id = $1::uuid as is_early, looked_back, matched_event_id is null as is_open
    from waits where pattern = 'unheard' order by is_early`,
    [early],
  );
  expect(waits).toMatchObject([
    { is_early: false, is_open: false },
    { is_early: true, looked_back: false },
  ]);
});

test("a step whose commit had to wait for the database is as good as any", async () => {
  const id = await start("wait");
  await query(
    "update step_executions set created_at = now() + interval '50 s' where instance_id = $1",
    [id],
  );

  expect((await check(id)).findings).toEqual([]);
});

test("rows of an instance that is deleted by hand are found, and deleted; what others have stays", async () => {
  const { db } = services.database;
  const [parent, other] = [await start("parent"), await start("queued")];
  const before = await findLeftovers(db);
  const tables = await rowsOf(other);
  await query("delete from workflow_instances where id = any ($1::uuid[])", [
    [parent, await childOf(parent)],
  ]);

  const found = await findLeftovers(db);
  await deleteLeftovers(db);

  const added = found.flatMap(({ table, rows }) =>
    rows > (before.find((each) => each.table === table)?.rows ?? 0) ? [table] : [],
  );
  expect(added).toEqual(["step_executions", "history", "waits", "timers", "children"]);
  expect(await findLeftovers(db)).toEqual([]);
  expect(await rowsOf(other)).toEqual(tables);
  expect((await check(other)).findings).toEqual([]);
});

test("a document that was edited is found: DEFINITION_DIFFERS, and nothing is replayed by it; a version that is gone, too", async () => {
  const { db } = services.database;
  for (const id of ["edited", "vanished"]) {
    const rest = { stepId: "rest", type: "DELAY", duration: "P1D" };
    await api.call("POST", "/v1/definitions", { id, steps: [rest] });
  }
  const [edited, vanished] = [await start("edited"), await start("vanished")];
  await api.call("POST", "/v1/instances", { workflowId: "edited", tenantId: "acme" });
  await query(
    `update workflow_definitions set document = replace(document::text, 'P1D', 'P2D')::json
    where id = 'edited'`,
    [],
  );
  await query("delete from workflow_definitions where id = 'vanished'", []);

  const found = await check(edited);
  const versions = await findFaultyDefinitions(db);

  expect(codesOf(found)).toEqual(["DEFINITION_DIFFERS"]);
  expect((await repair(edited)).repaired).toEqual([]);
  expect(codesOf(await check(vanished))).toEqual(["DEFINITION_MISSING"]);
  expect(versions).toEqual(
    expect.arrayContaining([
      { id: "edited", version: 1, instances: 2, fault: "EDITED" },
      { id: "vanished", version: 1, instances: 1, fault: "MISSING" },
    ]),
  );
  expect(versions.filter(({ id }) => !["edited", "vanished", "doomed"].includes(id))).toEqual([]);
});

test("what was found of a version that is not the instance's any more is not written into its history", async () => {
  const { db } = services.database;
  const instanceId = await start("wait");
  const key = { tenantId: "default", instanceId };
  const { version } = await check(instanceId);
  const made = [{ version, changes: {}, entries: [] }];

  await restoreHistory(db, key, version - 1, made);
  const late = await check(instanceId);
  await restoreHistory(db, key, version, made);

  expect(late.findings).toEqual([]);
  expect(codesOf(await check(instanceId))).not.toEqual([]);
});

test("a history that cannot be read keeps nobody from reading the rest", async () => {
  const [id, other] = [await start("wait"), await start("wait")];
  await query(
    `update history set signals = '7', changes = 'null', entries = '{"a":1}' where instance_id = $1`,
    [id],
  );

  const answers = await Promise.all(
    [id, other].flatMap((each) =>
      ["", "/history", "/state", "/steps", "/consistency"].map((path) =>
        api.call("GET", `/v1/instances/${each}${path}`),
      ),
    ),
  );
  const list = await api.call("GET", "/v1/instances?workflowId=wait");

  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(codesOf(await check(id))).toEqual(["REPLAY_DIFFERS"]);
  expect(list.body.items.map((item: { id: string }) => item.id)).toContain(id);
});

test("a start key whose instance is gone is counted, and a repeat of it is told so", async () => {
  const { db } = services.database;
  const before = await countKeysWithoutInstance(db);
  const again = () =>
    api.call("POST", "/v1/instances", { workflowId: "idle" }, { "idempotency-key": "gone" });
  const { body } = await again();
  await query("delete from workflow_instances where id = $1", [body.id]);

  expect(await countKeysWithoutInstance(db)).toBe(before + 1);
  expect((await again()).status).toBe(404);
});

test("a history that is ahead of its instance refuses each verb in words, until it is repaired", async () => {
  const id = await start("wait");
  await query(
    `insert into history overriding user value select (jsonb_populate_record(h, '{"version": 2}')).* from history h
     where instance_id = $1 and version = 1`,
    [id],
  );

  const refused = await Promise.all(
    ["pause", "cancel"].map((verb) => api.call("POST", `/v1/instances/${id}/${verb}`, {})),
  );
  await repair(id);
  const paused = await api.call("POST", `/v1/instances/${id}/pause`, {});

  for (const { status, body } of refused) {
    expect([status, body.code]).toEqual([409, "INSTANCE_DAMAGED"]);
    expect(body.detail).toContain("is at version 1, and its history goes beyond that");
    expect(body.detail).toContain(`millrace doctor --instance ${id} --repair`);
  }
  expect(paused.status).toBe(202);
});

test("a repair is in the history: who asked for it, and what was found", async () => {
  const id = await start("wait");
  await query("delete from timers where instance_id = $1 and kind = 'wait'", [id]);

  await repair(id);

  const { body } = await api.call("GET", `/v1/instances/${id}/history`);
  const entry = body.items.find(({ type }: { type: string }) => type === "workflow.repaired");
  expect(entry).toMatchObject({ data: { findings: ["TIMER_MISSING"] } });
  expect((await check(id)).ok).toBe(true);
});

test("while workers are at it, repairs of healthy instances change nothing, and find nothing", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => start("chain")));
  let repairs: readonly RepairView[] = [];

  await withWorker(async () => {
    repairs = await Promise.all(ids.map(repair));
    await Promise.all(ids.map(settled));
  });

  expect(repairs.flatMap(({ before, repaired }) => [...before.findings, ...repaired])).toEqual([]);
  const rows = await query(
    "select 1 from history where entries::text like '%repaired%' and instance_id = any ($1::uuid[])",
    [ids],
  );
  expect(rows).toEqual([]);
});

async function rowsOf(id: string) {
  return query(
    `select (select count(*) from step_executions where instance_id = $1) as steps,
      (select count(*) from history where instance_id = $1) as history,
      (select count(*) from limit_slots where instance_id = $1) as slots`,
    [id],
  );
}

async function childOf(id: string): Promise<string> {
  const [child] = await query("select child_id as id from children where instance_id = $1", [id]);
  return String(child?.["id"]);
}

test("a scheduler checks some instances a minute: what it finds is counted and logged, and left alone", async () => {
  const id = await start("wait");
  await query("delete from timers where instance_id = $1", [id]);

  const scheduler = await runScheduler(services, { checksPerMinute: 600 });
  const counted = /^millrace_consistency_findings_total\{code="TIMER_MISSING"\} [1-9]/m;
  await eventually("a finding", async () => counted.test(await services.metrics.text()), {
    timeoutMs: 30_000,
  });
  await scheduler.close();

  expect(await services.metrics.text()).toMatch(/^millrace_consistency_checked_total [1-9]/m);
  expect(codesOf(await check(id))).toContain("TIMER_MISSING");
});

function codesOf({ findings }: ConsistencyView): readonly ConsistencyCode[] {
  return findings.map(({ code }) => code);
}

async function start(workflowId: string): Promise<string> {
  const answer = await api.call("POST", "/v1/instances", { workflowId, input: { order: 1 } });
  return answer.body.id;
}

async function check(id: string): Promise<ConsistencyView> {
  const answer = await api.call("GET", `/v1/instances/${id}/consistency`);
  return answer.body;
}

async function repair(id: string): Promise<RepairView> {
  const answer = await api.call("POST", `/v1/instances/${id}/repair`);
  return answer.body;
}

async function query(
  text: string,
  values: readonly unknown[],
): Promise<readonly Record<string, unknown>[]> {
  const { rows } = await services.database.db.executeQuery<Record<string, unknown>>(
    CompiledQuery.raw(text, [...values]),
  );
  return rows;
}

async function settled(id: string): Promise<void> {
  await eventually("its end", async () => {
    const { body } = await api.call("GET", `/v1/instances/${id}`);
    return body.completedAt !== null;
  });
}

async function retrying(id: string): Promise<void> {
  await eventually("a retry", async () => {
    const rows = await query("select status from step_executions where instance_id = $1", [id]);
    return rows.some(({ status }) => status === "RETRYING");
  });
}

async function withWorker(act: () => Promise<void>): Promise<void> {
  const settings = { tasks: [], queues: ["default"], concurrency: 20, graceMs: 0 };
  const worker = await runWorker(services, settings);
  await act();
  await worker.close();
}
