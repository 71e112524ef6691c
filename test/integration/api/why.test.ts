import { CompiledQuery, sql } from "kysely";
import { fileURLToPath } from "node:url";
import { type WhyReasonView, WhyView } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { runWorker } from "@millrace/runtime";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { echo, openTestApi, type TestApi } from "./support.ts";

// P12: no instance is stuck without a reason that the API shows.

const stubborn = fileURLToPath(new URL("../../support/tasks/stubborn.mjs", import.meta.url));

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true, tasks: [stubborn] });
});
afterAll(() => api.close());

let made = 0;

/** Starts an instance of these steps, and asks why it is not moving once the reason is there. */
async function whyOf(
  kind: string,
  step: object,
  more: { readonly input?: object; readonly startAt?: string } = {},
): Promise<{ readonly id: string; readonly why: WhyView }> {
  const workflowId = `why${++made}`;
  const definition = { id: workflowId, variables: { least: 10 }, steps: [step] };
  const { status, body: problem } = await api.call("POST", "/v1/definitions", definition);
  expect([status, problem.errors]).toEqual([201, undefined]);
  const { body } = await api.call("POST", "/v1/instances", { workflowId, ...more });
  const why = await eventually(`the reason is ${kind}`, async () => {
    const view = await ask(body.id);
    return view.reasons.some((reason) => reason.kind === kind) ? view : undefined;
  });
  expect(WhyView.parse(why)).toEqual(why);
  return { id: body.id, why };
}

const reasonOf = (id: string, kind: string) =>
  eventually(`the reason is ${kind}`, async () =>
    (await ask(id)).reasons.find((reason) => reason.kind === kind),
  );

async function ask(id: string): Promise<WhyView> {
  return (await api.call("GET", `/v1/instances/${id}/why`)).body as WhyView;
}

const publish = async (pattern: string, payload: object) =>
  (await api.call("POST", "/v1/events", { pattern, payload })).body;

test("an isolated task runs in the process of a worker that shares it with others, which says so as it starts", async () => {
  const step = { stepId: "own", type: "TASK", taskId: "own_process" };
  await api.call("POST", "/v1/definitions", { id: "shared", steps: [step] });

  const { body } = await api.call("POST", "/v1/instances", { workflowId: "shared" });
  const ended = await api.call("GET", `/v1/instances/${body.id}?wait=30`);
  const warn = vi.spyOn(api.services.log, "warn");
  const options = { tasks: [stubborn], queues: ["other"], concurrency: 1, graceMs: 0 };
  await (await runWorker(api.services, options)).close();

  const tasks = ["own_process"];
  expect(warn).toHaveBeenCalledWith({ tasks }, expect.stringContaining("run in this process"));
  expect(ended.body).toMatchObject({ status: "COMPLETED", output: process.pid });
});

test("a task that no live worker knows", async () => {
  const step = { stepId: "odd", type: "TASK", taskId: "nobody_knows" };

  const { why } = await whyOf("NO_WORKER_KNOWS_TASK", step);

  expect(why.reasons).toMatchObject([
    { stepId: "odd", executionId: "odd#1", taskId: "nobody_knows", queue: "default", workers: [] },
  ]);
  expect(why.summary).toMatch(/no live worker on queue default does/);
});

test("a queue that no live worker serves", async () => {
  const step = { stepId: "far", type: "TASK", taskId: "echo", queue: "gpu" };

  const { why } = await whyOf("NO_WORKER_FOR_QUEUE", step);

  expect(why.reasons).toMatchObject([{ stepId: "far", taskId: "echo", queue: "gpu" }]);
});

test("a worker runs it, since when", async () => {
  const [worker] = (await api.call("GET", "/v1/workers")).body.items;
  const step = { stepId: "nap", type: "TASK", taskId: "sleep", input: { ms: 60_000 } };

  const { id, why } = await whyOf("RUNNING", step);

  expect(why.reasons).toMatchObject([{ stepId: "nap", workerId: worker.id, attempt: 1 }]);
  expect(Date.parse(why.reasons[0]?.since ?? "")).toBeLessThanOrEqual(Date.parse(why.at));
  await api.call("POST", `/v1/instances/${id}/cancel`, {});
});

