import { InstanceView } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

// What operators do to an instance: pause and resume (CONTRACT 2 and 3).

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api.close());

let made = 0;

/** Starts an instance of these steps. */
async function start(steps: readonly object[], more: object = {}): Promise<string> {
  const workflowId = `control${++made}`;
  const registered = await api.call("POST", "/v1/definitions", { id: workflowId, steps });
  expect([registered.status, registered.body.errors]).toEqual([201, undefined]);
  const { body } = await api.call("POST", "/v1/instances", { workflowId, ...more });
  return body.id;
}

const get = async (id: string): Promise<InstanceView> =>
  (await api.call("GET", `/v1/instances/${id}`)).body as InstanceView;

const act = (verb: string, id: string, body: object = {}, headers: Record<string, string> = {}) =>
  api.call("POST", `/v1/instances/${id}/${verb}`, body, headers);

const publish = async (pattern: string, payload: object = {}) =>
  (await api.call("POST", "/v1/events", { pattern, payload })).body;

async function until(
  id: string,
  what: string,
  holds: (instance: InstanceView) => boolean,
): Promise<InstanceView> {
  return eventually(what, async () => {
    const instance = await get(id);
    return holds(instance) ? instance : undefined;
  });
}

const settled = async (id: string): Promise<InstanceView> =>
  (await api.call("GET", `/v1/instances/${id}?wait=20`)).body as InstanceView;

async function heldOf(id: string) {
  const { reasons, summary } = (await api.call("GET", `/v1/instances/${id}/why`)).body;
  expect(reasons[0]).toMatchObject({ kind: "PAUSED" });
  return { summary, ...reasons[0].held };
}

async function typesOf(id: string): Promise<readonly string[]> {
  const { items } = (await api.call("GET", `/v1/instances/${id}/history`)).body;
  return items.map(({ type }: { type: string }) => type);
}

const say = { stepId: "say", type: "TASK", taskId: "echo", input: { said: true } };
const nap = (ms: number) => ({ stepId: "nap", type: "TASK", taskId: "sleep", input: { ms } });

test("of a paused instance the running step finishes and is kept, and what follows comes when it resumes", async () => {
  const id = await start([{ ...nap(700), transitions: { default: "say" } }, say]);
  await until(id, "it runs", ({ state }) => state.steps["nap"]?.status === "RUNNING");

  const paused = await act("pause", id, { reason: "to look at it", requestedBy: "ada" });
  const kept = await until(
    id,
    "the step has finished",
    ({ state }) => state.steps["nap"]?.status === "COMPLETED",
  );
  const held = await heldOf(id);
  const resumed = await act("resume", id, { requestedBy: "bob" });
  const { status, state } = await settled(id);
  // The answer may be of what comes next: what the resume made of it is in its version.
  const next = await api.call("GET", `/v1/instances/${id}/state?version=${kept.version + 1}`);

  expect([paused.status, paused.body.status]).toEqual([202, "PAUSED"]);
  expect(paused.headers.get("etag")).toBe(`"${paused.body.version}"`);
  expect(paused.body.pause).toMatchObject({ by: "ada", reason: "to look at it", from: "RUNNING" });
  expect(InstanceView.parse(kept)).toEqual(kept);
  expect([kept.status, Object.keys(kept.state.steps)]).toEqual(["PAUSED", ["nap"]]);
  expect(held).toMatchObject({ steps: 0, results: 1, events: 0, timers: 0 });
  expect(held.summary).toMatch(/ada paused the instance .* because: to look at it/);
  expect([resumed.status, next.body.status, resumed.body.pause]).toEqual([202, "RUNNING", null]);
  expect([status, state.steps["say"]?.output]).toEqual(["COMPLETED", { said: true }]);
  const { items } = (await api.call("GET", `/v1/instances/${id}/history`)).body;
  const told = items.filter(({ type }: { type: string }) => /paused|resumed/.test(type));
  expect(told).toMatchObject([
    { type: "workflow.paused", actor: "ada", data: { reason: "to look at it" } },
    { type: "workflow.resumed", actor: "bob" },
  ]);
});

