import { setTimeout as sleep } from "node:timers/promises";
import { MillraceApiError } from "@millrace/client";
import type { InstanceView, StartInstanceRequest, WorkflowDefinition } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openInstallation, replaceByKilling, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";
import { expectConsistent } from "../support/consistent.ts";

// Faults that users of such systems have reported, each by its case id. Those that need a process
// or a service to die are in test/faults.

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation({ env: { MILLRACE_HTTP_ALLOW: "localhost" } });
});
afterAll(async () => {
  try {
    await expectConsistent(installation.stack.apiUrl);
  } finally {
    await installation?.close();
  }
});
afterEach(async () => {
  await expectNothingLeft(installation);
  installation.ledger.clear();
});

test("C04: an event older than the wait's lookback does not wake it, and a younger one does", async () => {
  await register({
    id: "c04",
    steps: [
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "c04",
        eventCondition: "event.payload.key === workflow.input.key",
        lookback: "PT1S",
      },
    ],
  });
  await publish("c04", "old");
  await sleep(3_000);
  await publish("c04", "young");

  const [old, young] = await Promise.all(
    ["old", "young"].map((key) => start({ workflowId: "c04", input: { key } })),
  );

  expect(await settled(young)).toMatchObject({ status: "COMPLETED" });
  await sleep(500);
  expect(await view(old)).toMatchObject({ status: "WAITING_FOR_EVENT" });
  expect(await publish("c04", "old")).toMatchObject({ delivered: 1 });
  expect(await settled(old)).toMatchObject({ status: "COMPLETED" });
});

test("what a task writes to its input, or to that of its instance, is seen by nothing that follows", async () => {
  await register({
    id: "meddled",
    steps: [
      {
        stepId: "meddle",
        type: "TASK",
        taskId: "meddler",
        transitions: {
          conditions: [{ when: "input.amount > 100", to: "large" }],
          default: "small",
        },
      },
      { stepId: "large", type: "TASK", taskId: "echo" },
      { stepId: "small", type: "TASK", taskId: "echo" },
    ],
  });

  const id = await start({ workflowId: "meddled", input: { amount: 1 } });

  const { output, state } = await settled(id);
  expect(output).toEqual({ amount: 1 });
  expect(Object.keys(state.steps)).toEqual(["meddle", "small"]);
});

test("C06: whichever of event and time-out loses a wait leaves nothing behind, however far off it was", async () => {
  await register({
    id: "c06",
    timeout: "P400D",
    steps: [
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "c06",
        eventCondition: "event.payload.key === workflow.input.key",
        eventTimeout: { duration: "${ workflow.input.limit }", timeoutHandlerStepId: "late" },
        transitions: { default: "met" },
      },
      { stepId: "met", type: "END", outcome: "COMPLETED", output: "met" },
      { stepId: "late", type: "END", outcome: "COMPLETED", output: "late" },
    ],
  });
  const byEvent = await start({ workflowId: "c06", input: { key: "event", limit: "P1D" } });
  const byTimeout = await start({ workflowId: "c06", input: { key: "none", limit: "PT1S" } });
  await publish("c06", "event");

  expect(await settled(byEvent)).toMatchObject({ output: "met", status: "COMPLETED" });
  expect(await settled(byTimeout)).toMatchObject({ output: "late", status: "COMPLETED" });
  expect(await publish("c06", "none")).toMatchObject({ delivered: 0 });
  // Nothing at all of it, and not only nothing that is due.
  for (const table of ["waits", "timers"]) {
    expect(await installation.query(`select from ${table}`)).toHaveLength(0);
  }
});

