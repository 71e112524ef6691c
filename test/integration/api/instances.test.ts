import { InstanceView } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { echo, openTestApi, type TestApi, waiting } from "./support.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
  await api.call("PUT", "/v1/definitions/echo", echo);
  await api.call("PUT", "/v1/definitions/waiting", waiting);
});
afterAll(() => api.close());

const start = (body: object, headers?: Record<string, string>) =>
  api.call("POST", "/v1/instances", body, headers);

test("an instance that has lost its definition is shown, keeps no other from it, says what to do, and can be given up", async () => {
  const { id } = (await start({ workflowId: "waiting", correlationId: "lost" })).body;
  const { id: other } = (await start({ workflowId: "waiting", correlationId: "lost" })).body;
  const loses = "update workflow_instances set workflow_version = 99 where id = $1";
  await api.services.database.db.executeQuery(CompiledQuery.raw(loses, [id]));

  const list = await api.call("GET", "/v1/instances?correlationId=lost");
  const read = await api.call("GET", `/v1/instances/${id}`);
  const refused = await api.call("POST", `/v1/instances/${id}/cancel`, {});
  const why = await api.call("GET", `/v1/instances/${id}/why`);
  const givenUp = await api.call("POST", `/v1/instances/${id}/cancel`, { shouldCompensate: false });
  const left = CompiledQuery.raw("select from waits where instance_id = $1", [id]);

  const ids = list.body.items.map((each: { id: string }) => each.id);
  expect(new Set(ids)).toEqual(new Set([id, other]));
  expect([read.status, read.body.status]).toEqual([200, "WAITING_FOR_EVENT"]);
  expect([refused.status, refused.body.code]).toEqual([409, "STATUS_CONFLICT"]);
  const gone = /definition of .* is not stored any more.* [Rr]estore it .* shouldCompensate/;
  expect(refused.body.detail).toMatch(gone);
  expect(why.body.reasons).toMatchObject([
    { kind: "DEFINITION_MISSING", message: expect.stringMatching(gone) },
    { kind: "EVENT_WAIT", eventPattern: "paid" },
  ]);
  expect([givenUp.status, givenUp.body.status]).toEqual([202, "CANCELLED"]);
  expect(givenUp.body.completedAt).not.toBeNull();
  expect((await api.services.database.db.executeQuery(left)).rows).toEqual([]);
});

test("where the schema of an earlier release would take for ever to compile starts are refused, and what runs goes on", async () => {
  await api.call("PUT", "/v1/definitions/costly", { ...waiting, id: "costly" });
  const { id } = (await start({ workflowId: "costly" })).body;
  await api.call("PUT", "/v1/definitions/costly", { ...waiting, id: "costly", name: "Costly" });
  const stores = `update workflow_definitions set document = jsonb_set(document::jsonb, '{inputSchema}', $1)
    where id = 'costly' and version = 2`;
  const moves = "update workflow_instances set workflow_version = 2 where id = $1";
  const schema = JSON.stringify({ pattern: "a?".repeat(300) });
  await api.services.database.db.executeQuery(CompiledQuery.raw(stores, [schema]));
  await api.services.database.db.executeQuery(CompiledQuery.raw(moves, [id]));

  const refused = await start({ workflowId: "costly", input: "a" });
  const cancelled = await api.call("POST", `/v1/instances/${id}/cancel`, {});

  expect([refused.status, refused.body.code]).toEqual([422, "INVALID_INPUT"]);
  expect(refused.body.detail).toMatch(/no input can be checked .* register it anew/);
  expect(refused.body.errors).toMatchObject([
    { path: "/inputSchema/pattern", code: "PATTERN_TOO_COSTLY" },
  ]);
  expect([cancelled.status, cancelled.body.status]).toEqual([202, "CANCELLED"]);
});

