import type { DeadLetterView, WorkflowDefinition } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

// A step whose workers died of it: what the rows then look like is written here; that workers really
// die so is shown in test/faults/workers-lost.test.ts.

const definition: WorkflowDefinition = {
  id: "deadly",
  steps: [
    { stepId: "pay", type: "TASK", taskId: "noop", transitions: { default: "kill" } },
    { stepId: "kill", type: "TASK", taskId: "kills", retry: { maxAttempts: 3 } },
  ],
  compensationSteps: [{ stepId: "refund", compensationFor: "pay", type: "TASK", taskId: "noop" }],
};

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
  await api.call("PUT", `/v1/definitions/${definition.id}`, definition);
});
afterAll(() => api?.close());

test("a step that killed five workers fails its instance, with a dead letter that says what is known of them", async () => {
  const id = await poisoned();

  const letter = await letterOf(id);
  const instance = await api.call("GET", `/v1/instances/${id}`);
  const why = await api.call("GET", `/v1/instances/${id}/why`);

  expect(instance.body).toMatchObject({
    status: "FAILED",
    error: {
      kind: "POISONED",
      message: expect.stringContaining("its dead letter says of what, and where their logs"),
      stepId: "kill",
      details: { deliveries: 5, deadLetter: "OPEN" },
    },
    compensation: null,
    state: { steps: { kill: { status: "FAILED", attempts: 1, deliveries: 5 } } },
  });
  expect(letter).toMatchObject({
    status: "OPEN",
    workflowId: "deadly",
    stepId: "kill",
    executionId: "kill#1",
    taskId: "kills",
    attempt: 1,
    resolvedAt: null,
  });
  expect(letter.deliveries).toHaveLength(5);
  expect(letter.deliveries[0]).toMatchObject({
    host: "there",
    pid: 41,
    rssBytes: 1_000,
    attempt: 1,
    log: expect.stringContaining('the last lines with "pid":41 and "hostname":"there", from 2'),
  });
  expect(letter.deliveries[4]?.lastBeatAt).toMatch(/Z$/);
  expect((await api.call("GET", `/v1/dead-letters/${letter.id}`)).body).toEqual(letter);
  expect(why.body.reasons).toMatchObject([{ kind: "DEAD_LETTER", deadLetterId: letter.id }]);
  expect(why.body.summary).toContain(letter.id);
});

test("discarding it has undone what was done, once, and says who did so", async () => {
  const id = await poisoned();
  const { id: letterId } = await letterOf(id);

  const discards = await Promise.all(
    [1, 2, 3].map(() =>
      api.call("POST", `/v1/dead-letters/${letterId}/discard`, {
        reason: "bad input",
        requestedBy: "ada",
      }),
    ),
  );
  const ended = await api.call("GET", `/v1/instances/${id}?wait=20`);
  const { body: history } = await api.call("GET", `/v1/instances/${id}/history`);
  const { body: page } = await api.call("GET", `/v1/dead-letters?instanceId=${id}&status=ALL`);

  expect(discards.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 409, 409]);
  const refused = discards.find(({ status }) => status === 409);
  expect(refused?.body).toMatchObject({ code: "DEAD_LETTER_RESOLVED" });
  expect(ended.body).toMatchObject({
    status: "FAILED",
    compensation: { status: "COMPLETED", completed: ["refund"] },
  });
  expect(page.items).toMatchObject([
    { id: letterId, status: "DISCARDED", resolvedBy: "ada", reason: "bad input" },
  ]);
  const entries = history.items.filter(
    ({ type }: { type: string }) => type === "workflow.deadLetter.discarded",
  );
  expect(entries).toMatchObject([{ actor: "ada", data: { reason: "bad input" } }]);
});

test("retried, the instance goes on from the step, with deliveries counted anew", async () => {
  const id = await poisoned();
  const { id: letterId } = await letterOf(id);
  const retry = () =>
    api.call("POST", `/v1/dead-letters/${letterId}/retry`, {
      reason: "mended",
      requestedBy: "ada",
    });

  const retried = await retry();
  await eventually("the step", async () => (await latestOf(id))?.status === "PENDING");
  const going = await api.call("GET", `/v1/instances/${id}`);
  const again = await retry();
  const discard = await api.call("POST", `/v1/dead-letters/${letterId}/discard`);

  expect(retried).toMatchObject({
    status: 202,
    body: { id: letterId, status: "RETRIED", resolvedBy: "ada", reason: "mended" },
  });
  expect(going.body).toMatchObject({ status: "RUNNING", error: null, compensation: null });
  expect(await latestOf(id)).toEqual({ status: "PENDING", deliveries: 0, lapses: 0 });
  expect([again, discard].map(({ status }) => status)).toEqual([409, 409]);
  expect((await api.call("GET", `/v1/dead-letters?instanceId=${id}`)).body.items).toEqual([]);
});