test("C17: an attempt that has timed out is told to stop, and its late result is refused", async () => {
  await register({
    id: "c17",
    steps: [
      {
        stepId: "slow",
        type: "TASK",
        taskId: "witness",
        input: { stubborn: true },
        timeout: "PT1S",
        retry: { maxAttempts: 2, initialInterval: "PT0.1S" },
      },
    ],
  });
  installation.ledger.answer({ when: { attempt: 1 }, delayMs: 3_000 });
  installation.ledger.answer({ when: { attempt: 2 }, delayMs: 0 });

  const id = await start({ workflowId: "c17" });
  const ended = await settled(id);
  await eventually("the late result", () =>
    entriesOf(id).some(({ attempt, details }) => attempt === 1 && details["kind"] === "outcome"),
  );
  await sleep(500);

  const [first, second] = entriesOf(id, "run");
  expect(entriesOf(id, "aborted")).toMatchObject([{ attempt: 1 }]);
  expect([first?.attempt, second?.attempt]).toEqual([1, 2]);
  expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
  expect(ended.state.steps["slow"]).toMatchObject({
    status: "COMPLETED",
    attempts: 2,
    output: { record: second?.seq },
  });
  expect(await view(id)).toEqual(ended);
});

test("C25: calls that start and wait are answered though pub/sub is cut again and again, and leave no listener", async () => {
  await register({ id: "c25", steps: [task("nap", { ms: 200 })] });
  await register({ id: "c25_never", steps: [waitFor("c25")] });
  const never = await start({ workflowId: "c25_never" });
  const waiting = async (): Promise<string | undefined> => {
    const answer = await fetch(`${installation.stack.apiUrl}/metrics`);
    return /^millrace_waiting_calls (\d+)$/m.exec(await answer.text())?.[1];
  };
  const calls = new AbortController();
  const cut = (async () => {
    for (; !calls.signal.aborted; await sleep(500)) {
      await installation.withRedis((redis) => redis.call("CLIENT", "KILL", "TYPE", "pubsub"));
    }
  })();

  const lane = async () => {
    const ended: string[] = [];
    for (let index = 0; index < 15; index += 1) {
      ended.push((await settled(await start({ workflowId: "c25" }))).status);
    }
    return ended;
  };
  const atItsLimit = installation.client.instances
    .wait(never, { timeoutMs: 1_500 })
    .catch((error: unknown) => error);
  const lanes = Promise.all(Array.from({ length: 20 }, lane));
  await eventually("calls to wait", async () => Number(await waiting()) > 5);
  expect(await atItsLimit).toMatchObject({ instance: { status: "WAITING_FOR_EVENT" } });
  const ended = (await lanes).flat();
  calls.abort();
  await cut;

  expect(ended).toEqual(Array.from({ length: 300 }, () => "COMPLETED"));
  await eventually("nobody to wait", async () => (await waiting()) === "0");
  await installation.client.instances.cancel(never);
});

test("C29: of 200 parallel cancels of one instance one is accepted, and the others are conflicts", async () => {
  await register({ id: "c29_wait", steps: [waitFor("c29")] });
  const id = await start({ workflowId: "c29_wait" });

  const statuses = await Promise.all(
    Array.from({ length: 200 }, () =>
      installation.client.instances.cancel(id, { reason: "all at once" }).then(() => 202, statusOf),
    ),
  );

  expect(statuses.filter((status) => status === 202)).toHaveLength(1);
  expect(new Set(statuses)).toEqual(new Set([202, 409]));
  const { items } = await installation.client.instances.history(id, { limit: 500 });
  expect(items.filter(({ type }) => type === "workflow.cancelled")).toHaveLength(1);
});

test("C29: of 200 events published at once to one instance each has its effect once", async () => {
  const events = 200;
  await register({
    id: "c29_count",
    steps: [
      { ...waitFor("c29"), transitions: { default: "count" } },
      {
        stepId: "count",
        type: "TASK",
        taskId: "echo",
        input: { times: "${ (workflow.steps.count?.output.times ?? 0) + 1 }" },
        transitions: {
          conditions: [{ when: "steps.count.output.times < workflow.input.events", to: "wait" }],
        },
      },
    ],
  });
  const id = await start({ workflowId: "c29_count", input: { events } });

  const answers = await Promise.all(
    Array.from({ length: events }, (_, index) =>
      installation.client.events
        .publish({ id: `c29-${index}`, pattern: "c29", payload: { key: null } })
        .then(() => 202, statusOf),
    ),
  );

  expect(new Set(answers)).toEqual(new Set([202]));
  expect(await settled(id)).toMatchObject({ status: "COMPLETED", output: { times: events } });
});