test("the same definition again is a no-op, another content the next version", async () => {
  const define = (document: object) => api.call("PUT", "/v1/definitions/twice", document);

  const answers = [
    await define({ ...echo, id: "twice" }),
    await define({ steps: echo.steps, id: "twice" }),
    await define({ ...echo, id: "twice", name: "Twice" }),
  ];

  expect(answers.map(({ status, body }) => [status, body.version])).toEqual([
    [201, 1],
    [200, 1],
    [201, 2],
  ]);
  const first = await api.call("GET", "/v1/definitions/twice/versions/1");
  const latest = await api.call("GET", "/v1/definitions/twice");
  expect(first.body).toMatchObject({ version: 1, definition: { id: "twice" } });
  expect(latest.body).toMatchObject({ version: 2, name: "Twice" });
});

test("a start without a version takes the one that was registered last, also for what its input may be", async () => {
  const define = (property: string) =>
    api.call("PUT", "/v1/definitions/moving", {
      ...echo,
      id: "moving",
      inputSchema: { type: "object", required: [property] },
    });
  const begin = (input: object, key?: string) =>
    start({ workflowId: "moving", input }, key === undefined ? {} : { "idempotency-key": key });

  await define("a");
  const first = await begin({ a: 1 });
  await define("b");
  const together = await Promise.all([
    begin({ b: 1 }, "k"),
    begin({ a: 1, b: 2 }),
    begin({ a: 1 }),
  ]);
  await define("c");
  const again = await begin({ b: 1 }, "k");
  const last = await begin({ a: 1, b: 1, c: 1 }, "other");
  const later = [
    await begin({ b: 1 }, "k"),
    await begin({ b: 2 }, "k"),
    await begin({ b: 1 }, "new"),
  ];

  expect(first.body).toMatchObject({ workflowVersion: 1 });
  expect(together.map(({ status, body }) => [status, body.workflowVersion])).toEqual([
    [201, 2],
    [201, 2],
    [422, undefined],
  ]);
  expect(again).toMatchObject({ status: 200, body: { id: together[0]?.body.id } });
  expect(last).toMatchObject({ status: 201, body: { workflowVersion: 3 } });
  expect(later.map(({ status }) => status)).toEqual([200, 409, 422]);
});

test("a dry run says what a registration would, and registers nothing", async () => {
  const validate = (document: object) => api.call("POST", "/v1/definitions/validate", document);

  expect((await validate({ ...echo, id: "dry" })).body).toMatchObject({ id: "dry", version: 1 });
  expect((await validate(echo)).body).toMatchObject({ id: "echo", version: 1 });
  expect((await validate({ ...echo, name: "New" })).body).toMatchObject({ version: 2 });
  expect((await validate({ ...echo, steps: [] })).status).toBe(422);
  expect((await api.call("GET", "/v1/definitions/dry")).status).toBe(404);
});

test("an instance that is started runs to its end, and is read as the contract says", async () => {
  const started = await start({ workflowId: "echo", input: { a: 1 }, correlationId: "c-1" });
  const { id } = started.body;

  const done = await api.call("GET", `/v1/instances/${id}?wait=20`);

  expect(started.status).toBe(201);
  expect(started.headers.get("location")).toBe(`/v1/instances/${id}`);
  expect(started.headers.get("etag")).toBe(`"${started.body.version}"`);
  expect(done.body).toMatchObject({
    status: "COMPLETED",
    output: { a: 1 },
    error: null,
    compensation: null,
    cancellation: null,
    correlationId: "c-1",
    tenantId: "default",
    progress: { completed: 1, total: 1 },
    state: {
      steps: { say: { status: "COMPLETED", attempts: 1, output: { a: 1 } } },
      waitingFor: [],
    },
  });
  for (const { body } of [started, done]) {
    expect(InstanceView.safeParse(body).error?.issues).toBeUndefined();
  }
});

test("an event moves the wait that it names, and is answered with what it met", async () => {
  const { id } = (await start({ workflowId: "waiting", input: { order: "o-1" } })).body;
  const open = await waitingInstance(id);
  expect(open.state.waitingFor).toMatchObject([
    { stepId: "pay", kind: "EVENT", eventPattern: "paid" },
  ]);
  const publish = () =>
    api.call("POST", "/v1/events", { id: "e-1", pattern: "paid", payload: { order: "o-1" } });

  const first = await publish();
  const second = await publish();

  expect([first.status, first.body]).toEqual([
    202,
    { id: "e-1", duplicate: false, delivered: 1, cancelled: 0, started: 0 },
  ]);
  expect(second.body).toMatchObject({ duplicate: true, delivered: 0 });
  const done = await api.call("GET", `/v1/instances/${id}?wait=20`);
  expect(done.body).toMatchObject({ status: "COMPLETED", output: { id: "e-1" } });
});

