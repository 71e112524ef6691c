import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectConsistent } from "../../support/consistent.ts";
import { openTestApi, type TestApi } from "./support.ts";

// Tasks, queues and workflows that steps name by expressions: wherever their ids are looked for, they are
// those that the expressions came to.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(async () => {
  try {
    await expectConsistent(api.url);
  } finally {
    await api?.close();
  }
});

test("a worker runs the task that the expression came to, again after it has failed", async () => {
  const call = {
    stepId: "call",
    type: "TASK",
    taskId: "${ variables.kind }",
    queue: "${ `def${ input.rest }` }",
    input: { times: 1 },
    retry: { maxAttempts: 2, initialInterval: "PT0S" },
  };
  await register({ id: "computed_task", variables: { kind: "fail" }, steps: [call] });

  const id = await start("computed_task", { rest: "ault" });

  expect(await settled(id)).toMatchObject({
    status: "COMPLETED",
    state: { steps: { call: { attempts: 2, output: { times: 1 } } } },
  });
});

test("an unknown task, a queue without a worker and a paused one are told by what the expressions came to", async () => {
  const call = {
    stepId: "call",
    type: "TASK",
    taskId: "${ input.task }",
    queue: "${ input.queue }",
  };
  await register({ id: "computed_wait", steps: [call] });
  const queued = { task: "echo", queue: "computed_paused" };
  expect((await api.call("POST", `/v1/queues/${queued.queue}/pause`, {})).status).toBe(200);

  expect(
    await reasonOf(await start("computed_wait", { task: "nobody", queue: "default" })),
  ).toEqual(
    expect.objectContaining({ kind: "NO_WORKER_KNOWS_TASK", taskId: "nobody", queue: "default" }),
  );
  expect(await reasonOf(await start("computed_wait", { task: "echo", queue: "far" }))).toEqual(
    expect.objectContaining({ kind: "NO_WORKER_FOR_QUEUE", taskId: "echo", queue: "far" }),
  );
  expect(await reasonOf(await start("computed_wait", queued))).toEqual(
    expect.objectContaining({ kind: "QUEUE_PAUSED", taskId: "echo", queue: queued.queue }),
  );
  expect(await settled(await start("computed_wait", { task: 7, queue: "far" }))).toMatchObject({
    status: "FAILED",
    error: { kind: "EXPRESSION", stepId: "call" },
  });
});

test("a child is of the workflow that the expression came to; one that is not there is an error, for onError", async () => {
  const say = { stepId: "say", type: "TASK", taskId: "echo" };
  await register({ id: "computed_child_eu", steps: [say] });
  const pass = {
    stepId: "pass",
    type: "SUB_WORKFLOW",
    workflowId: "computed_child_${ input.region }",
    onError: [{ errors: ["WORKFLOW_NOT_FOUND"], to: "tell" }],
  };
  const tell = { ...say, stepId: "tell", input: { because: "${ steps.pass.error.message }" } };
  const { warnings } = await register({ id: "computed_parent", steps: [pass, tell] });

  const [there, nowhere] = await Promise.all(
    ["eu", "us"].map(async (region) => settled(await start("computed_parent", { region }))),
  );

  expect(warnings).toEqual([]);
  expect(there).toMatchObject({ status: "COMPLETED", output: { region: "eu" } });
  expect(nowhere).toMatchObject({
    status: "COMPLETED",
    output: { because: expect.stringContaining("computed_child_us") },
  });
});

async function register(definition: object) {
  const { status, body } = await api.call("POST", "/v1/definitions", definition);
  expect(body.errors ?? []).toEqual([]);
  expect(status).toBe(201);
  return body;
}

async function start(workflowId: string, input: object): Promise<string> {
  return (await api.call("POST", "/v1/instances", { workflowId, input })).body.id;
}

async function settled(id: string) {
  return (await api.call("GET", `/v1/instances/${id}?wait=20`)).body;
}

/** Once a worker, or the reconciler, has come to know. */
async function reasonOf(id: string) {
  const reasons = async () => (await api.call("GET", `/v1/instances/${id}/why`)).body.reasons;
  await eventually("a reason", async () => (await reasons())[0]?.kind !== "QUEUED");
  return (await reasons())[0];
}