test("C29: of 200 patches at once each that is accepted has its effect, and the others are told", async () => {
  await register({ id: "c29_patch", variables: { sum: 0 }, steps: [waitFor("c29_patch")] });
  const id = await start({ workflowId: "c29_patch" });
  const add = async () => {
    const { version, state } = await view(id);
    const variables = { sum: Number(state.variables["sum"]) + 1 };
    return installation.client.instances
      .patch(id, { state: { variables } }, { ifMatch: version })
      .then(() => 200, statusOf);
  };

  const statuses = (
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const answers: number[] = [];
        for (let times = 0; times < 10; times += 1) answers.push(await add());
        return answers;
      }),
    )
  ).flat();

  const accepted = statuses.filter((status) => status === 200).length;
  expect(accepted).toBeGreaterThan(0);
  expect(new Set(statuses)).toEqual(new Set([200, 412]));
  expect((await view(id)).state.variables).toEqual({ sum: accepted });
  await installation.client.instances.cancel(id);
});

test("C32: a step that succeeds after the cancel changes nothing; its output is in the audit at most", async () => {
  await register({
    id: "c32",
    steps: [
      {
        stepId: "slow",
        type: "TASK",
        taskId: "witness",
        input: { ms: 2_000, stubborn: true },
        transitions: { default: "never" },
      },
      { stepId: "never", type: "TASK", taskId: "witness", input: {} },
    ],
  });
  const id = await start({ workflowId: "c32" });
  await eventually("the step to run", () => entriesOf(id, "run").length === 1);

  await installation.client.instances.cancel(id, { reason: "changed my mind" });
  const cancelled = await settled(id);
  await eventually("the late result", () => entriesOf(id, "outcome").length === 1);
  await sleep(500);

  expect(cancelled).toMatchObject({
    status: "CANCELLED",
    error: null,
    output: null,
    cancellation: { reason: "changed my mind", source: "API" },
    state: { steps: { slow: { status: "CANCELLED", output: null } } },
  });
  expect(await view(id)).toEqual(cancelled);
  expect(entriesOf(id, "aborted")).toHaveLength(1);
  expect(entriesOf(id, "run")).toHaveLength(1);
});

test("C35: a cancel during the backoff ends it: no second attempt, and no job of it is left", async () => {
  await register({
    id: "c35",
    steps: [
      {
        stepId: "fails",
        type: "TASK",
        taskId: "witness",
        input: { failures: 10 },
        retry: { initialInterval: "PT3S", jitter: "NONE" },
      },
    ],
  });
  const id = await start({ workflowId: "c35" });
  await eventually(
    "the backoff",
    async () => (await view(id)).state.steps["fails"]?.status === "RETRYING",
  );

  await installation.client.instances.cancel(id, { reason: "no more" });
  expect(await settled(id)).toMatchObject({ status: "CANCELLED" });
  await expectNothingLeft(installation);
  await sleep(3_500);

  expect(entriesOf(id, "run")).toHaveLength(1);
  expect((await view(id)).state.steps["fails"]).toMatchObject({ status: "CANCELLED", attempts: 1 });
});

test("C45: after a cancel behind the fourth of five steps, what is done is undone in reverse", async () => {
  const steps = ["one", "two", "three", "four", "five"];
  await register({
    id: "c45",
    steps: [
      ...steps.slice(0, 4).map((stepId, index) => ({
        stepId,
        type: "TASK" as const,
        taskId: "witness",
        input: {},
        transitions: { default: index === 3 ? "wait" : (steps[index + 1] ?? "") },
      })),
      { ...waitFor("c45"), transitions: { default: "five" } },
      { stepId: "five", type: "TASK", taskId: "witness", input: {} },
    ],
    // In another order than the steps, and than the alphabet.
    compensationSteps: ["three", "five", "one", "four", "two"].map((stepId) => ({
      stepId: `undo_${stepId}`,
      compensationFor: stepId,
      type: "TASK" as const,
      taskId: "witness",
      input: {},
    })),
  });
  const id = await start({ workflowId: "c45" });
  await eventually("the wait", async () => (await view(id)).status === "WAITING_FOR_EVENT");

  await installation.client.instances.cancel(id);
  const ended = await settled(id);

  const order = ["undo_four", "undo_three", "undo_two", "undo_one"];
  expect(ended.compensation).toMatchObject({ status: "COMPLETED", plan: order, completed: order });
  expect(entriesOf(id, "run").map(({ step }) => step)).toEqual([...steps.slice(0, 4), ...order]);
});

