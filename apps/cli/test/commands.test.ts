import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Exchange, type FakeAnswer, type FakeApi, openFakeApi, problem } from "./fake-api.ts";
import { instance, step } from "./instances.ts";
import { millrace } from "./streams.ts";

let folder: string;
let api: FakeApi | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-cli-test-"));
});

afterEach(async () => {
  await api?.close();
  api = undefined;
  await rm(folder, { recursive: true });
});

async function against(args: readonly string[], answer: (exchange: Exchange) => FakeAnswer) {
  api = await openFakeApi(answer);
  return millrace(args, { environment: { MILLRACE_API: api.url } });
}

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

const registered = { id: "hello", version: 3, contentHash: "abc", warnings: [] };
const definition = "id: hello\nsteps:\n  - stepId: greet\n    type: TASK\n    taskId: greet\n";

test("apply registers what a file holds and says which version it has become", async () => {
  const path = await file("hello.yaml", definition);

  const ran = await against(["apply", path], ({ path: url }) => ({
    status: url.endsWith("validate") ? 200 : 201,
    body: registered,
  }));

  expect(ran).toEqual({ exitCode: 0, stdout: `${path}: hello version 3 (new)\n`, stderr: "" });
  expect(api?.exchanges.map(({ path: url }) => url)).toEqual([
    "/v1/definitions/validate",
    "/v1/definitions",
  ]);
  expect(api?.exchanges[1]?.body).toEqual({
    id: "hello",
    steps: [{ stepId: "greet", type: "TASK", taskId: "greet" }],
  });
});

test("apply prints every problem with its file, pointer and line, and registers nothing", async () => {
  const path = await file("hello.yaml", definition);
  const errors = [
    { path: "/steps/0/taskId", code: "UNKNOWN_TASK", message: "no such task" },
    { path: "/steps/0/transitions", code: "MISSING_FIELD", message: "missing" },
  ];

  const ran = await against(["apply", path], () =>
    problem(422, "INVALID_DEFINITION", "2 problems", errors),
  );

  expect(ran.exitCode).toBe(1);
  expect(ran.stdout).toBe(
    `${path}:/steps/0/taskId (line 5): no such task [UNKNOWN_TASK]\n` +
      `${path}:/steps/0/transitions (line 3): missing [MISSING_FIELD]\n`,
  );
  expect(ran.stderr).toBe("2 problems; nothing was registered.\n");
  expect(api?.exchanges).toHaveLength(1);
});

test("apply does not ask the API when a file cannot be read", async () => {
  const good = await file("good.yaml", definition);
  const bad = await file("bad.json", '{\n  "id": hello\n}');

  const ran = await against(["apply", good, bad, "/no/such.yaml"], () => ({ body: registered }));

  expect(ran.exitCode).toBe(1);
  expect(ran.stdout).toContain(`${bad}:2:9: `);
  expect(ran.stdout).toContain("/no/such.yaml: no such file or directory [UNREADABLE]");
  expect(api?.exchanges).toEqual([]);
});

test("apply --json answers with results or problems", async () => {
  const path = await file("hello.yaml", definition);

  const ran = await against(["apply", path, "--json"], () => ({ status: 200, body: registered }));

  expect(ran.exitCode).toBe(0);
  expect(JSON.parse(ran.stdout)).toEqual({
    results: [{ place: path, ...registered, created: false }],
    problems: [],
  });
});

test.each([
  ["start", ["hello", "--input", '{"ids":[1,9007199254740993]}'], "--input /ids/1: "],
  ["event", ["paid", "--payload", "9007199254740993"], "--payload: "],
])(
  "%s sends no number that is another than the one that was given",
  async (command, args, place) => {
    const ran = await against([command, ...args], () => ({ status: 200, body: {} }));

    expect(ran.exitCode).toBe(2);
    expect(ran.stderr).toContain(`${place}9007199254740993 would come back as 9007199254740992`);
    expect(api?.exchanges).toEqual([]);
  },
);

test("start sends what the options say and prints the id alone", async () => {
  const input = await file("input.yaml", "orderId: '42'\nlines: []\n");
  const answer = instance({ status: "CREATED" });

  const ran = await against(
    [
      "start",
      "order_processing",
      "--input",
      `@${input}`,
      "--correlation-id",
      "c",
      "--idempotency-key",
      "k",
      "--priority",
      "-5",
    ],
    () => ({ status: 201, body: answer }),
  );

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toBe(`${answer.id}\n`);
  expect(api?.exchanges[0]).toMatchObject({
    method: "POST",
    path: "/v1/instances",
    headers: { "idempotency-key": "k" },
    body: {
      workflowId: "order_processing",
      input: { orderId: "42", lines: [] },
      correlationId: "c",
      priority: -5,
    },
  });
});

test.each([
  ["COMPLETED", 0],
  ["FAILED", 1],
  ["CANCELLED", 1],
] as const)("start --wait of an instance that ends %s has exit code %i", async (status, code) => {
  const ran = await against(["start", "a", "--input", "1", "--wait"], () => ({
    body: instance({ status }),
  }));

  expect(ran.exitCode).toBe(code);
  expect(ran.stdout).toContain(status);
});