test("a step that completed in a pause and cannot be left is FAILED, keeps its output, and is undone", async () => {
  const id = `control${++made}`;
  const oops = { conditions: [{ when: "steps.nap.output && parseJson('oops')", to: "say" }] };
  await api.call("POST", "/v1/definitions", {
    id,
    compensateOnFailure: false,
    steps: [{ ...nap(300), transitions: { ...oops, default: "say" } }, say],
    compensationSteps: [{ ...say, stepId: "undo", compensationFor: "nap" }],
  });
  const { body } = await api.call("POST", "/v1/instances", { workflowId: id });
  await until(body.id, "it runs", ({ state }) => state.steps["nap"]?.status === "RUNNING");
  await act("pause", body.id);
  const kept = await until(
    body.id,
    "the step has finished",
    ({ state }) => state.steps["nap"]?.status === "COMPLETED",
  );

  await act("resume", body.id);
  const failed = await settled(body.id);
  await act("retry", body.id);
  const again = await until(
    body.id,
    "it has failed again",
    ({ status, version }) => status === "FAILED" && version > failed.version,
  );
  const plan = await api.call("GET", `/v1/instances/${body.id}/compensation-plan`);
  await act("cancel", body.id, { reason: "enough" });
  const undone = await settled(body.id);

  const { output } = kept.state.steps["nap"] ?? {};
  const left = { status: "FAILED", output, completionNumber: 1, error: { kind: "EXPRESSION" } };
  expect(output).not.toBeNull();
  for (const { state } of [failed, again, undone]) expect(state.steps["nap"]).toMatchObject(left);
  expect(plan.body.steps).toMatchObject([{ stepId: "undo" }]);
  expect(undone).toMatchObject({ status: "CANCELLED", compensation: { completed: ["undo"] } });
  const at = await api.call("GET", `/v1/instances/${body.id}/state?version=${failed.version}`);
  expect(at.body.state.steps.nap).toMatchObject({ status: "FAILED", output });
  const { body: report } = await api.call("GET", `/v1/instances/${body.id}/consistency`);
  expect(report).toMatchObject({ ok: true, skipped: [] });
});

test("a paused wait takes its first event and no more, and goes on with it when it resumes", async () => {
  const wait = { stepId: "wait", type: "EVENT_WAIT", eventPattern: "first" };
  const id = await start([{ ...wait, transitions: { default: "say" } }, say]);
  const paused = await act("pause", id);

  const first = await publish("first", { n: 1 });
  const second = await publish("first", { n: 2 });
  const { events } = await heldOf(id);
  const { status, state } = await get(id);
  await act("resume", id);
  const ended = await settled(id);

  expect(paused.body.pause.from).toBe("WAITING_FOR_EVENT");
  expect([first.delivered, second.delivered, events]).toEqual([1, 0, 1]);
  expect([status, state.steps["wait"]?.status, state.waitingFor]).toEqual([
    "PAUSED",
    "WAITING",
    [],
  ]);
  expect(ended.status).toBe("COMPLETED");
  expect(ended.state.steps["wait"]?.output).toMatchObject({ payload: { n: 1 } });
});

test("timers that come due while it is paused are held, and fire in their order when it resumes", async () => {
  const branch = (name: string, duration: string) => ({
    name,
    steps: [
      { stepId: `${name}Delay`, type: "DELAY", duration, transitions: { default: `${name}Set` } },
      { stepId: `${name}Set`, type: "SET", variables: { last: name } },
    ],
  });
  const branches = [branch("late", "PT0.6S"), branch("early", "PT0.3S")];
  const id = await start([{ stepId: "both", type: "PARALLEL", branches }]);
  await act("pause", id);

  await eventually("both are due", async () => (await heldOf(id)).timers === 2 || undefined);
  const { status, state } = await get(id);
  await act("resume", id);
  const ended = await settled(id);

  expect([status, state.steps["lateDelay"]?.status]).toEqual(["PAUSED", "WAITING"]);
  expect([ended.status, ended.state.variables]).toEqual(["COMPLETED", { last: "late" }]);
});