test("C45: a step in flight at a cancel that can be undone is awaited, and undone when it succeeds", async () => {
  await register({
    id: "c45_awaited",
    steps: [task("slow", { ms: 7_000, stubborn: true }, "never"), task("never", {})],
    compensationSteps: [
      { stepId: "undo_slow", compensationFor: "slow", type: "TASK", taskId: "noop" },
    ],
  });
  const id = await start({ workflowId: "c45_awaited" });
  await eventually("the step to run", () => entriesOf(id, "run").length === 1);

  await installation.client.instances.cancel(id);
  const atOnce = await view(id);
  const ended = await settled(id);

  expect(atOnce).toMatchObject({
    status: "CANCELLED",
    completedAt: null,
    compensation: { status: "IN_PROGRESS" },
  });
  expect(entriesOf(id, "aborted")).toHaveLength(1);
  expect(ended.state.steps).toMatchObject({ slow: { status: "COMPLETED" } });
  expect(ended.compensation).toMatchObject({ completed: ["undo_slow"], uncertain: [] });
  expect(entriesOf(id, "run")).toHaveLength(1);
});

test("C47: a step that throws fails the instance, and what was done is undone though one undoing throws", async () => {
  await register({
    id: "c47_throws",
    retry: { maxAttempts: 1 },
    steps: [
      task("one", {}, "two"),
      task("two", {}, "three"),
      task("three", {}, "bad"),
      task("bad", { failures: 9, error: "Broken" }),
    ],
    compensationSteps: ["one", "two", "three"].map((stepId) => ({
      stepId: `undo_${stepId}`,
      compensationFor: stepId,
      type: "TASK" as const,
      taskId: "witness",
      input: stepId === "two" ? { failures: 9 } : {},
      retry: { maxAttempts: 1 },
    })),
  });

  const ended = await settled(await start({ workflowId: "c47_throws" }));

  expect(ended).toMatchObject({
    status: "FAILED",
    error: { kind: "TASK", type: "Broken", stepId: "bad" },
    compensation: {
      status: "COMPLETED_WITH_ERRORS",
      plan: ["undo_three", "undo_two", "undo_one"],
      completed: ["undo_three", "undo_one"],
      failed: [{ stepId: "undo_two" }],
    },
  });
});

test("C47: a transition whose condition cannot be evaluated fails the instance, which says so", async () => {
  await register({
    id: "c47_condition",
    steps: [
      {
        ...task("one", {}),
        transitions: { conditions: [{ when: "lower(steps.one.output) === 'x'", to: "two" }] },
      },
      task("two", {}),
    ],
    compensationSteps: [
      { stepId: "undo_one", compensationFor: "one", type: "TASK", taskId: "noop" },
    ],
  });

  const ended = await settled(await start({ workflowId: "c47_condition" }));

  expect(ended).toMatchObject({
    status: "FAILED",
    error: { kind: "EXPRESSION", stepId: "one" },
    compensation: { status: "COMPLETED", completed: ["undo_one"] },
  });
});

