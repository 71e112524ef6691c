import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { pickFields } from "../src/fields.ts";
import { createFakeApp, type FakeApp, ID, view } from "./fake-runtime.ts";

const JSON_TYPE = { "content-type": "application/json" };
const START = { method: "POST", url: "/v1/instances" } as const;

let app: FakeApp;
afterEach(() => app.close());

test("a start answers 201 with ETag and Location", async () => {
  app = await createFakeApp();

  const answer = await app.http.inject({
    ...START,
    headers: { "idempotency-key": "k-1", "x-request-id": "req-7" },
    payload: { workflowId: "order", input: { amount: 1 }, userId: "u" },
  });

  expect(answer.statusCode).toBe(201);
  expect(answer.headers).toMatchObject({
    etag: '"7"',
    location: `/v1/instances/${ID}`,
    "content-type": "application/json; charset=utf-8",
    "x-request-id": "req-7",
  });
  expect(answer.json()).toEqual(view());
  expect(app.calls).toEqual([
    {
      verb: "startInstance",
      caller: { tenantId: "default", isAnyTenant: true, actor: "api" },
      args: [{ workflowId: "order", input: { amount: 1 }, userId: "u" }, "k-1"],
    },
  ]);
});

test("C72: a start that its Idempotency-Key had made before answers 200 and says so", async () => {
  app = await createFakeApp({
    startInstance: async () => ({ instance: view({ version: 9 }), replayed: true }),
  });

  const answer = await app.http.inject({ ...START, payload: { workflowId: "order" } });

  expect(answer.statusCode).toBe(200);
  expect(answer.headers).toMatchObject({ "idempotent-replayed": "true", etag: '"9"' });
});

test.each([
  ["a header", { "millrace-tenant": "a" }, {}, "a"],
  ["the body", {}, { tenantId: "b" }, "b"],
  ["both, which agree", { "millrace-tenant": "a" }, { tenantId: "a" }, "a"],
  ["nobody", {}, {}, "default"],
])("the tenant is named by %s", async (_, headers, body, tenantId) => {
  app = await createFakeApp();

  await app.http.inject({ ...START, headers, payload: { workflowId: "order", ...body } });

  expect(app.calls[0]?.caller.tenantId).toBe(tenantId);
});

test("C87: a body cannot name another tenant than the header", async () => {
  app = await createFakeApp();
  const headers = { "millrace-tenant": "a" };

  const start = await app.http.inject({
    ...START,
    headers,
    payload: { workflowId: "order", tenantId: "b" },
  });
  const list = await app.http.inject({ url: "/v1/instances?tenantId=b", headers });

  expect([start.statusCode, start.json().errors[0].path]).toEqual([400, "/tenantId"]);
  expect([list.statusCode, list.json().code]).toEqual([400, "INVALID_QUERY"]);
  expect(app.calls).toEqual([]);
});

test.each([
  "status",
  "version",
  "id",
  "createdBy",
  "createdAt",
  "attempt",
  "state",
  "workflowVersion",
])("C87: a start cannot set %s", async (field) => {
  app = await createFakeApp();
  const value = field === "version" ? -1 : "x";

  const answer = await app.http.inject({
    ...START,
    payload: { workflowId: "order", [field]: value },
  });

  expect(answer.statusCode).toBe(400);
  expect(answer.json().errors).toMatchObject([{ path: `/${field}` }]);
  expect(app.calls).toEqual([]);
});