test("the next attempt, when and after which error", async () => {
  const retry = { maxAttempts: 5, initialInterval: "PT1H", maxInterval: "PT1H", jitter: "NONE" };
  const step = { stepId: "try", type: "TASK", taskId: "fail", retry };

  const { id, why } = await whyOf("RETRYING", step);
  // Due, while no worker is there any more.
  await sql`update step_executions set retry_at = now() - interval '1 s', queue = 'gpu'
    where instance_id = ${id}`.execute(api.services.database.db);
  const late = await api.call("GET", `/v1/instances/${id}/why`);

  expect(why.reasons).toMatchObject([{ stepId: "try", attempt: 2, error: { attempt: 1 } }]);
  expect(Date.parse(why.reasons[0]?.until ?? "") - Date.parse(why.at)).toBeGreaterThan(3_500_000);
  expect(late.body.reasons).toMatchObject([{ kind: "NO_WORKER_FOR_QUEUE", queue: "gpu" }]);
});

test("a delay, and a start that is yet to come", async () => {
  const step = { stepId: "rest", type: "DELAY", duration: "PT1H" };
  const startAt = "2099-01-01T00:00:00.000Z";

  const delay = await whyOf("DELAY", step);
  const start = await whyOf("STARTS_LATER", step, { startAt });

  expect(delay.why.reasons).toMatchObject([{ stepId: "rest", until: expect.any(String) }]);
  expect(start.why).toMatchObject({ status: "CREATED", reasons: [{ until: startAt }] });
});

const wait = {
  stepId: "pay",
  type: "EVENT_WAIT",
  eventPattern: "paid",
  eventCondition:
    "event.payload.order === workflow.input.order && event.payload.amount >= variables.least",
  eventTimeout: { duration: "P1D" },
};

test("an event wait: its condition filled in, and the last near misses with what was false", async () => {
  await publish("paid", { order: "o-1", amount: 50 });
  const { id } = await whyOf("EVENT_WAIT", wait, { input: { order: "o-1" } });
  await publish("paid", { order: "o-2", amount: 1 });
  await publish("paid", { order: "o-1", amount: 5 });
  await publish("paid", { order: "o-3", amount: 20 });

  const { reasons, status } = await ask(id);

  expect(status).toBe("WAITING_FOR_EVENT");
  expect(reasons).toMatchObject([
    {
      kind: "EVENT_WAIT",
      stepId: "pay",
      eventPattern: "paid",
      eventCondition: wait.eventCondition,
      filledIn: 'event.payload.order === "o-1" && event.payload.amount >= 10',
      until: expect.any(String),
    },
  ]);
  const misses = reasons[0]?.nearMisses ?? [];
  expect(
    misses.map(({ because, failed }) => [because, failed.map(({ filledIn }) => filledIn)]),
  ).toEqual([
    ["BEFORE_WAIT", []],
    ["CONDITION", ['"o-3" === "o-1"']],
    ["CONDITION", ["5 >= 10"]],
    ["CONDITION", ['"o-2" === "o-1"', "1 >= 10"]],
  ]);
  expect(misses[2]).toMatchObject({ payload: { order: "o-1", amount: 5 } });
});

test("a wait with wildcards looks at what matches them", async () => {
  const step = { ...wait, eventPattern: "bank.*.seen" };
  const { id } = await whyOf("EVENT_WAIT", step, { input: { order: "o-9" } });
  await publish("bank.kept.seen", { order: "o-9", amount: 3 });
  await publish("bank.other", { order: "o-9", amount: 3 });

  const { reasons } = await ask(id);

  expect(reasons[0]?.nearMisses).toMatchObject([{ pattern: "bank.kept.seen" }]);
});

test("of one that was cancelled: the step in flight that is awaited", async () => {
  const workflowId = `why${++made}`;
  await api.call("POST", "/v1/definitions", {
    id: workflowId,
    steps: [{ stepId: "stay", type: "TASK", taskId: "stubborn" }],
    compensationSteps: [{ stepId: "undo", type: "TASK", compensationFor: "stay", taskId: "noop" }],
  });
  const { body } = await api.call("POST", "/v1/instances", { workflowId });
  await reasonOf(body.id, "RUNNING");

  await api.call("POST", `/v1/instances/${body.id}/cancel`, {});

  expect(await reasonOf(body.id, "AWAITED")).toMatchObject({
    stepId: "stay",
    until: expect.any(String),
  });
});

test("of one that failed: the compensation step that nobody knows", async () => {
  const workflowId = `why${++made}`;
  const broken = { stepId: "break", type: "TASK", taskId: "fail", retry: { maxAttempts: 1 } };
  await api.call("POST", "/v1/definitions", {
    id: workflowId,
    steps: [
      { stepId: "pay", type: "TASK", taskId: "noop", transitions: { default: "break" } },
      broken,
    ],
    compensationSteps: [
      { stepId: "undo", type: "TASK", compensationFor: "pay", taskId: "nobody_knows" },
    ],
  });

  const { body } = await api.call("POST", "/v1/instances", { workflowId });

  expect(await reasonOf(body.id, "NO_WORKER_KNOWS_TASK")).toMatchObject({
    stepId: "undo",
    isCompensation: true,
    taskId: "nobody_knows",
  });
});