test("a cancel takes effect at once, insists on its If-Match, and is refused the second time", async () => {
  const { id } = (await start({ workflowId: "waiting", input: { order: "o-2" } })).body;
  const { version } = await waitingInstance(id);
  const cancel = (headers?: Record<string, string>) =>
    api.call(
      "POST",
      `/v1/instances/${id}/cancel`,
      { reason: "no more", requestedBy: "ann" },
      headers,
    );

  const stale = await cancel({ "if-match": `"${version - 1}"` });
  const answer = await cancel({ "if-match": `"${version}"` });
  const again = await cancel();

  expect([stale.status, stale.body.code]).toEqual([412, "PRECONDITION_FAILED"]);
  expect(answer.status).toBe(202);
  expect(answer.headers.get("etag")).toBe(`"${answer.body.version}"`);
  expect(answer.body).toMatchObject({
    status: "CANCELLED",
    cancellation: { reason: "no more", requestedBy: "ann", source: "API", shouldCompensate: true },
    state: { steps: { pay: { status: "CANCELLED" } }, waitingFor: [] },
  });
  expect([again.status, again.body.code]).toEqual([409, "STATUS_CONFLICT"]);
});

test("the history tells every change in order", async () => {
  const { id } = (await start({ workflowId: "echo" })).body;
  await api.call("GET", `/v1/instances/${id}?wait=20`);

  const whole = await api.call("GET", `/v1/instances/${id}/history`);
  const pages = await pagesOf(`/v1/instances/${id}/history?limit=1`);

  expect(whole.status).toBe(200);
  const sequence = whole.body.items.map(({ seq }: { seq: number }) => seq);
  expect(sequence.length).toBeGreaterThan(1);
  expect(sequence).toEqual(sequence.toSorted((a: number, b: number) => a - b));
  expect(pages).toEqual(whole.body.items);
});

test("C72: one key, 20 starts at once: one instance, and another body is refused", async () => {
  const headers = { "idempotency-key": "k-72" };
  const same = { workflowId: "echo", input: { a: 1, b: 2 } };
  const reordered = { input: { b: 2, a: 1 }, workflowId: "echo" };

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => start(index % 2 === 0 ? same : reordered, headers)),
  );
  const other = await start({ workflowId: "echo", input: { a: 2 } }, headers);

  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  const replays = answers.filter(({ status }) => status === 200);
  expect(replays).toHaveLength(19);
  expect(replays.every((it) => it.headers.get("idempotent-replayed") === "true")).toBe(true);
  expect([other.status, other.body.code]).toEqual([409, "IDEMPOTENCY_CONFLICT"]);
});

test("C72: a key that another tenant has used is free", async () => {
  const headers = (tenant: string) => ({ "idempotency-key": "k-t", "millrace-tenant": tenant });
  for (const tenant of ["t1", "t2"]) {
    await api.call("PUT", "/v1/definitions/echo", echo, { "millrace-tenant": tenant });
  }

  const first = await start({ workflowId: "echo" }, headers("t1"));
  const second = await start({ workflowId: "echo", input: 2 }, headers("t2"));

  expect([first.status, second.status]).toEqual([201, 201]);
});

test("what belongs to another tenant is not there, on any verb", async () => {
  const { id } = (await start({ workflowId: "waiting", input: { order: "o-3" } })).body;
  const theirs = { "millrace-tenant": "them" };

  const answers = await Promise.all([
    api.call("GET", `/v1/instances/${id}`, undefined, theirs),
    api.call("GET", `/v1/instances/${id}?wait=5`, undefined, theirs),
    api.call("POST", `/v1/instances/${id}/cancel`, {}, theirs),
    api.call("GET", `/v1/instances/${id}/history`, undefined, theirs),
  ]);
  const list = await api.call("GET", `/v1/instances?ids=${id}`, undefined, theirs);
  const event = { pattern: "paid", payload: { order: "o-3" }, tenantId: "them" };
  const published = await api.call("POST", "/v1/events", event);

  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  expect(list.body).toEqual({ items: [], nextCursor: null });
  expect(published.body.delivered).toBe(0);
  expect((await api.call("GET", `/v1/instances/${id}`)).status).toBe(200);
});