test.each([
  [
    "C61: U+0000",
    String.raw`{"workflowId":"a","input":{"x":"\u0000"}}`,
    400,
    "INVALID_BODY",
    ["/input/x"],
  ],
  [
    "C64: numbers that change",
    '{"workflowId":"a","input":[9007199254740993,1e400,-0,0.1]}',
    400,
    "INVALID_BODY",
    ["/input/0", "/input/1", "/input/2"],
  ],
  [
    "C66: __proto__",
    '{"workflowId":"a","input":{"__proto__":{"x":1}}}',
    400,
    "INVALID_BODY",
    ["/input/__proto__"],
  ],
  [
    "lone surrogates",
    String.raw`{"workflowId":"a","correlationId":"\ud800"}`,
    400,
    "INVALID_BODY",
    ["/correlationId"],
  ],
  [
    "faults of both kinds",
    String.raw`{"workflowId":"1","input":"\u0000","nope":1}`,
    400,
    "INVALID_BODY",
    ["/input", "/workflowId", "/nope"],
  ],
  [
    "nesting beyond 64",
    `{"workflowId":"a","input":${"[".repeat(64)}${"]".repeat(64)}}`,
    400,
    "INVALID_BODY",
    [`/input${"/0".repeat(63)}`],
  ],
  ["malformed JSON", '{"workflowId":}', 400, "MALFORMED_JSON", []],
  ["an empty body", "", 400, "INVALID_BODY", [""]],
  ["null", "null", 400, "INVALID_BODY", [""]],
  ["a list", "[]", 400, "INVALID_BODY", [""]],
  ["C68: 10 MB", `"${"x".repeat(10_000_000)}"`, 413, "PAYLOAD_TOO_LARGE", []],
])(
  "a start with %s is refused, and everything wrong with it is named",
  async (_, payload, status, code, paths) => {
    app = await createFakeApp();

    const answer = await app.http.inject({ ...START, headers: JSON_TYPE, payload });

    expect(answer.statusCode).toBe(status);
    expect(answer.headers["content-type"]).toBe("application/problem+json");
    const problem = answer.json();
    expect(problem).toMatchObject({ status, code, requestId: answer.headers["x-request-id"] });
    expect((problem.errors ?? []).map(({ path }: { path: string }) => path)).toEqual(paths);
    expect(app.calls).toEqual([]);
  },
);

test("C66: plain keys that are odd are kept as data", async () => {
  app = await createFakeApp();
  const payload = '{"workflowId":"a","input":{"constructor":{"prototype":{"x":1}},"toString":2}}';

  const answer = await app.http.inject({ ...START, headers: JSON_TYPE, payload });

  expect(answer.statusCode).toBe(201);
  expect(JSON.stringify(app.calls[0]?.args[0])).toBe(payload);
  expect(Reflect.get({}, "x")).toBeUndefined();
});