test("a retry that comes due while it is paused does not start", async () => {
  const retry = { maxAttempts: 2, initialInterval: "PT0.5S", jitter: "NONE" };
  const id = await start([{ stepId: "try", type: "TASK", taskId: "fail", retry }]);
  await until(id, "it is retrying", ({ state }) => state.steps["try"]?.status === "RETRYING");
  await act("pause", id);

  // The time of the retry, and some more for whoever would take it.
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const before = await get(id);
  await act("resume", id);
  const after = await settled(id);

  expect(before).toMatchObject({ status: "PAUSED", state: { steps: { try: { attempts: 1 } } } });
  expect(after).toMatchObject({ status: "FAILED", state: { steps: { try: { attempts: 2 } } } });
});

test("with a time it resumes by itself, and not before", async () => {
  const id = await start([{ ...nap(300), transitions: { default: "say" } }, say]);
  const end = new Date(Date.now() + 900).toISOString();

  const paused = await act("pause", id, { until: end });
  const ended = await settled(id);

  expect(paused.body.pause.until).toBe(end);
  expect(ended.status).toBe("COMPLETED");
  const began = ended.state.steps["say"]?.startedAt ?? "";
  expect(Date.parse(began)).toBeGreaterThanOrEqual(Date.parse(end));
  const { items } = (await api.call("GET", `/v1/instances/${id}/history`)).body;
  expect(items).toContainEqual(
    expect.objectContaining({ type: "workflow.resumed", actor: "scheduler" }),
  );
});

test("one that has not begun is paused, and begins when it resumes", async () => {
  const startAt = new Date(Date.now() + 400).toISOString();
  const id = await start([say], { startAt });

  const paused = await act("pause", id);
  await eventually("its start is due", async () => (await heldOf(id)).timers === 1 || undefined);
  const held = await get(id);
  await act("resume", id);
  const ended = await settled(id);

  expect([paused.body.status, paused.body.pause.from]).toEqual(["PAUSED", "CREATED"]);
  expect([held.status, held.state.steps]).toEqual(["PAUSED", {}]);
  expect(ended.status).toBe("COMPLETED");
  expect(await typesOf(id)).toEqual(
    expect.arrayContaining(["workflow.paused", "workflow.started"]),
  );
});

test("a paused instance is cancelled at once", async () => {
  const id = await start([{ ...nap(60_000), transitions: { default: "say" } }, say]);
  await until(id, "it runs", ({ state }) => state.steps["nap"]?.status === "RUNNING");
  await act("pause", id);

  const cancelled = await act("cancel", id, { reason: "enough" });

  expect(cancelled.body).toMatchObject({ status: "CANCELLED", pause: null });
  expect((await settled(id)).state.steps["nap"]?.status).toBe("CANCELLED");
});

test("what its status does not allow is a 409, another version a 412, and neither changes anything", async () => {
  const id = await start([{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "never" }]);
  const early = await act("resume", id);
  const paused = await act("pause", id, {}, { "if-match": '"1"' });

  const again = await act("pause", id);
  const stale = await act("resume", id, {}, { "if-match": '"1"' });
  const fresh = await act("resume", id, {}, { "if-match": paused.headers.get("etag") ?? "" });
  await act("cancel", id);
  const ended = await act("pause", id);
  const nobody = await act("pause", "01890a5d-ac96-774b-bcce-b302099a8057");

  expect([early.status, early.body.code]).toEqual([409, "STATUS_CONFLICT"]);
  expect([again.status, again.body.code]).toEqual([409, "STATUS_CONFLICT"]);
  expect([stale.status, stale.body.code]).toEqual([412, "PRECONDITION_FAILED"]);
  expect([fresh.status, fresh.body.status]).toEqual([202, "WAITING_FOR_EVENT"]);
  expect([ended.status, nobody.status]).toEqual([409, 404]);
});

