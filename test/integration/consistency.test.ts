import type { ConsistencyCode, ConsistencyView, RepairView } from "@millrace/contract";
import { stepJobId } from "@millrace/queue";
import { runScheduler, runWorker, type Services } from "@millrace/runtime";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CompiledQuery } from "kysely";
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
    const ended = damages.filter(({ of }) => of === "chain" || of === "fails");
    await Promise.all(
      ended.map(async (damage) => {
        const id = await start(damage.of);
        instances.set(damage, id);
        await settled(id);
      }),
    );
  });
  for (const damage of damages) {
    if (!instances.has(damage)) instances.set(damage, await start(damage.of));
  }
}, 60_000);
afterAll(() => api.close());

const instances = new Map<Damage, string>();

const definitions = [
  {
    id: "wait",
    timeout: "P30D",
    steps: [
      {
        stepId: "pay",
        type: "EVENT_WAIT",
        eventPattern: "paid",
        eventCondition: "event.payload.order === input.order",
        eventTimeout: { duration: "P1D", timeoutHandlerStepId: "late" },
        transitions: { default: "ship" },
      },
      { stepId: "ship", type: "TASK", taskId: "noop" },
      { stepId: "late", type: "TASK", taskId: "noop" },
    ],
    cancellationTriggers: [
      {
        eventPattern: "order.cancelled",
        eventCondition: "event.payload.order === input.order",
        reason: "asked",
      },
    ],
  },
  {
    id: "task",
    steps: [{ stepId: "work", type: "TASK", taskId: "noop", totalTimeout: "P1D" }],
  },
  {
    id: "chain",
    variables: { seen: 0 },
    steps: [
      { stepId: "a", type: "TASK", taskId: "echo", input: { n: 1 }, transitions: { default: "b" } },
      {
        stepId: "b",
        type: "SET",
        variables: { seen: "${ steps.a.output.n }" },
        transitions: { default: "c" },
      },
      { stepId: "c", type: "TASK", taskId: "echo", input: { n: "${ variables.seen + 1 }" } },
    ],
  },
  {
    id: "fails",
    steps: [{ stepId: "no", type: "TASK", taskId: "fail", retry: { maxAttempts: 1 } }],
  },
  { id: "idle", steps: [{ stepId: "work", type: "TASK", taskId: "noop", queue: "idle" }] },
  {
    id: "queued",
    concurrency: { limit: 1 },
    steps: [{ stepId: "work", type: "TASK", taskId: "noop" }],
  },
  { id: "doomed", steps: [{ stepId: "rest", type: "DELAY", duration: "P1D" }] },
  { id: "parent", steps: [{ stepId: "child", type: "SUB_WORKFLOW", workflowId: "wait" }] },
  {
    id: "emits",
    steps: [
      {
        stepId: "say",
        type: "EMIT_EVENT",
        eventPattern: "said",
        payload: { a: 1 },
        transitions: { default: "rest" },
      },
      { stepId: "rest", type: "DELAY", duration: "P1D" },
    ],
  },
];

/** What is done to an instance, what must be found of it, and whether it can be mended. */
interface Damage {
  readonly name: string;
  readonly of: "wait" | "task" | "parent" | "emits" | "chain" | "fails" | "queued";
  /** `$1` is the instance. */
  readonly sql: readonly string[];
  readonly codes: readonly ConsistencyCode[];
  readonly isRepaired: boolean;
}