test.each([
  ["POST", "/v1/instances", { "content-type": "text/plain" }, "x", 415, "UNSUPPORTED_MEDIA_TYPE"],
  [
    "POST",
    "/v1/instances",
    { "content-type": "application/json; charset=latin1" },
    "{}",
    415,
    "UNSUPPORTED_MEDIA_TYPE",
  ],
  [
    "POST",
    "/v1/instances",
    { "content-type": "application/jsonp" },
    "{}",
    415,
    "UNSUPPORTED_MEDIA_TYPE",
  ],
  [
    "POST",
    "/v1/instances",
    { ...JSON_TYPE, "idempotency-key": " " },
    '{"workflowId":"a"}',
    400,
    "INVALID_HEADER",
  ],
  ["POST", "/v1/instances?dry=1", JSON_TYPE, '{"workflowId":"a"}', 400, "INVALID_QUERY"],
  ["POST", "/v1/instances/nope/cancel", JSON_TYPE, "{}", 400, "BAD_ID"],
  [
    "POST",
    `/v1/instances/${ID}/cancel`,
    { ...JSON_TYPE, "if-match": "seven" },
    "{}",
    400,
    "INVALID_HEADER",
  ],
  ["PUT", "/v1/limits/order", JSON_TYPE, '{"limit":1}', 400, "BAD_ID"],
  ["PUT", "/v1/limits/tenant", JSON_TYPE, '{"limit":-1}', 400, "INVALID_BODY"],
  [
    "POST",
    "/v1/events",
    JSON_TYPE,
    '{"pattern":"workflow.completed","payload":1}',
    422,
    "RESERVED_PATTERN",
  ],
  ["POST", "/v1/events", JSON_TYPE, '{"pattern":"a.*","payload":1}', 400, "INVALID_BODY"],
  ["PUT", "/v1/definitions/9", JSON_TYPE, '{"id":"9"}', 400, "BAD_ID"],
  ["GET", "/v1/definitions/a", {}, undefined, 404, "DEFINITION_NOT_FOUND"],
  ["GET", "/v1/definitions/a/versions/0", {}, undefined, 400, "BAD_ID"],
  ["GET", "/v1/instances/nope", {}, undefined, 400, "BAD_ID"],
  ["GET", "/v1/instances/%zz", {}, undefined, 400, "BAD_ID"],
  ["GET", `/v1/instances/${ID}?wait=soon`, {}, undefined, 400, "INVALID_QUERY"],
  ["GET", `/v1/instances/${ID}?wait=1&wait=2`, {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?limit=501", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?status=DONE", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?stat=RUNNING", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?correlationId=a%00", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?variables.name=abc", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?variables.n=9007199254740993", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?variables.n=%22%5Cu0000%22", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances?variables.n%00=1", {}, undefined, 400, "INVALID_QUERY"],
  ["GET", "/v1/instances", { "millrace-tenant": "a\u00e9" }, undefined, 400, "INVALID_HEADER"],
  ["GET", "/v2/instances", {}, undefined, 404, "ROUTE_NOT_FOUND"],
  ["DELETE", "/v1/instances", {}, undefined, 405, "METHOD_NOT_ALLOWED"],
] as const)(
  "%s %s with %j and %s is a problem",
  async (method, url, headers, payload, status, code) => {
    app = await createFakeApp();

    const answer = await app.http.inject({
      method,
      url,
      headers,
      ...(payload === undefined ? {} : { payload }),
    });

    expect(answer.json()).toMatchObject({ status, code });
    expect(answer.statusCode).toBe(status);
    expect(answer.headers["content-type"]).toBe("application/problem+json");
    expect(answer.headers["x-request-id"]).toEqual(expect.any(String));
  },
);

test("405 says which methods there are", async () => {
  app = await createFakeApp();

  const answer = await app.http.inject({ method: "PUT", url: `/v1/instances/${ID}/cancel?x=1` });

  expect([answer.statusCode, answer.headers.allow]).toEqual([405, "POST"]);
});

test("a batch has one result per item, in order, each tenant's items together", async () => {
  app = await createFakeApp();
  const payload = {
    items: [{ workflowId: "a" }, { workflow: "b" }, { workflowId: "c", tenantId: "t" }, null],
  };

  const answer = await app.http.inject({ method: "POST", url: "/v1/instances:batch", payload });

  expect(answer.statusCode).toBe(200);
  expect(answer.json().results).toMatchObject([
    { index: 0, status: 201, instance: { id: ID } },
    { index: 1, status: 400, problem: { code: "INVALID_BODY", errors: [{}, {}] } },
    { index: 2, status: 201 },
    { index: 3, status: 400 },
  ]);
  expect(app.calls.map(({ caller, args }) => [caller.tenantId, args[0]])).toEqual([
    ["default", [{ workflowId: "a" }]],
    ["t", [{ workflowId: "c", tenantId: "t" }]],
  ]);
});

test.each(["instances", "events"])(
  "a batch of %s of which nothing at all came, since the database is away, is a 503",
  async (kind) => {
    const error = Object.assign(new Error("away"), { code: "DATABASE_UNAVAILABLE" });
    const away = async (_: unknown, items: readonly unknown[]) => items.map(() => ({ error }));
    app = await createFakeApp({ startInstances: away, publishEvents: away });
    const payload = [
      { workflowId: "a", pattern: "a.b", payload: 1 },
      { workflowId: "b", pattern: "a.c", payload: 2 },
    ].map(({ workflowId, ...event }) => (kind === "events" ? event : { workflowId }));

    const answer = await app.http.inject({ method: "POST", url: `/v1/${kind}:batch`, payload });

    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "1"]);
    expect(answer.json().code).toBe("DATABASE_UNAVAILABLE");
  },
);