test("a cancel of the instance discards it, and undoes what was done", async () => {
  const id = await poisoned();
  const { id: letterId } = await letterOf(id);

  const cancelled = await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "give up" });
  const ended = await api.call("GET", `/v1/instances/${id}?wait=20`);

  expect(cancelled.status).toBe(202);
  expect(ended.body).toMatchObject({
    status: "CANCELLED",
    error: null,
    compensation: { status: "COMPLETED", completed: ["refund"] },
  });
  expect((await api.call("GET", `/v1/dead-letters/${letterId}`)).body).toMatchObject({
    status: "DISCARDED",
    reason: "give up",
  });
});

test("a compensation step has one, too: the compensation stands there until it is retried or discarded", async () => {
  await api.call("PUT", "/v1/definitions/deadly_undo", {
    id: "deadly_undo",
    steps: [
      { stepId: "reserve", type: "TASK", taskId: "noop", transitions: { default: "pay" } },
      { stepId: "pay", type: "TASK", taskId: "noop", transitions: { default: "hear" } },
      { stepId: "hear", type: "EVENT_WAIT", eventPattern: "never" },
    ],
    compensationSteps: [
      { stepId: "release", compensationFor: "reserve", type: "TASK", taskId: "noop" },
      { stepId: "refund", compensationFor: "pay", type: "TASK", taskId: "kills" },
    ],
  });
  const { id } = (await api.call("POST", "/v1/instances", { workflowId: "deadly_undo" })).body;
  const view = async () => (await api.call("GET", `/v1/instances/${id}`)).body;
  await eventually("the wait", async () => (await view()).status === "WAITING_FOR_EVENT");
  await api.call("POST", `/v1/instances/${id}/cancel`, { shouldCompensate: true });
  const open = async () => {
    await kill(id, "refund");
    return eventually("the dead letter", async () => {
      return (await api.call("GET", `/v1/dead-letters?instanceId=${id}`)).body.items[0];
    });
  };

  const first = await open();
  const why = await api.call("GET", `/v1/instances/${id}/why`);
  const standing = await view();
  const consistency = await api.call("GET", `/v1/instances/${id}/consistency`);
  const retried = await api.call("POST", `/v1/dead-letters/${first.id}/retry`, {});
  const second = await open();
  const discarded = await api.call("POST", `/v1/dead-letters/${second.id}/discard`, {});
  const ended = await api.call("GET", `/v1/instances/${id}?wait=20`);

  expect(first).toMatchObject({ stepId: "refund", executionId: "refund#1", taskId: "kills" });
  expect(first.deliveries).toHaveLength(5);
  expect(why.body.reasons).toMatchObject([
    { kind: "DEAD_LETTER", deadLetterId: first.id, stepId: "refund", isCompensation: true },
  ]);
  expect(why.body.summary).toContain("go on with the others");
  expect(standing).toMatchObject({ status: "CANCELLED", compensation: { status: "IN_PROGRESS" } });
  expect(consistency.body.findings).toEqual([]);
  expect(retried).toMatchObject({ status: 202, body: { status: "RETRIED" } });
  expect(second).toMatchObject({ executionId: "refund#2" });
  expect(discarded).toMatchObject({ status: 202, body: { status: "DISCARDED" } });
  expect(ended.body.compensation).toMatchObject({
    status: "COMPLETED_WITH_ERRORS",
    completed: ["release"],
    failed: [{ stepId: "refund" }],
  });
});

test("the list has the open ones, the latest first and page by page, and none of another tenant", async () => {
  const ids = [await poisoned(), await poisoned(), await poisoned()];

  const first = await api.call("GET", "/v1/dead-letters?limit=2&workflowId=deadly");
  const cursor = encodeURIComponent(first.body.nextCursor);
  const second = await api.call("GET", `/v1/dead-letters?limit=2&cursor=${cursor}`);
  const other = await api.call("GET", "/v1/dead-letters", undefined, {
    "millrace-tenant": "other",
  });
  const [letter] = first.body.items as [DeadLetterView];
  const foreign = await api.call("POST", `/v1/dead-letters/${letter.id}/discard`, undefined, {
    "millrace-tenant": "other",
  });

  const found = [...first.body.items, ...second.body.items].map(({ instanceId }) => instanceId);
  expect(found.slice(0, 3)).toEqual(ids.toReversed());
  expect(other.body.items).toEqual([]);
  expect(foreign.status).toBe(404);
  expect((await api.call("GET", "/v1/dead-letters?cursor=nonsense")).status).toBe(400);
  expect((await api.call("GET", `/v1/dead-letters/${ids[0]}`)).status).toBe(404);
});