const once = { maxAttempts: 1 };

/** Fails until the variable `ok` is true. */
const flaky = {
  stepId: "flaky",
  type: "TASK",
  taskId: "fail",
  retry: once,
  condition: "variables.ok !== true",
  transitions: { default: "say" },
};

test("a failed instance is retried from where it failed, and fails or goes on anew", async () => {
  const id = await start([
    { ...say, stepId: "first", transitions: { default: "flaky" } },
    flaky,
    say,
  ]);
  const failed = await settled(id);

  const retried = await act("retry", id, { reason: "once more", requestedBy: "ada" });
  const again = await settled(id);
  // The answer may be of the failure that comes next: what the retry made of it is in its version.
  const next = await api.call("GET", `/v1/instances/${id}/state?version=${failed.version + 1}`);
  const skipped = await act("retry", id, { fromStepId: "say" });
  const ended = await settled(id);
  const late = await act("retry", id);

  expect([failed.status, failed.state.steps["flaky"]?.iteration]).toEqual(["FAILED", 1]);
  expect([retried.status, next.body.status, next.body.error]).toEqual([202, "RUNNING", null]);
  expect(again).toMatchObject({
    status: "FAILED",
    state: { steps: { first: { iteration: 1 }, flaky: { iteration: 2, attempts: 1 } } },
  });
  expect([skipped.status, ended.status]).toEqual([202, "COMPLETED"]);
  expect([late.status, late.body.code]).toEqual([409, "STATUS_CONFLICT"]);
  const { items } = (await api.call("GET", `/v1/instances/${id}/history`)).body;
  expect(items).toContainEqual(
    expect.objectContaining({
      type: "workflow.retried",
      actor: "ada",
      data: { reason: "once more", fromStepId: null },
    }),
  );
});

test("a retry from no step of the definition's own list is a 422 that says so", async () => {
  const branches = [{ name: "a", steps: [{ ...flaky, transitions: undefined }] }];
  const id = await start([{ stepId: "both", type: "PARALLEL", branches }]);
  await settled(id);

  const unknown = await act("retry", id, { fromStepId: "nope" });
  const inside = await act("retry", id, { fromStepId: "flaky" });

  expect([unknown.status, unknown.body.code]).toEqual([422, "UNKNOWN_STEP"]);
  expect(unknown.body.errors).toMatchObject([{ path: "/fromStepId" }]);
  expect([inside.status, inside.body.detail]).toEqual([
    422,
    expect.stringMatching(/inside of "both"/),
  ]);
});

test("a retried wait does not take again what it has had, and takes what is new", async () => {
  const wait = {
    stepId: "wait",
    type: "EVENT_WAIT",
    eventPattern: "once",
    lookback: "instance",
    transitions: { default: "flaky" },
  };
  const id = await start([wait, { ...flaky, transitions: undefined }]);
  await publish("once", { n: 1 });
  await settled(id);

  await act("retry", id, { fromStepId: "wait" });
  const waiting = await until(id, "it waits", ({ status }) => status === "WAITING_FOR_EVENT");
  const { delivered } = await publish("once", { n: 2 });

  expect(waiting.state.waitingFor).toMatchObject([{ stepId: "wait", executionId: "wait#2" }]);
  expect(delivered).toBe(1);
  expect((await settled(id)).state.steps["wait"]?.output).toMatchObject({ payload: { n: 2 } });
});