test("a batch of events refuses only the events that are wrong", async () => {
  app = await createFakeApp();
  const payload = [
    { pattern: "a.b", payload: 1 },
    { pattern: "workflow.x", payload: 1 },
  ];

  const answer = await app.http.inject({ method: "POST", url: "/v1/events:batch", payload });

  expect(answer.statusCode).toBe(202);
  expect(answer.json().results).toMatchObject([
    { index: 0, status: 202, event: { id: "e-1", delivered: 1 } },
    { index: 1, status: 422, problem: { code: "RESERVED_PATTERN" } },
  ]);
});

test.each([
  ["no", [1001], 400],
  ["a thousand", [1000], 200],
])("%s batch of %j items", async (_, [count], status) => {
  app = await createFakeApp();
  const payload = Array.from({ length: count ?? 0 }, () => ({ workflowId: "a" }));

  const answer = await app.http.inject({ method: "POST", url: "/v1/instances:batch", payload });

  expect(answer.statusCode).toBe(status);
});

test("an instance is read with its ETag, which then spares the body", async () => {
  app = await createFakeApp();
  const url = `/v1/instances/${ID}`;

  const first = await app.http.inject({ url });
  const second = await app.http.inject({ url, headers: { "if-none-match": '"7"' } });

  expect([first.statusCode, first.headers.etag]).toEqual([200, '"7"']);
  expect([second.statusCode, second.headers.etag, second.body]).toEqual([304, '"7"', ""]);
});

test("fields that no instance has are refused, and those of what is inside it may be missing", async () => {
  app = await createFakeApp();

  const answer = await app.http.inject({ url: `/v1/instances/${ID}?fields=staus,state.nope` });

  expect(answer.statusCode).toBe(400);
  expect(answer.json()).toMatchObject({ code: "INVALID_QUERY", errors: [{ path: "/fields/0" }] });
});

test("fields answers the parts that are asked for, in the whole's shape", async () => {
  app = await createFakeApp();

  const answer = await app.http.inject({
    url: `/v1/instances/${ID}?fields=status,state.variables.total,state.variables.none,progress`,
  });

  expect(answer.json()).toEqual({
    id: ID,
    version: 7,
    status: "RUNNING",
    state: { variables: { total: 3 } },
    progress: { completed: 0, total: 2 },
  });
});

test("steps in items are asked for by their paths, which have points in them", () => {
  const inner = { output: { n: 1 }, error: null };
  const steps = { ship: inner, "ship[3].p": inner, "ship[3].p.x.label": inner };
  const whole = { id: ID, version: 7, state: { steps } };
  const pick = (field: string) => pickFields(whole, [`state.steps.${field}`]);

  const picked = (member: object) => ({ id: ID, version: 7, state: { steps: member } });
  expect(pick("ship[3].p")).toEqual(picked({ "ship[3].p": inner }));
  expect(pick("ship[3].p.output")).toEqual(picked({ "ship[3].p": { output: { n: 1 } } }));
  expect(pick("ship[3].p.x.label.output.n")).toEqual(
    picked({ "ship[3].p.x.label": { output: { n: 1 } } }),
  );
  expect(pick("ship[4].p")).toEqual(picked({}));
});

test.each([
  ["status,state.variables,state.steps.a.status,compensation.plan", []],
  ["state.steps.a.output.n,state.steps.b,compensation.steps.undo.output", ["a", "b", "undo"]],
  ["state.steps.a,state.steps", undefined],
  ["compensation", undefined],
  ["state.steps.map[1].label", undefined],
  ["state.steps.map[1].label.output.n", undefined],
  ["state.steps.both.left.map[1].label.output", undefined],
])(
  "of the outputs of steps only those are read that are among the fields: %s",
  async (fields, read) => {
    app = await createFakeApp();

    await app.http.inject({ url: `/v1/instances/${ID}?fields=${fields}` });

    expect(app.calls.at(-1)?.args).toEqual([ID, read]);
  },
);