test("C49: delays and timeouts beyond what a timer of the process can hold wait, across a restart, to the second", async () => {
  const days = [24, 25, 30, 400];
  await register({
    id: "c49_delay",
    steps: [{ stepId: "delay", type: "DELAY", duration: "${ workflow.input.span }" }],
  });
  await register({
    id: "c49_wait",
    timeout: "P500D",
    steps: [
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "c49",
        eventTimeout: { duration: "${ workflow.input.span }", timeoutHandlerStepId: "late" },
      },
      { stepId: "late", type: "END", outcome: "COMPLETED" },
    ],
  });
  const ids = await Promise.all(
    ["c49_delay", "c49_wait"].flatMap((workflowId) =>
      days.map((count) => start({ workflowId, input: { span: `P${count}D` } })),
    ),
  );

  await replaceByKilling(installation, [
    ...installation.stack.pids().scheduler,
    ...installation.stack.pids().worker,
  ]);
  await sleep(1_500);

  const rows = await installation.query<{ days: number; due: number }>(
    `select trim(both 'PD' from i.input->>'span')::int as days,
       extract(epoch from t.due_at - s.created_at)::float / 86400 as due
     from timers t join workflow_instances i on (i.tenant_id, i.id) = (t.tenant_id, t.instance_id)
       join step_executions s on (s.tenant_id, s.instance_id) = (t.tenant_id, t.instance_id)
     where t.kind in ('delay', 'wait') and i.workflow_id like 'c49%'`,
  );
  expect(rows.map(({ days: due }) => due).toSorted((a, b) => a - b)).toEqual(
    days.flatMap((count) => [count, count]),
  );
  for (const { days: span, due } of rows) expect(Math.abs(due - span)).toBeLessThan(1 / 86_400);
  for (const id of ids) {
    expect(await view(id)).toMatchObject({ status: "WAITING_FOR_EVENT" });
    await installation.client.instances.cancel(id);
  }
});

test("C68: an output that is too large fails its step with a clear error, and the worker lives", async () => {
  await register({
    id: "c68",
    steps: [
      {
        stepId: "large",
        type: "TASK",
        taskId: "witness",
        input: "workflow.input",
        retry: { maxAttempts: 2, initialInterval: "PT0S" },
      },
    ],
  });
  const pids = installation.stack.pids().worker;
  const run = async (bytes: number) =>
    settled(await start({ workflowId: "c68", input: { bytes } }));

  const [fits, one, five, fifty] = await Promise.all([900_000, 1e6, 5e6, 50e6].map(run));

  expect(fits).toMatchObject({ status: "COMPLETED" });
  for (const tooLarge of [one, five, fifty]) {
    expect(tooLarge).toMatchObject({
      status: "FAILED",
      error: { kind: "TASK", type: "PAYLOAD_TOO_LARGE", stepId: "large" },
    });
    expect(tooLarge?.error?.message).toMatch(/1000000|1048576/);
  }
  expect(installation.stack.pids().worker).toEqual(pids);
});

test("C68: a start or an event of 10 MB is refused at the door, and leaves nothing", async () => {
  await register({ id: "c68_door", steps: [waitFor("c68")] });
  const filling = "x".repeat(10_000_000);
  const { instances, events } = installation.client;

  const asStart = instances.start({ workflowId: "c68_door", input: { filling } });
  const asEvent = events.publish({ id: "c68-large", pattern: "c68", payload: { filling } });

  expect(
    await Promise.all([asStart.then(() => 201, statusOf), asEvent.then(() => 202, statusOf)]),
  ).toEqual([413, 413]);
  expect((await instances.list({ workflowId: "c68_door" })).items).toEqual([]);
  expect(await installation.query("select from events where id = 'c68-large'")).toEqual([]);
});

test("C85: a worker calls a private address by the host that is allowed alone, and logs no header", async () => {
  const input = { url: "${ input.url }", headers: { Authorization: "Bearer c85-secret" } };
  const call = { type: "TASK" as const, taskId: "http.request", retry: { maxAttempts: 1 } };
  await register({ id: "c85", steps: [{ ...call, stepId: "call", input }] });
  const { port } = new URL(installation.ledger.url);
  const run = async (url: string) => settled(await start({ workflowId: "c85", input: { url } }));

  const urls = ["127.1", "[::ffff:127.0.0.1]", "localhost."].map(
    (host) => `http://${host}:${port}/entries`,
  );
  const [refused, mapped, named] = await Promise.all(urls.map(run));

  for (const each of [refused, mapped]) {
    expect(each).toMatchObject({
      status: "FAILED",
      error: { kind: "TASK", type: "HttpAddressRefused", attempt: 1 },
    });
    expect(each?.error?.message).toContain("MILLRACE_HTTP_ALLOW");
  }
  expect(named).toMatchObject({
    status: "COMPLETED",
    output: { status: 200, body: { entries: [] } },
  });
  expect(installation.logs()).not.toContain("c85-secret");
});