test("a failed instance is abandoned by a cancel, which undoes what was not undone", async () => {
  const workflowId = `control${++made}`;
  await api.call("POST", "/v1/definitions", {
    id: workflowId,
    compensateOnFailure: false,
    steps: [
      { ...say, transitions: { default: "flaky" } },
      { ...flaky, transitions: undefined },
    ],
    compensationSteps: [{ stepId: "undo", compensationFor: "say", type: "TASK", taskId: "echo" }],
  });
  const { id } = (await api.call("POST", "/v1/instances", { workflowId })).body;
  const failed = await settled(id);

  const plan = (await api.call("GET", `/v1/instances/${id}/compensation-plan`)).body;
  const cancelled = await act("cancel", id, { reason: "give up" });
  const ended = await settled(id);
  const again = await act("cancel", id);

  expect([failed.status, failed.compensation]).toEqual(["FAILED", null]);
  expect([plan.cancellable, plan.plan]).toEqual([true, ["undo"]]);
  expect(cancelled.body).toMatchObject({ status: "CANCELLED", error: null });
  expect(ended.compensation).toMatchObject({ status: "COMPLETED", completed: ["undo"] });
  expect([again.status, (await act("retry", id)).status]).toEqual([409, 409]);
});

test("variables are patched at the version that was read, and open waits see them at once", async () => {
  const workflowId = `control${++made}`;
  const wait = {
    stepId: "wait",
    type: "EVENT_WAIT",
    eventPattern: "patched",
    eventCondition: "event.payload.order === variables.order",
  };
  const variables = { order: "old", kept: { a: 1, b: 2 } };
  await api.call("POST", "/v1/definitions", { id: workflowId, variables, steps: [wait] });
  const { id } = (
    await api.call("POST", "/v1/instances", { workflowId, metadata: { team: "x", n: 1 } })
  ).body;
  const patch = (body: object, tag?: string) =>
    api.call("PATCH", `/v1/instances/${id}`, body, tag === undefined ? {} : { "if-match": tag });
  const change = {
    state: { variables: { order: `new-${id}`, kept: { a: null } } },
    priority: 7,
    deadline: "2030-01-01T00:00:00.000Z",
    metadata: { n: null },
  };

  const blind = await patch(change);
  const stale = await patch(change, '"99"');
  const owned = await patch({ status: "COMPLETED", tenantId: "x", state: { steps: {} } }, '"1"');
  const changed = await patch(change, '"1"');
  const missed = await publish("patched", { order: "old" });
  const found = await publish("patched", { order: `new-${id}` });
  const ended = await settled(id);
  const late = await patch({ priority: 1 }, `"${ended.version}"`);

  expect([blind.status, blind.body.code]).toEqual([428, "PRECONDITION_REQUIRED"]);
  expect([stale.status, owned.status]).toEqual([412, 400]);
  expect(owned.body.errors.map(({ path }: { path: string }) => path)).toEqual(
    expect.arrayContaining(["/status", "/tenantId"]),
  );
  expect([changed.status, changed.headers.get("etag")]).toEqual([200, '"2"']);
  expect(changed.body).toMatchObject({
    version: 2,
    state: { variables: { order: `new-${id}`, kept: { b: 2 } } },
    priority: 7,
    deadline: "2030-01-01T00:00:00.000Z",
    metadata: { team: "x" },
  });
  expect([missed.delivered, found.delivered, ended.status]).toEqual([0, 1, "COMPLETED"]);
  expect(late.status).toBe(409);
  expect(await typesOf(id)).toContain("workflow.patched");
});

