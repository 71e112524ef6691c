import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Answer, call as send, echo, openTestApi, type TestApi, waiting } from "./support.ts";

// What is refused at the door (P15): a 4xx problem that names every fault with its place, and nothing
// is stored.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await api.call("PUT", "/v1/definitions/echo", echo);
  await api.call("PUT", "/v1/definitions/waiting", waiting);
  await api.call("PUT", "/v1/definitions/strict", {
    ...echo,
    id: "strict",
    inputSchema: {
      type: "object",
      properties: { amount: { type: "number", minimum: 0 }, email: { type: "string" } },
      required: ["amount", "email"],
    },
  });
});
afterAll(() => api.close());

const START = ["POST", "/v1/instances"] as const;
const EVENT = ["POST", "/v1/events"] as const;
const DEFINE = ["POST", "/v1/definitions"] as const;

interface Case {
  readonly what: string;
  readonly request: readonly [method: string, path: string];
  readonly body: unknown;
  readonly status: number;
  readonly code: string;
  readonly paths?: readonly string[];
}

const cases: readonly Case[] = [
  {
    what: "C61: U+0000 in an input",
    request: START,
    body: String.raw`{"workflowId":"echo","input":{"a":["\u0000"]}}`,
    status: 400,
    code: "INVALID_BODY",
    paths: ["/input/a/0"],
  },
  {
    what: "C61: U+0000 in an event",
    request: EVENT,
    body: String.raw`{"pattern":"paid","payload":{"k\u0000":1}}`,
    status: 400,
    code: "INVALID_BODY",
    paths: ["/payload/k\0"],
  },
  {
    what: "C64: numbers that would change",
    request: START,
    body: '{"workflowId":"echo","input":[9007199254740993,1e400,-0,0.1]}',
    status: 400,
    code: "INVALID_BODY",
    paths: ["/input/0", "/input/1", "/input/2"],
  },
  {
    what: "C64: a number that would change, in an event",
    request: EVENT,
    body: '{"pattern":"paid","payload":{"id":9007199254740993}}',
    status: 400,
    code: "INVALID_BODY",
    paths: ["/payload/id"],
  },
  {
    what: "C66: a key __proto__",
    request: START,
    body: '{"workflowId":"echo","input":{"__proto__":{"x":1}}}',
    status: 400,
    code: "INVALID_BODY",
    paths: ["/input/__proto__"],
  },
  {
    what: "C66: a variable named __proto__",
    request: DEFINE,
    body: `{"id":"proto","variables":{"__proto__":1},"steps":${JSON.stringify(echo.steps)}}`,
    status: 422,
    code: "INVALID_DEFINITION",
    paths: ["/variables/__proto__"],
  },
  {
    what: "C61: a definition with U+0000, half a surrogate pair and numbers that would change, with faults besides",
    request: ["PUT", "/v1/definitions/other"],
    body: String.raw`{"id":"a\u0000","priority":1e400,"variables":{"n":9007199254740993},"timeout":"soon",
      "steps":[{"stepId":"a","type":"TASK","taskId":"a\ud800","transitions":{"default":"b"}}]}`,
    status: 422,
    code: "INVALID_DEFINITION",
    paths: [
      "/id",
      "/steps/0/taskId",
      "/priority",
      "/variables/n",
      "/timeout",
      "/steps/0/transitions/default",
    ],
  },
  {
    what: "C61: a definition to be validated, with U+0000 and faults besides",
    request: ["POST", "/v1/definitions/validate"],
    body: String.raw`{"id":"a","description":"\u0000","timeout":"soon","steps":[{"stepId":"a","type":"END"}]}`,
    status: 422,
    code: "INVALID_DEFINITION",
    paths: ["/description", "/timeout", "/steps/0/outcome"],
  },
  {
    what: "C68: a start of 10 MB",
    request: START,
    body: { workflowId: "echo", input: "x".repeat(10_000_000) },
    status: 413,
    code: "PAYLOAD_TOO_LARGE",
  },
  {
    what: "C68: an event of 10 MB",
    request: EVENT,
    body: { pattern: "paid", payload: "x".repeat(10_000_000) },
    status: 413,
    code: "PAYLOAD_TOO_LARGE",
  },
  {
    what: "a body of one byte over 1 MiB",
    request: EVENT,
    body: `{"pattern":"paid","payload":"${"x".repeat(1_048_576 - 30)}"}`,
    status: 413,
    code: "PAYLOAD_TOO_LARGE",
  },
  {
    what: "nesting of 5,000 levels",
    request: START,
    body: `{"workflowId":"echo","input":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
    status: 400,
    code: "INVALID_BODY",
    paths: [`/input${"/0".repeat(63)}`],
  },
  {
    what: "a lone surrogate",
    request: START,
    body: String.raw`{"workflowId":"echo","input":"\ud83d"}`,
    status: 400,
    code: "INVALID_BODY",
    paths: ["/input"],
  },
  {
    what: "malformed JSON",
    request: START,
    body: '{"workflowId":"echo",}',
    status: 400,
    code: "MALFORMED_JSON",
  },
  {
    what: "several faults at once",
    request: START,
    body: { workflowId: "9", version: "1", priority: 1e9, startAt: "soon", colour: "red" },
    status: 400,
    code: "INVALID_BODY",
    paths: ["/workflowId", "/version", "/priority", "/startAt", "/colour"],
  },
  {
    what: "an unknown workflow",
    request: START,
    body: { workflowId: "nobody" },
    status: 404,
    code: "WORKFLOW_NOT_FOUND",
  },
  {
    what: "an unknown version of a workflow",
    request: START,
    body: { workflowId: "echo", version: 7 },
    status: 404,
    code: "WORKFLOW_NOT_FOUND",
  },
  {
    what: "a version that no column could hold",
    request: START,
    body: { workflowId: "echo", version: 3e9 },
    status: 400,
    code: "INVALID_BODY",
    paths: ["/version"],
  },
  {
    what: "no body at all",
    request: START,
    body: undefined,
    status: 400,
    code: "INVALID_BODY",
    paths: [""],
  },
  {
    what: "an input that the workflow's schema refuses, twice",
    request: START,
    body: { workflowId: "strict", input: { amount: -1 } },
    status: 422,
    code: "INVALID_INPUT",
  },
  {
    what: "a reserved pattern",
    request: EVENT,
    body: { pattern: "workflow.completed", payload: {} },
    status: 422,
    code: "RESERVED_PATTERN",
  },
  {
    what: "an event without payload, of a pattern with a wildcard",
    request: EVENT,
    body: { pattern: "order.*" },
    status: 400,
    code: "INVALID_BODY",
    paths: ["/pattern", "/payload"],
  },
  {
    what: "a definition that is no object",
    request: DEFINE,
    body: [1],
    status: 422,
    code: "INVALID_DEFINITION",
  },
  {
    what: "a definition with an unknown step, an expression that does not parse and a bad duration",
    request: DEFINE,
    body: {
      id: "broken",
      timeout: "1 day",
      steps: [
        {
          stepId: "a",
          type: "TASK",
          taskId: "echo",
          condition: "1 +",
          transitions: { default: "c" },
        },
        { stepId: "a", type: "TASK", taskId: "echo" },
      ],
    },
    status: 422,
    code: "INVALID_DEFINITION",
  },
  {
    what: "a definition whose id is not the path's",
    request: ["PUT", "/v1/definitions/other"],
    body: echo,
    status: 422,
    code: "INVALID_DEFINITION",
    paths: ["/id"],
  },
  {
    what: "a definition whose id is not the path's, with faults besides",
    request: ["PUT", "/v1/definitions/other"],
    body: { ...echo, timeout: "soon", inputSchema: { type: "nothing" } },
    status: 422,
    code: "INVALID_DEFINITION",
    paths: ["/id", "/inputSchema/type", "/timeout"],
  },
  {
    what: "C51: a duration that is none",
    request: DEFINE,
    body: { id: "slow", steps: [{ stepId: "a", type: "DELAY", duration: "pt5s" }] },
    status: 422,
    code: "INVALID_DEFINITION",
  },
];

test.each(cases)("$what is refused with $status, and nothing is stored", async (it) => {
  const before = await counts();

  const answer = await api.call(...it.request, it.body);

  expect(answer.status).toBe(it.status);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.body).toMatchObject({
    status: it.status,
    code: it.code,
    title: expect.any(String),
    detail: expect.any(String),
  });
  expect(it.paths === undefined || pathsOf(answer)).toEqual(it.paths ?? true);
  expect(await counts()).toEqual(before);
});

test("every problem of a definition is listed at once", async () => {
  const broken = cases.find(({ what }) => what.startsWith("a definition with an unknown step"));

  const { body } = await api.call(...DEFINE, broken?.body);

  expect(body.errors.length).toBeGreaterThanOrEqual(4);
  const paths = body.errors.map(({ path }: { path: string }) => path);
  expect(paths).toContain("/timeout");
  expect(paths.filter((path: string) => path.startsWith("/steps/0"))).not.toHaveLength(0);
});

test("every violation of an input's schema is listed at once", async () => {
  const { body } = await api.call(...START, { workflowId: "strict", input: { amount: -1 } });

  expect(body.errors).toHaveLength(2);
});

test("a check that takes too long is made once, and says nothing about the input", async () => {
  const inputSchema = { type: "string", pattern: "^(a+)+$" };
  await api.call("PUT", "/v1/definitions/costly", { ...echo, id: "costly", inputSchema });
  const known = await api.services.definitions.latest("default", "costly");
  const check = vi.spyOn(known, "checkInput");

  const input = `${"a".repeat(40)}!`;
  const { status, body } = await api.call(...START, { workflowId: "costly", input });

  expect([status, body.code, body.errors[0].code]).toEqual([422, "INVALID_INPUT", "TOO_COSTLY"]);
  expect(body.detail).toContain("too long to be checked");
  expect(check).toHaveBeenCalledTimes(1);
});

test("C66: odd keys that are kept change nothing of this process", async () => {
  const input = '{"constructor":{"prototype":{"polluted":1}},"hasOwnProperty":2}';

  const { status, body } = await api.call(...START, `{"workflowId":"echo","input":${input}}`);

  expect(status).toBe(201);
  expect(JSON.stringify(body.input)).toBe(input);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

test.each([
  ["tenantId of another", { tenantId: "them" }],
  ["status", { status: "COMPLETED" }],
  ["version", { version: -1 }],
  ["id", { id: "01890a5d-ac96-774b-bcce-b302099a8057" }],
  ["createdBy", { createdBy: "root" }],
  ["createdAt", { createdAt: "2020-01-01T00:00:00Z" }],
  ["state", { state: { variables: { total: 100 } } }],
  ["attempt", { attempt: 9 }],
])("C87: a start that sets %s is refused", async (_, fields) => {
  const before = await counts();

  const { status } = await api.call(
    ...START,
    { workflowId: "waiting", ...fields },
    { "millrace-tenant": "us" },
  );

  expect(status).toBe(400);
  expect(await counts()).toEqual(before);
});

test.each([
  ["a version of a definition", "/v1/definitions/echo/versions/99999999999", "BAD_ID"],
  ["an id that is too long", `/v1/definitions/${"a".repeat(2_000)}`, "BAD_ID"],
  ["a version to list by", "/v1/instances?workflowVersion=99999999999", "INVALID_QUERY"],
  ["a time before the year 1", "/v1/instances?createdAfter=0000-06-01T00:00:00Z", "INVALID_QUERY"],
  [
    "a time that its offset moves out of the year 9999",
    "/v1/instances?createdAfter=9999-12-31T23:59:59-14:00",
    "INVALID_QUERY",
  ],
  ["a variable that is to be nothing", "/v1/instances?variables.a=", "INVALID_QUERY"],
  ["a variable that is to be", "/v1/instances?variables.a", "INVALID_QUERY"],
  [
    "a cursor with a NUL",
    `/v1/definitions?cursor=${cursor("definitions", "\0")}`,
    "INVALID_CURSOR",
  ],
  [
    "a cursor with an odd time",
    `/v1/instances?order=updatedAt&cursor=${cursor("updatedAt", "-1", "01890a5d-ac96-774b-bcce-b302099a8057")}`,
    "INVALID_CURSOR",
  ],
])("%s that Postgres could not read is refused", async (_, path, code) => {
  const { status, body } = await api.call("GET", path);

  expect([status, body.code]).toEqual([400, code]);
});

test("an id in upper case names the same instance", async () => {
  const { body: started } = await api.call(...START, { workflowId: "echo" });

  const { body } = await api.call("GET", `/v1/instances/${started.id.toUpperCase()}`);

  expect(body.id).toBe(started.id);
});

test("a million brackets and a megabyte of numbers leave the process answering", async () => {
  const bodies = [
    "[".repeat(1_000_000),
    `[${"1e1,".repeat(260_000)}1]`,
    `"${"\\u0041".repeat(170_000)}"`,
  ];

  const answers = await Promise.all(bodies.map((body) => send(api.url, ...START, body)));

  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400]);
  expect((await api.call("GET", "/healthz")).status).toBe(200);
});

function cursor(...parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

function pathsOf({ body }: Answer): string[] {
  return body.errors.map(({ path }: { path: string }) => path);
}

async function counts(): Promise<readonly number[]> {
  const { db } = api.services.database;
  const tables = ["workflow_definitions", "workflow_instances", "events", "history"] as const;
  return Promise.all(
    tables.map(async (table) => (await db.selectFrom(table).select("tenant_id").execute()).length),
  );
}