test("an instance that has ended says so; another tenant does not see it", async () => {
  await api.call("PUT", "/v1/definitions/echo", echo);
  const { body } = await api.call("POST", "/v1/instances", { workflowId: "echo" });
  await api.call("GET", `/v1/instances/${body.id}?wait=20`);
  const path = `/v1/instances/${body.id}/why`;

  const other = await api.call("GET", path, undefined, { "millrace-tenant": "other" });

  expect(await ask(body.id)).toMatchObject({ status: "COMPLETED", reasons: [{ kind: "ENDED" }] });
  expect([other.status, other.body.code]).toEqual([404, "INSTANCE_NOT_FOUND"]);
});

const damage = (missing: string) => ({ kind: "DAMAGED", missing, message: /millrace doctor/ });
const rest = { stepId: "rest", type: "DELAY", duration: "PT1H" };
const asleep = { type: "TASK", taskId: "sleep", input: { ms: 60_000 } };
const child = { stepId: "child", type: "SUB_WORKFLOW", workflowId: "why_child" };
const narrow = { stepId: "say", type: "TASK", taskId: "echo", queue: "narrow" };
const ofInstance = "where tenant_id = 'default' and instance_id = $1";

/** Whatever else an instance can stand at, and what rows that are lost, or seen to by nobody, make of it. */
const cases: readonly {
  readonly what: string;
  readonly step: object;
  readonly more?: object;
  /** At what it stands before, whose rows are then changed. */
  readonly first?: string;
  readonly sql?: readonly string[];
  readonly told: {
    readonly kind: string;
    readonly message?: RegExp;
    readonly [fact: string]: unknown;
  };
}[] = [
  {
    what: "the wait is gone",
    step: wait,
    first: "EVENT_WAIT",
    sql: [`delete from waits ${ofInstance}`],
    told: { ...damage("WAIT"), executionId: "pay#1" },
  },
  {
    what: "the timer is gone",
    step: rest,
    first: "DELAY",
    sql: [`delete from timers ${ofInstance}`],
    told: { ...damage("TIMER"), executionId: "rest#1" },
  },
  {
    what: "the instance's own timer is gone",
    step: rest,
    more: { timeout: "P1D" },
    first: "DELAY",
    sql: [`delete from timers ${ofInstance} and kind = 'timeout'`],
    told: damage("TIMER"),
  },
  {
    what: "the step is gone",
    step: { stepId: "odd", type: "TASK", taskId: "nobody_knows" },
    first: "NO_WORKER_KNOWS_TASK",
    sql: [`delete from step_executions ${ofInstance}`],
    told: { ...damage("STEP"), executionId: "odd#1" },
  },
  {
    what: "the child is not asked for any more",
    step: child,
    first: "CHILD_WORKFLOW",
    sql: [`delete from children ${ofInstance}`],
    told: { ...damage("CHILD"), executionId: "child#1" },
  },
  {
    what: "the child is gone",
    step: child,
    first: "CHILD_WORKFLOW",
    sql: [
      `delete from workflow_instances where id = (select child_id from children ${ofInstance})`,
      `update children set started_at = now() - interval '1 minute' ${ofInstance}`,
    ],
    told: { ...damage("CHILD"), executionId: "child#1" },
  },
  {
    what: "the slot is gone",
    step: { ...asleep, stepId: "nap" },
    more: { concurrency: { limit: 1 } },
    first: "LIMIT",
    sql: [`delete from limit_slots ${ofInstance}`],
    told: damage("SLOT"),
  },
  {
    what: "nothing says what it waits for",
    step: wait,
    first: "EVENT_WAIT",
    sql: [
      `delete from waits ${ofInstance}`,
      `delete from timers ${ofInstance}`,
      `update workflow_instances set updated_at = now() - interval '1 hour',
        snapshot = jsonb_set(snapshot::jsonb, '{live}', '{}')::json where id = $1`,
    ],
    told: damage("ANY"),
  },
  {
    what: "a time that is over, and no scheduler has seen to it",
    step: rest,
    first: "DELAY",
    sql: [
      `update timers set due_at = now() - interval '1 minute', look_at = 'infinity' ${ofInstance}`,
    ],
    told: { kind: "DELAY", message: /no scheduler has seen to it: is one running\?$/ },
  },
  {
    what: "a child that nobody has started",
    step: child,
    first: "CHILD_WORKFLOW",
    sql: [
      `delete from workflow_instances where id = (select child_id from children ${ofInstance})`,
      `update children set started_at = null, look_at = 'infinity',
        requested_at = now() - interval '1 minute' ${ofInstance}`,
    ],
    told: {
      kind: "CHILD_WORKFLOW",
      childStatus: null,
      message: /starts it within seconds: is one/,
    },
  },
  {
    what: "a worker that is full",
    step: narrow,
    sql: [
      `insert into workers (id, host, pid, tasks, queues, concurrency, beat_at)
        values ($1, 'test', 1, '{echo}', '{narrow}', 1, now() + interval '1 hour')`,
      `update step_executions set status = 'RUNNING', worker_id = $1, queue = 'full' ${ofInstance}`,
      `insert into step_executions select (s).* from (
        select jsonb_populate_record(s, '{"path": "again", "status": "PENDING", "worker_id": null,
          "queue": "narrow"}') as s from step_executions s ${ofInstance}) x`,
    ],
    told: { kind: "QUEUED", taken: 1, limit: 1, message: /1 of 1 slots taken: it waits for one/ },
  },
  {
    what: "a worker had it that does not know its task, and another one does",
    step: { ...narrow, queue: "mixed" },
    sql: [
      `insert into workers (id, host, pid, tasks, queues, beat_at)
        values ($1, 'test', 1, '{echo}', '{mixed}', now() + interval '1 hour')`,
      `update step_executions set blocked = 'task:echo', look_at = now() + interval '5 minutes'
        ${ofInstance}`,
    ],
    told: { kind: "QUEUED", isBlocked: true, limit: null, message: /does not know task echo has/ },
  },
  {
    what: "the worker that runs it, and until when",
    step: { ...asleep, stepId: "nap", timeout: "PT1M" },
    told: {
      kind: "RUNNING",
      until: expect.any(String),
      lastBeatAt: expect.any(String),
      message: /The attempt has until .* last heard of at /,
    },
  },
  {
    what: "items that wait for others",
    step: {
      stepId: "each",
      type: "MAP",
      items: "[1, 2, 3]",
      maxConcurrency: 1,
      steps: [{ ...asleep, stepId: "nap" }],
    },
    told: {
      kind: "ITEMS",
      executionId: "each#1",
      queued: 2,
      taken: 1,
      limit: 1,
      message:
        /^2 items of step each have not begun, since at most 1 may be under way and 1 are\.$/,
    },
  },
];