test("an instance whose retries are spent is parked, and has another round or goes on elsewhere", async () => {
  const retry = { maxAttempts: 1, onExhausted: "PAUSE" };
  const id = await start([{ ...flaky, condition: undefined, retry }, say]);
  const parked = await until(id, "it is parked", ({ status }) => status === "PAUSED");
  const held = await heldOf(id);

  const resumed = await act("retry", id);
  const again = await until(id, "it is parked again", ({ status }) => status === "PAUSED");
  const skipped = await act("retry", id, { fromStepId: "say" });
  const ended = await settled(id);

  expect(parked).toMatchObject({
    error: { stepId: "flaky", attempt: 1 },
    pause: { cause: "EXHAUSTED", by: "system" },
  });
  expect(held.summary).toMatch(/retries of step "flaky" are spent/);
  // The answer may be of the next round, which is quick to fail: what the retry made of it is in its version.
  const next = await api.call("GET", `/v1/instances/${id}/state?version=${parked.version + 1}`);
  expect([resumed.status, next.body.status, next.body.error]).toEqual([202, "RUNNING", null]);
  expect(again.state.steps["flaky"]).toMatchObject({ attempts: 2, iteration: 1 });
  expect([skipped.status, ended.status, ended.error]).toEqual([202, "COMPLETED", null]);
});

test("a retry of what is parked goes on with what the pause has held, in order of time", async () => {
  const note = (stepId: string) => ({
    stepId,
    type: "SET",
    variables: { log: `\${ variables.log + "${stepId}" }` },
  });
  const retry = { maxAttempts: 1, onExhausted: "PAUSE" };
  const eventPattern = `parked${made}`;
  const first = { stepId: "wait", type: "EVENT_WAIT", eventPattern };
  const second = { stepId: "delay", type: "DELAY", duration: "P1D" };
  const branches = [
    { name: "d", steps: [{ ...second, transitions: { default: "timer" } }, note("timer")] },
    { name: "w", steps: [{ ...first, transitions: { default: "event" } }, note("event")] },
    { name: "f", steps: [{ stepId: "bad", type: "TASK", taskId: "fail", retry }] },
  ];
  const id = await start([
    { stepId: "begin", type: "SET", variables: { log: "" }, transitions: { default: "all" } },
    { stepId: "all", type: "PARALLEL", branches },
  ]);
  const parked = await until(id, "it is parked", ({ status }) => status === "PAUSED");
  await publish(eventPattern);
  await sql`update timers set due_at = now() where instance_id = ${id}`.execute(
    api.services.database.db,
  );

  const retried = await act("retry", id);

  // The answer may be of the next round, which is quick to fail.
  const next = await api.call("GET", `/v1/instances/${id}/state?version=${parked.version + 1}`);
  expect([retried.status, next.body.state.variables]).toEqual([202, { log: "eventtimer" }]);
});

test("C39: what is paused with due timers and events holds up nobody else, and is not looked at again", async () => {
  const workflowId = `control${++made}`;
  const wait = { stepId: "wait", type: "EVENT_WAIT", eventPattern: `crowd${made}` };
  const delay = { stepId: "delay", type: "DELAY", duration: "PT0.1S" };
  const branches = [
    { name: "w", steps: [wait] },
    { name: "d", steps: [delay] },
  ];
  const steps = [{ stepId: "both", type: "PARALLEL", branches }];
  await api.call("POST", "/v1/definitions", { id: workflowId, steps });
  const items = Array.from({ length: 100 }, () => ({ workflowId }));
  const started = await api.call("POST", "/v1/instances:batch", { items });
  const ids: string[] = started.body.results.map(
    ({ instance }: { instance: InstanceView }) => instance.id,
  );
  await Promise.all(ids.map((id) => act("pause", id)));
  const { delivered } = await publish(wait.eventPattern);

  const other = await start([{ ...delay, transitions: { default: "say" } }, say]);
  const { status } = await settled(other);
  const looks = await sql<{ n: number }>`select count(*)::integer as n from timers t
    join workflow_instances i on i.tenant_id = t.tenant_id and i.id = t.instance_id
    where i.status = 'PAUSED' and t.look_at < 'infinity'`.execute(api.services.database.db);
  await Promise.all(ids.map((id) => act("resume", id)));
  const ended = await Promise.all(ids.map(settled));

  expect([delivered, status, looks.rows[0]?.n]).toEqual([100, "COMPLETED", 0]);
  expect(new Set(ended.map((each) => each.status))).toEqual(new Set(["COMPLETED"]));
});