test("C79: an instance goes on as it was defined when it started, whatever became of the definition", async () => {
  const first: WorkflowDefinition = {
    id: "c79",
    steps: [
      {
        ...waitFor("c79"),
        eventCondition: "event.payload.key === workflow.input.key",
        transitions: { default: "old" },
      },
      task("old", {}, "older"),
      { stepId: "older", type: "END", outcome: "COMPLETED", output: "first" },
    ],
    compensationSteps: [{ stepId: "undo", compensationFor: "old", type: "TASK", taskId: "noop" }],
  };
  await register(first);
  const waiting = await start({ workflowId: "c79", input: { key: "a" } });
  await eventually("the wait", async () => (await view(waiting)).status === "WAITING_FOR_EVENT");

  // Its next step, its condition and its output are others now.
  await register({
    id: "c79",
    steps: [
      {
        ...waitFor("c79"),
        eventCondition: "event.payload.other === workflow.input.key",
        transitions: { default: "new" },
      },
      { stepId: "new", type: "END", outcome: "COMPLETED", output: "second" },
    ],
  });
  const pids = installation.stack.pids();
  await replaceByKilling(installation, [...pids.api, ...pids.worker]);
  const later = await start({ workflowId: "c79", input: { key: "a" } });
  const { delivered } = await publish("c79", "a");
  const ended = await settled(waiting);
  const other = { pattern: "c79", payload: { other: "a" } };
  await installation.client.events.publish(other);
  const endedLater = await settled(later);

  expect(delivered).toBe(1);
  expect(ended).toMatchObject({ workflowVersion: 1, status: "COMPLETED", output: "first" });
  expect(entriesOf(waiting, "run").map(({ step }) => step)).toEqual(["old"]);
  expect(endedLater).toMatchObject({ workflowVersion: 2, status: "COMPLETED", output: "second" });
});

test("a rejection that a task leaves behind costs no worker its life", async () => {
  await register({ id: "stray", steps: [task("a", { stray: true, ms: 200 })] });

  const { id } = await installation.client.instances.start({ workflowId: "stray" });
  const ended = await settled(id);

  expect(ended).toMatchObject({
    status: "COMPLETED",
    state: { steps: { a: { attempts: 1, deliveries: 1 } } },
  });
});

function task(stepId: string, input: object, next?: string) {
  return {
    stepId,
    type: "TASK" as const,
    taskId: "witness",
    input: input as Record<string, never>,
    ...(next === undefined ? {} : { transitions: { default: next } }),
  };
}

function waitFor(eventPattern: string) {
  return { stepId: "wait", type: "EVENT_WAIT" as const, eventPattern, lookback: "instance" };
}

async function register(definition: WorkflowDefinition): Promise<void> {
  await installation.client.definitions.register(definition);
}

async function start(request: StartInstanceRequest): Promise<string> {
  return (await installation.client.instances.start(request)).id;
}

async function publish(pattern: string, key: string) {
  return installation.client.events.publish({ pattern, payload: { key } });
}

async function view(id: string | undefined): Promise<InstanceView> {
  return installation.client.instances.get(id ?? "");
}

async function settled(id: string | undefined): Promise<InstanceView> {
  return installation.client.instances.wait(id ?? "", { timeoutMs: 50_000 });
}

function entriesOf(id: string, kind?: string) {
  return installation.ledger.entries.filter(
    ({ instance, details }) => instance === id && (kind === undefined || details["kind"] === kind),
  );
}

function statusOf(error: unknown): number {
  if (error instanceof MillraceApiError) return error.status;
  throw error;
}