test("retried and discarded by several at once, and by way of its instance: one of them has it, and the others are told", async () => {
  const { compensationSteps: _none, ...plain } = definition;
  await api.call("PUT", "/v1/definitions/deadly_plain", { ...plain, id: "deadly_plain" });
  const ids = await Promise.all(
    [definition.id, "deadly_plain"].flatMap((workflowId) =>
      [1, 2, 3].map(() => poisoned(workflowId)),
    ),
  );

  const resolved = await Promise.all(
    ids.map(async (id, index) => {
      const { id: letterId } = await letterOf(id);
      const letter = `/v1/dead-letters/${letterId}`;
      const urls = [`${letter}/discard`, `${letter}/retry`, `/v1/instances/${id}/retry`];
      const calls = [...urls, ...urls, ...urls].map(
        (_url, at, all) => all[(at + index) % all.length],
      );
      const answers = await Promise.all(
        calls.map(async (url = "") => ({ url, ...(await api.call("POST", url, {})) })),
      );
      const { body: history } = await api.call("GET", `/v1/instances/${id}/history`);
      const told = history.items.map(({ type }: { type: string }) => type);
      await api.call("POST", `/v1/instances/${id}/cancel`, {});
      const { body: afterwards } = await api.call("GET", letter);
      return { letter, answers, told, afterwards };
    }),
  );

  for (const { letter, answers, told, afterwards } of resolved) {
    const accepted = answers.filter(({ status }) => status === 202);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 409]));
    const named = (end: string) => accepted.filter(({ url }) => url.endsWith(end));
    expect(named("/discard").length + named("/retry").length).toBe(accepted.length);
    const count = (type: string) => told.filter((each: string) => each === type).length;
    expect(count("workflow.deadLetter.discarded")).toBe(named("/discard").length);
    expect(count("workflow.retried")).toBe(named("/retry").length);
    // A call that names the letter is accepted only where it is the one that resolved it.
    const byName = accepted.filter(({ url }) => url.startsWith(letter));
    expect(byName.length).toBeLessThanOrEqual(1);
    for (const { url, body } of byName) {
      expect(body.status).toBe(url.endsWith("/retry") ? "RETRIED" : "DISCARDED");
      expect(afterwards.status).toBe(body.status);
    }
  }
});

/** As if four workers had died of the second step, and now the fifth. */
async function poisoned(workflowId = definition.id): Promise<string> {
  const { body } = await api.call("POST", "/v1/instances", { workflowId });
  await kill(body.id, "kill");
  await eventually("the end", async () => {
    return (await api.call("GET", `/v1/instances/${body.id}`)).body.status === "FAILED";
  });
  return body.id;
}

/** The step, once it is there, has been given to five workers, and each has died. */
async function kill(instanceId: string, path: string): Promise<void> {
  const { db } = api.services.database;
  await eventually(
    "the step",
    async () => (await latestOf(instanceId, path))?.status === "PENDING",
  );
  await sql`
    update step_executions
    set status = 'RUNNING', worker_id = gen_random_uuid(), deliveries = 5, lapses = 4, fence = 5,
      started_at = now(), look_at = null,
      lapse_log = (select jsonb_agg(jsonb_build_object('attempt', 1, 'workerId', gen_random_uuid(),
        'host', 'there', 'pid', 40 + n, 'lastBeatAt', now(), 'foundAt', now(), 'rssBytes', 1000,
        'exit', null)) from generate_series(1, 4) n)
    where instance_id = ${instanceId} and path = ${path} and status = 'PENDING'`.execute(db);
  await sql`
    insert into workers (id, host, pid, tasks, queues, beat_at)
    select worker_id, 'here', 45, '{}', '{}', now() - interval '10 s' from step_executions
    where instance_id = ${instanceId} and path = ${path} and status = 'RUNNING'`.execute(db);
}

/** The latest execution of the step that kills. */
async function latestOf(instanceId: string, path = "kill") {
  const { rows } = await sql<{ status: string; deliveries: number; lapses: number }>`
    select status, deliveries, lapses from step_executions
    where instance_id = ${instanceId} and path = ${path}
    order by iteration desc limit 1`.execute(api.services.database.db);
  return rows[0];
}

async function letterOf(instanceId: string): Promise<DeadLetterView> {
  const { body } = await api.call("GET", `/v1/dead-letters?instanceId=${instanceId}`);
  expect(body.items).toHaveLength(1);
  return body.items[0];
}