test("a table of what else an instance can stand at: each is told, and of damage what to do", async () => {
  const steps = [{ ...rest, stepId: "wait" }];
  await api.call("POST", "/v1/definitions", { id: "why_child", steps });

  const seen = await Promise.all(
    cases.map(async ({ what, step, more, first, sql: statements = [], told }) => {
      const id = await standing(step, more);
      if (first !== undefined) await reasonOf(id, first);
      for (const text of statements) await execute(text, id);
      const isIt = (reason: WhyReasonView) =>
        reason.kind === told.kind && (told["missing"] ?? reason.missing) === reason.missing;
      const view = await eventually(`${what}: ${told.kind}`, async () => {
        const asked = await ask(id);
        return asked.reasons.some(isIt) ? asked : undefined;
      });
      expect(WhyView.parse(view)).toEqual(view);
      return view.reasons.find(isIt);
    }),
  );

  for (const [index, { told }] of cases.entries()) {
    const { message = /./, ...facts } = told;
    expect(seen[index]).toMatchObject({ ...facts, message: expect.stringMatching(message) });
  }
}, 30_000);

/** An instance of this one step. */
async function standing(step: object, more: object = {}): Promise<string> {
  const workflowId = `why${++made}`;
  const definition = { id: workflowId, variables: { least: 10 }, steps: [step], ...more };
  const { status, body: problem } = await api.call("POST", "/v1/definitions", definition);
  expect([status, problem.errors]).toEqual([201, undefined]);
  const start = { workflowId, input: { order: "o" } };
  // One that takes the slot, where there is but one.
  if ("concurrency" in more) await api.call("POST", "/v1/instances", start);
  return (await api.call("POST", "/v1/instances", start)).body.id;
}

async function execute(text: string, id: string): Promise<void> {
  const values = text.includes("$1") ? [id] : [];
  await api.services.database.db.executeQuery(CompiledQuery.raw(text, values));
}