test("a value given as - is read from the standard input", async () => {
  api = await openFakeApi(() => ({ status: 201, body: instance() }));

  await millrace(["start", "a", "--input", "-", "--api", api.url], { input: '{"n":1}' });

  expect(api.exchanges[0]?.body).toEqual({ workflowId: "a", input: { n: 1 } });
});

test("every fault of an input is listed", async () => {
  const errors = [
    { path: "/orderId", code: "MISSING_FIELD", message: "is missing" },
    { path: "", code: "WRONG_TYPE", message: "must be an object" },
  ];

  const ran = await against(["start", "a", "--input", "1"], () =>
    problem(422, "INVALID_INPUT", "the input has 2 faults", errors),
  );

  expect(ran.exitCode).toBe(1);
  expect(ran.stderr).toContain("  /orderId: is missing\n  /: must be an object\n");
});

test("an unknown workflow comes with advice", async () => {
  const ran = await against(["start", "a"], () =>
    problem(404, "WORKFLOW_NOT_FOUND", "no workflow a"),
  );

  expect(ran.exitCode).toBe(1);
  expect(ran.stderr).toContain("Register it first: millrace apply <file>");
});

test("event tells what the event met", async () => {
  const answer = { id: "e-1", duplicate: false, delivered: 1, cancelled: 2, started: 0 };

  const ran = await against(
    ["event", "payment.received", "--payload", '{"amount":5}', "--id", "e-1"],
    () => ({ status: 202, body: answer }),
  );

  expect(ran.stdout).toBe("e-1 accepted: 1 delivered, 2 cancelled, 0 started\n");
  expect(api?.exchanges[0]?.body).toEqual({
    id: "e-1",
    pattern: "payment.received",
    payload: { amount: 5 },
  });
});

test("a duplicate event is called one", async () => {
  const answer = { id: "e-1", duplicate: true, delivered: 0, cancelled: 0, started: 0 };

  const ran = await against(["event", "a.b"], () => ({ status: 202, body: answer }));

  expect(ran.stdout).toContain("accepted before");
});

test("ls asks with the filters and prints a table without control characters", async () => {
  const items = [
    instance({
      status: "WAITING_FOR_EVENT",
      correlationId: "red\u001b[31m",
      state: { variables: {}, steps: { wait: step("WAITING") }, waitingFor: [] },
    }),
  ];

  const ran = await against(
    ["ls", "-s", "running,waiting-for-event", "--workflow", "a", "--var", "n=1", "--limit", "7"],
    () => ({ body: { items, nextCursor: "next" } }),
  );

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(/WAITING_FOR_EVENT {2}wait .*red\\u001b\[31m/);
  expect(ran.stderr).toContain("--cursor next");
  const query = new URL(api?.exchanges[0]?.path ?? "", "http://x").searchParams;
  expect(Object.fromEntries(query)).toEqual({
    status: "RUNNING,WAITING_FOR_EVENT",
    workflowId: "a",
    "variables.n": "1",
    limit: "7",
  });
});

test("ls --all follows the cursor to the end", async () => {
  const pages = [
    { items: [instance()], nextCursor: "2" },
    { items: [instance()], nextCursor: null },
  ];

  const ran = await against(["ls", "--all", "--json"], ({ path }) => ({
    body: pages[path.includes("cursor=2") ? 1 : 0],
  }));

  expect((JSON.parse(ran.stdout) as { items: unknown[] }).items).toHaveLength(2);
});

test("cancel says how it stands, and sends what was wanted", async () => {
  const ran = await against(
    ["cancel", "x", "--reason", "ordered twice", "--no-compensate"],
    () => ({ status: 202, body: instance({ status: "CANCELLED" }) }),
  );

  expect(ran).toMatchObject({ exitCode: 0, stdout: "x is CANCELLED\n" });
  expect(api?.exchanges[0]).toMatchObject({
    path: "/v1/instances/x/cancel",
    body: { reason: "ordered twice", shouldCompensate: false },
  });
});

test("history prints one line per change", async () => {
  const items = [
    { seq: 1, at: "2026-01-31T12:00:00.000Z", type: "started", actor: "api", data: {} },
    {
      seq: 2,
      at: "2026-01-31T12:00:01.500Z",
      type: "stepSucceeded",
      stepId: "greet",
      actor: "worker",
      data: { output: "hi" },
    },
  ];

  const ran = await against(["history", "x"], () => ({ body: { items, nextCursor: null } }));

  expect(ran.stdout.split("\n")).toEqual([
    "SEQ  AT            CHANGE         STEP   BY      DATA",
    "  1  12:00:00.000  started               api",
    '  2  12:00:01.500  stepSucceeded  greet  worker  {"output":"hi"}',
    "",
  ]);
});

test("a server that is no API of Millrace is not taken for one", async () => {
  const ran = await against(["ls"], () => ({ type: "text/html", body: "<h1>It works!</h1>" }));

  expect(ran.exitCode).toBe(3);
  expect(ran.stderr).toContain("it answers, but with text/html instead of JSON");
});

test("a proxy without an API behind it is an API that cannot be reached", async () => {
  const ran = await against(["event", "a.b"], () => ({
    status: 502,
    type: "text/html",
    body: "Bad Gateway",
  }));

  expect(ran.exitCode).toBe(3);
});