test("a shared definition serves every tenant, and a tenant's own one takes its place", async () => {
  const theirs = { "millrace-tenant": "owner" };
  const shared = { id: "greeting", steps: [{ stepId: "a", type: "TASK", taskId: "noop" }] };
  const own = { id: "greeting", steps: [{ stepId: "b", type: "TASK", taskId: "noop" }] };
  await api.call("PUT", "/v1/definitions/greeting", shared);

  const before = await start({ workflowId: "greeting", tenantId: "owner" });
  const registered = await api.call("PUT", "/v1/definitions/greeting", own, theirs);
  const after = await start({ workflowId: "greeting", tenantId: "owner" });
  const others = await start({ workflowId: "greeting" });

  expect(registered.body).toMatchObject({ version: 2 });
  const versions = [before, after, others].map(({ body }) => [body.tenantId, body.workflowVersion]);
  expect(versions).toEqual([
    ["owner", 1],
    ["owner", 2],
    ["default", 1],
  ]);
  const settled = await api.call("GET", `/v1/instances/${before.body.id}?wait=10`);
  expect(settled.body).toMatchObject({ status: "COMPLETED", tenantId: "owner" });
  expect(Object.keys(settled.body.state.steps)).toEqual(["a"]);
});

test.each(["createdAt", "-createdAt"])(
  "C70: pages in order %s hold every instance once, also while others are started",
  async (order) => {
    const correlationId = `c-70${order}`;
    const items = Array.from({ length: 100 }, (_, n) => ({
      workflowId: "waiting",
      input: { order: n },
      correlationId,
    }));
    const batch = await api.call("POST", "/v1/instances:batch", { items });
    const ids = batch.body.results.map((it: { instance: { id: string } }) => it.instance.id);
    await sameCreationTime(ids);

    const starting = Promise.all(
      Array.from({ length: 10 }, () => start({ workflowId: "waiting", correlationId })),
    );
    const found = await pagesOf(
      `/v1/instances?correlationId=${correlationId}&order=${order}&limit=7`,
    );
    await starting;

    const seen = found.map(({ id }) => id);
    expect(new Set(seen).size).toBe(seen.length);
    expect(ids.filter((id: string) => !seen.includes(id))).toEqual([]);
  },
);

test("a list by as many ids as it may name reads them all", async () => {
  const items = Array.from({ length: 500 }, () => ({ workflowId: "waiting" }));
  const batch = await api.call("POST", "/v1/instances:batch", { items });
  const ids = batch.body.results.map((it: { instance: { id: string } }) => it.instance.id);

  const list = await api.call("GET", `/v1/instances?ids=${ids.join(",")}&limit=500`);

  expect(list.status).toBe(200);
  expect(list.body.items).toHaveLength(500);
});

test("a list filters by what the contract names", async () => {
  const { id } = (
    await start({
      workflowId: "waiting",
      input: { order: "o-f" },
      correlationId: "c-f",
      userId: "u",
    })
  ).body;
  const { createdAt } = await waitingInstance(id);
  const idsOf = async (query: string) =>
    (await api.call("GET", `/v1/instances?correlationId=c-f&${query}`)).body.items.map(
      (it: { id: string }) => it.id,
    );

  for (const query of [
    "status=WAITING_FOR_EVENT,RUNNING",
    "workflowId=waiting",
    "workflowVersion=1",
    `ids=${id}`,
    "currentStep=pay",
    "waitingFor=paid",
    `createdAfter=2020-01-01T00:00:00Z&createdBefore=2100-01-01T00:00:00Z`,
    `updatedAfter=2020-01-01T00:00:00Z`,
    "variables.total=1",
  ]) {
    expect([query, await idsOf(query)]).toEqual([query, [id]]);
  }
  for (const query of [
    "status=COMPLETED",
    "workflowId=echo",
    "workflowVersion=2",
    "currentStep=other",
    "waitingFor=shipped",
    `createdBefore=${createdAt.slice(0, 4)}-01-01T00:00:00Z`,
    "variables.total=2",
    "variables.total=%221%22",
  ]) {
    expect([query, await idsOf(query)]).toEqual([query, []]);
  }
});