test("a list takes the contract's filters, those on variables too", async () => {
  app = await createFakeApp();

  const answer = await app.http.inject({
    url: `/v1/instances?status=RUNNING,FAILED&variables.total=3&variables.a.b=%22x%22&limit=7&order=-createdAt&tenantId=t`,
  });

  expect(answer.statusCode).toBe(200);
  expect(app.calls[0]).toEqual({
    verb: "listInstances",
    caller: { tenantId: "t", isAnyTenant: false, actor: "api" },
    args: [
      { status: ["RUNNING", "FAILED"], limit: 7, order: "-createdAt", tenantId: "t" },
      [
        { path: ["total"], json: "3" },
        { path: ["a", "b"], json: '"x"' },
      ],
    ],
  });
});

test("a cancel needs no body, names who asked, and hands on the version of If-Match", async () => {
  app = await createFakeApp();
  const url = `/v1/instances/${ID}/cancel`;

  const bare = await app.http.inject({ method: "POST", url });
  await app.http.inject({
    method: "POST",
    url,
    headers: { "if-match": 'W/"6"' },
    payload: { reason: "changed my mind", requestedBy: "ann" },
  });

  expect([bare.statusCode, bare.headers.etag]).toEqual([202, '"8"']);
  expect(app.calls).toMatchObject([
    { caller: { actor: "api" }, args: [ID, {}, undefined] },
    { caller: { actor: "ann" }, args: [ID, { reason: "changed my mind" }, 6] },
  ]);
});

test("a request id that is odd is replaced, not repeated", async () => {
  app = await createFakeApp();

  const answer = await app.http.inject({
    url: "/healthz",
    headers: { "x-request-id": "a b\u0001" },
  });

  expect(answer.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
});

test("readiness answers 503 while what is required is away", async () => {
  app = await createFakeApp({
    readiness: async () => ({
      status: "unavailable",
      checks: { postgres: { status: "down", detail: "connect ECONNREFUSED" } },
    }),
  });

  const answer = await app.http.inject("/readyz");

  expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "1"]);
  expect(answer.json().checks.postgres.detail).toBe("connect ECONNREFUSED");
});

test("a long poll that waits answers at once when the process is asked to end", async () => {
  let onAsked = () => {};
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve;
  });
  app = await createFakeApp({
    waitUntilSettled: (_caller, _id, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve(view({ version: 9 })));
        onAsked();
      }),
  });
  const base = await app.http.listen({ port: 0, host: "127.0.0.1" });
  const poll = fetch(`${base}/v1/instances/${ID}?wait=300`);
  await asked;

  const startedAt = performance.now();
  await app.close();

  expect(await (await poll).json()).toMatchObject({ version: 9 });
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  await expect(fetch(`${base}/healthz`)).rejects.toThrow(/fetch failed/);
});

test("whoever hangs up while waiting is not waited for", async () => {
  let aborted = false;
  const caller = new AbortController();
  app = await createFakeApp({
    waitUntilSettled: (_caller, _id, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          aborted = true;
          resolve(view());
        });
        caller.abort();
      }),
  });
  const base = await app.http.listen({ port: 0, host: "127.0.0.1" });

  const gone = fetch(`${base}/v1/instances/${ID}?wait=300`, { signal: caller.signal });

  await expect(gone).rejects.toThrow(/abort/i);
  await expect.poll(() => aborted, { timeout: 30_000 }).toBe(true);
});

test("whoever hangs up in the middle of a body is no failure of this side", async () => {
  app = await createFakeApp();
  await app.http.listen({ port: 0, host: "127.0.0.1" });
  const gone = once(app.http.server, "connection").then(([socket]) => once(socket, "close"));
  const { port } = app.http.server.address() as AddressInfo;
  const caller = connect(port, "127.0.0.1");
  const head = "POST /v1/instances HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";

  caller.write(`${head}content-length: 9\r\n\r\n{`, () => setTimeout(() => caller.destroy(), 20));
  await gone;
  await new Promise((resolve) => setImmediate(resolve));

  expect(app.lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
});

test("the page to read holds every call and fetches nothing from elsewhere", async () => {
  app = await createFakeApp();

  const { body, headers } = await app.http.inject("/docs");

  const { paths } = (await app.http.inject("/openapi.json")).json();
  for (const path of Object.keys(paths)) expect(body).toContain(`<code>${path}</code>`);
  expect(body).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
});