const damages: readonly Damage[] = [
  {
    name: "the row of a wait is deleted",
    of: "wait",
    sql: ["delete from waits where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_MISSING"],
    isRepaired: true,
  },
  {
    name: "the row of a cancellation trigger is deleted",
    of: "wait",
    sql: ["delete from waits where instance_id = $1 and path = '$cancel'"],
    codes: ["WAIT_MISSING"],
    isRepaired: true,
  },
  {
    name: "a wait has the key of another order",
    of: "wait",
    sql: ["update waits set key_hash = 42 where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a wait has another pattern",
    of: "wait",
    sql: ["update waits set pattern = 'other' where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a wait of a step that the instance is not at",
    of: "task",
    sql: [
      `insert into waits (tenant_id, instance_id, path, iteration, step_id, purpose, pattern, event_paths,
        key_hash, deliver, opened_at, looked_back)
      values ('default', $1, 'work', 1, 'work', 'STEP', 'paid', '', 0, 'ALL', now(), true)`,
    ],
    codes: ["WAIT_STRAY"],
    isRepaired: true,
  },
  {
    name: "a wait of an instance that has settled",
    of: "chain",
    sql: [
      `insert into waits (tenant_id, instance_id, path, iteration, step_id, purpose, pattern, event_paths,
        key_hash, deliver, opened_at, looked_back)
      values ('default', $1, 'a', 1, 'a', 'STEP', 'paid', '', 0, 'ALL', now(), true)`,
    ],
    codes: ["WAIT_STRAY"],
    isRepaired: true,
  },
  {
    name: "a wait was taken by an event that is gone",
    of: "wait",
    sql: [
      "update waits set matched_event_id = 'gone', matched_at = now() where instance_id = $1 and path = 'pay'",
    ],
    codes: ["WAIT_EVENT_MISSING"],
    isRepaired: true,
  },
  {
    name: "a match of long ago was never applied",
    of: "wait",
    sql: [
      `insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor, matched_at)
      values ('default', 'match-' || $1::text, 'paid', '{"order":1}', now(), now(), 'test', now())`,
      `update waits set matched_event_id = 'match-' || $1::text, matched_at = now() - interval '5 min'
      where instance_id = $1::uuid and path = 'pay'`,
    ],
    codes: ["MATCH_NOT_APPLIED"],
    isRepaired: true,
  },
  {
    name: "a lookback was never done",
    of: "wait",
    sql: [
      `update waits set looked_back = false, lookback_from = opened_at, opened_at = now() - interval '5 min'
      where instance_id = $1 and path = 'pay'`,
    ],
    codes: ["LOOKBACK_NOT_DONE"],
    isRepaired: true,
  },
  {
    name: "a timer is deleted",
    of: "wait",
    sql: ["delete from timers where instance_id = $1 and kind = 'wait'"],
    codes: ["TIMER_MISSING"],
    isRepaired: true,
  },
  {
    name: "the timer of the instance is deleted",
    of: "wait",
    sql: ["delete from timers where instance_id = $1 and kind = 'timeout'"],
    codes: ["TIMER_MISSING"],
    isRepaired: true,
  },
  {
    name: "a timer is due at another time",
    of: "wait",
    sql: [
      "update timers set due_at = due_at + interval '1 day' where instance_id = $1 and kind = 'wait'",
    ],
    codes: ["TIMER_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a timer is held for ever",
    of: "emits",
    sql: ["update timers set look_at = 'infinity' where instance_id = $1"],
    codes: ["TIMER_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a timer that nobody set",
    of: "task",
    sql: [
      `insert into timers (tenant_id, instance_id, path, iteration, kind, attempt, due_at, look_at)
      values ('default', $1, 'work', 1, 'schedule', 1, now() + interval '1 day', now() + interval '1 day')`,
    ],
    codes: ["TIMER_STRAY"],
    isRepaired: true,
  },
  {
    name: "the last thing that could wake it is deleted",
    of: "emits",
    sql: ["delete from timers where instance_id = $1"],
    codes: ["TIMER_MISSING", "STUCK"],
    isRepaired: true,
  },
  {
    name: "the row of a step that is to run is deleted",
    of: "task",
    sql: ["delete from step_executions where instance_id = $1"],
    codes: ["STEP_MISSING"],
    isRepaired: true,
  },
  {
    name: "the row of a step is settled, and the instance is not",
    of: "task",
    sql: [
      "update step_executions set status = 'COMPLETED', completed_at = now() where instance_id = $1",
    ],
    codes: ["STEP_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a step runs in an instance that has settled",
    of: "chain",
    sql: [
      `insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status, attempt,
        task_id, queue, created_at)
      values ('default', $1, 'c', 2, 'c', 'TASK', 'RUNNING', 1, 'noop', 'default', now())`,
    ],
    codes: ["STEP_STRAY"],
    isRepaired: true,
  },
  {
    name: "a step runs under a worker that never existed",
    of: "task",
    sql: [
      `update step_executions set status = 'RUNNING', fence = 1, look_at = null,
        worker_id = gen_random_uuid(), started_at = now() - interval '1 min',
        created_at = now() - interval '2 min' where instance_id = $1`,
    ],
    codes: ["STEP_HOLDER_LOST"],
    isRepaired: true,
  },
  {
    name: "a step runs under no worker",
    of: "task",
    sql: [
      `update step_executions set status = 'RUNNING', fence = 1, look_at = null, worker_id = null,
        started_at = now() - interval '1 min', created_at = now() - interval '2 min'
      where instance_id = $1`,
    ],
    codes: ["STEP_HOLDER_LOST"],
    isRepaired: true,
  },
  {
    name: "nobody looks whether the job of a step is there",
    of: "task",
    sql: ["update step_executions set look_at = null where instance_id = $1"],
    codes: ["STEP_OVERLOOKED"],
    isRepaired: true,
  },
  {
    name: "a step is held, and nothing is paused",
    of: "task",
    sql: ["update step_executions set held = true, look_at = null where instance_id = $1"],
    codes: ["STEP_HOLD_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a step has the completion number of another",
    of: "chain",
    sql: ["update step_executions set completion = 1 where instance_id = $1 and path = 'b'"],
    codes: ["COMPLETIONS_DIFFER"],
    isRepaired: true,
  },
  {
    name: "the row of a settled step is deleted",
    of: "chain",
    sql: ["delete from step_executions where instance_id = $1 and path = 'b'"],
    codes: ["STEP_MISSING"],
    isRepaired: false,
  },
  {
    name: "a step that the definition does not have",
    of: "chain",
    sql: [
      "update step_executions set step_id = 'nowhere', path = 'nowhere' where instance_id = $1 and path = 'b'",
    ],
    codes: ["STEP_UNKNOWN", "STEP_MISSING"],
    isRepaired: false,
  },
  {
    name: "a step is of another type",
    of: "chain",
    sql: ["update step_executions set type = 'DELAY' where instance_id = $1 and path = 'b'"],
    codes: ["STEP_TYPE_DIFFERS"],
    isRepaired: false,
  },
  {
    name: "a step completed next year",
    of: "chain",
    sql: [
      "update step_executions set completed_at = now() + interval '1 year' where instance_id = $1 and path = 'b'",
    ],
    codes: ["TIMES_DISAGREE"],
    isRepaired: false,
  },
  {
    name: "the status is changed by hand",
    of: "wait",
    sql: ["update workflow_instances set status = 'COMPLETED', completed_at = now() where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a settled instance is set RUNNING by hand",
    of: "chain",
    sql: ["update workflow_instances set status = 'RUNNING' where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the output is changed by hand",
    of: "chain",
    sql: [`update workflow_instances set output = '{"n":7}' where id = $1`],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the version is raised by hand",
    of: "wait",
    sql: ["update workflow_instances set version = version + 3 where id = $1"],
    codes: ["VERSION_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the state is another JSON",
    of: "wait",
    sql: [`update workflow_instances set snapshot = '[1, 2]' where id = $1`],
    codes: ["SNAPSHOT_UNREADABLE"],
    isRepaired: true,
  },
  {
    name: "nothing is live in the state any more",
    of: "wait",
    sql: [`update workflow_instances set snapshot = '{"format":1}' where id = $1`],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "progress is beyond the end",
    of: "chain",
    sql: [
      `update workflow_instances set snapshot = '{"format":1,"completions":3,"completedSteps":9,"lastOutput":"c#1"}'
      where id = $1`,
    ],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a row of the history is deleted",
    of: "chain",
    sql: ["delete from history where instance_id = $1 and version = 2"],
    codes: ["HISTORY_GAP"],
    isRepaired: false,
  },
  {
    name: "changes in the history are altered",
    of: "chain",
    sql: [`update history set changes = '{"priority":7}' where instance_id = $1 and version = 2`],
    codes: ["HISTORY_DIFFERS"],
    isRepaired: false,
  },
  {
    name: "signals in the history are altered",
    of: "chain",
    sql: [`update history set signals = '[]' where instance_id = $1 and version = 2`],
    codes: ["REPLAY_DIFFERS"],
    isRepaired: false,
  },
  {
    name: "the link to a child is deleted",
    of: "parent",
    sql: ["delete from children where instance_id = $1"],
    codes: ["CHILD_MISSING"],
    isRepaired: true,
  },
  {
    name: "a child is deleted, and its link is not",
    of: "parent",
    sql: [
      "delete from workflow_instances where id = (select child_id from children where instance_id = $1)",
    ],
    codes: ["CHILD_MISSING"],
    isRepaired: false,
  },
  {
    name: "what a child has told is not taken note of",
    of: "wait",
    sql: [
      `insert into child_signals (tenant_id, instance_id, kind, child_id, sent_version, path, iteration,
        attempt, body, sent_at, look_at)
      values ('default', $1, 'CANCEL', $1, 1, 'x', 1, 1,
        '{"reason":null,"shouldCompensate":true,"parentId":"x"}', now() - interval '5 min', 'infinity')`,
    ],
    codes: ["CHILD_SIGNAL_LEFT"],
    isRepaired: true,
  },
  {
    name: "an emitted event was not matched",
    of: "emits",
    sql: [
      `update events set matched_at = null, received_at = now() - interval '5 min'
      where actor = 'instance:' || $1::text`,
    ],
    codes: ["EVENT_NOT_MATCHED"],
    isRepaired: true,
  },
  {
    name: "deliveries are left of an instance that has settled",
    of: "chain",
    sql: [
      `insert into event_deliveries (tenant_id, instance_id, event_id, delivered_at)
      values ('default', $1, 'x', now() - interval '5 min')`,
    ],
    codes: ["DELIVERIES_LEFT"],
    isRepaired: true,
  },
  {
    name: "a dead letter of an instance that has none",
    of: "fails",
    sql: [
      `insert into dead_letters (tenant_id, instance_id, workflow_id, workflow_version, path, iteration,
        step_id, attempt, error, deliveries, status, created_at)
      values ('default', $1, 'fails', 1, 'no', 1, 'no', 1, '{}', '[]', 'OPEN', now())`,
    ],
    codes: ["DEAD_LETTER_STRAY"],
    isRepaired: true,
  },
  {
    name: "the place in the queue of a limit is deleted",
    of: "queued",
    sql: ["delete from limit_slots where instance_id = $1"],
    codes: ["SLOT_MISSING", "STUCK"],
    isRepaired: true,
  },
  {
    name: "a slot answers another request than that of the instance",
    of: "queued",
    sql: ["update limit_slots set request = 7 where instance_id = $1"],
    codes: ["SLOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a slot is taken by an instance without a limit",
    of: "task",
    sql: [
      `insert into limit_slots (tenant_id, limit_key, instance_id, status, request, has_run, priority,
        wanted_at, granted_at)
      values ('default', 'type:task', $1, 'HELD', 1, true, 0, now(), now())`,
    ],
    codes: ["SLOT_STRAY"],
    isRepaired: true,
  },
];

test.concurrent.each(damages)("$name: $codes", async (damage) => {
  const { sql, codes, isRepaired } = damage;
  const id = instances.get(damage) ?? "";
  expect((await check(id)).findings).toEqual([]);

  for (const statement of sql) await query(statement, [id]);
  const found = await check(id);
  const { after } = await repair(id);

  expect(codesOf(found)).toEqual(expect.arrayContaining([...codes]));
  expect(found.ok).toBe(false);
  for (const finding of found.findings) {
    expect(finding.message).toMatch(/\w/);
    expect(finding.repairable ? finding.repair : finding.advice).toMatch(/\w/);
  }
  const left = codes.filter((code) => codesOf(after).includes(code));
  expect(left).toEqual(isRepaired ? [] : codes);
  expect(after.ok).toBe(isRepaired);
});

test("the job of a step is deleted from Redis: STEP_JOB_MISSING", async () => {
  const id = await start("idle");
  await query(
    "update step_executions set created_at = now() - interval '1 min' where instance_id = $1",
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
      created_at = now() - interval '1 min', started_at = now() - interval '1 min', look_at = null
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

async function withWorker(act: () => Promise<void>): Promise<void> {
  const settings = { tasks: [], queues: ["default"], concurrency: 20, graceMs: 0 };
  const worker = await runWorker(services, settings);
  await act();
  await worker.close();
}