test("a cursor that no list gave out is refused", async () => {
  const answer = await api.call("GET", "/v1/instances?cursor=nonsense");

  expect([answer.status, answer.body.code]).toEqual([400, "INVALID_CURSOR"]);
});

test("a batch starts what is right and says what is wrong with the rest", async () => {
  const items = [{ workflowId: "echo" }, { workflowId: "nobody" }, { workflowId: 1 }];

  const { body } = await api.call("POST", "/v1/instances:batch", items);

  expect(body.results).toMatchObject([
    { index: 0, status: 201, instance: { workflowId: "echo" } },
    { index: 1, status: 404, problem: { code: "WORKFLOW_NOT_FOUND" } },
    { index: 2, status: 400, problem: { code: "INVALID_BODY" } },
  ]);
});

test("a batch that comes again under its key starts only what was not started", async () => {
  const items = [
    { workflowId: "echo", input: 1 },
    { workflowId: "echo", input: 2 },
  ];
  const send = (body: unknown) =>
    api.call("POST", "/v1/instances:batch", body, { "idempotency-key": "nightly" });
  const first = (await send(items.slice(0, 1))).body.results;

  const again = (await send([...items, { workflowId: "echo" }])).body.results;
  const other = (await send([items[1]])).body.results;

  expect(again).toMatchObject([
    { status: 200, replayed: true, instance: { id: first[0].instance.id } },
    { status: 201, replayed: false, instance: { input: 2 } },
    { status: 201, replayed: false },
  ]);
  expect(other).toMatchObject([{ status: 409, problem: { code: "IDEMPOTENCY_CONFLICT" } }]);
});

test("C64: what passes comes out with the same digits", async () => {
  const input = '{"a":0.1,"b":9007199254740992,"c":1e21,"d":-5.5e-7}';
  const { body } = await api.call(
    "POST",
    "/v1/instances",
    `{"workflowId":"echo","input":${input}}`,
  );

  const done = await api.call("GET", `/v1/instances/${body.id}?wait=20`);

  expect(done.body.output).toEqual(JSON.parse(input));
});

test("a long poll that is not settled in time answers the instance as it is", async () => {
  const { id } = (await start({ workflowId: "waiting", input: { order: "o-9" } })).body;

  const startedAt = performance.now();
  const { body } = await api.call("GET", `/v1/instances/${id}?wait=1`);

  expect(performance.now() - startedAt).toBeGreaterThan(900);
  expect(["RUNNING", "WAITING_FOR_EVENT"]).toContain(body.status);
});

test("metrics and readiness tell about this process", async () => {
  const metrics = await fetch(`${api.url}/metrics`).then((it) => it.text());
  const readiness = await api.call("GET", "/readyz");

  expect(metrics).toContain("millrace_");
  expect(readiness).toMatchObject({
    status: 200,
    body: { status: "ok", checks: { postgres: { status: "ok" }, redis: { status: "ok" } } },
  });
});

async function waitingInstance(id: string): Promise<InstanceView> {
  return eventually("the wait to be open", async () => {
    const { body } = await api.call("GET", `/v1/instances/${id}`);
    return body.status === "WAITING_FOR_EVENT" ? (body as InstanceView) : undefined;
  });
}

async function pagesOf(path: string): Promise<readonly { readonly id: string }[]> {
  const found: { readonly id: string }[] = [];
  let cursor: string | null = null;
  do {
    const next: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { body } = await api.call("GET", path + next);
    found.push(...body.items);
    cursor = body.nextCursor;
  } while (cursor !== null);
  return found;
}

async function sameCreationTime(ids: readonly string[]): Promise<void> {
  await api.services.database.db
    .updateTable("workflow_instances")
    .set({ created_at: new Date() })
    .where("id", "in", ids)
    .execute();
}
