import { SimulationView } from "@millrace/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await api.call("PUT", "/v1/definitions/paying", paying);
});
afterAll(() => api.close());

const paying = {
  id: "paying",
  inputSchema: { type: "object", required: ["order"] },
  steps: [
    {
      stepId: "pay",
      type: "EVENT_WAIT",
      eventPattern: "paid",
      eventCondition: "event.payload.order === workflow.input.order",
      eventTimeout: { duration: "P3D" },
      transitions: { default: "ship" },
    },
    { stepId: "ship", type: "TASK", taskId: "ship" },
  ],
};

const simulate = (body: object, id = "paying") =>
  api.call("POST", `/v1/definitions/${id}/simulate`, body);

const scenario = {
  input: { order: 1 },
  tasks: { ship: { output: { shipped: true } } },
  events: [{ at: "P2D", pattern: "paid", payload: { order: 1 } }],
};

test("a registered definition is simulated, and nothing is stored", async () => {
  const { status, body } = await simulate({ scenario });

  expect(status).toBe(200);
  expect(SimulationView.parse(body)).toEqual(body);
  expect(body).toMatchObject({
    workflowId: "paying",
    workflowVersion: 1,
    outcome: "SETTLED",
    instance: { status: "COMPLETED", output: { shipped: true } },
    path: ["pay#1", "ship#1"],
    coverage: { taken: 1, total: 1 },
  });
  expect((await api.call("GET", "/v1/instances")).body.items).toEqual([]);
  expect((await api.call("GET", "/v1/stats")).body.total).toBe(0);
});

test("a document need not be registered", async () => {
  const definition = { id: "draft", steps: [{ stepId: "a", type: "TASK", taskId: "x" }] };

  const { body } = await simulate({ definition, scenario: {} }, "draft");

  expect(body).toMatchObject({ workflowVersion: null, outcome: "SETTLED", unmocked: ["a"] });
  expect((await api.call("GET", "/v1/definitions/draft")).status).toBe(404);
});

test.each([
  ["an unknown workflow", "nobody", { scenario }, 404, "WORKFLOW_NOT_FOUND"],
  ["an unknown version", "paying", { version: 9, scenario }, 404, "WORKFLOW_NOT_FOUND"],
  ["input that does not fit", "paying", { scenario: { input: {} } }, 422, "INVALID_INPUT"],
  [
    "a document with faults",
    "d",
    { definition: { id: "d", steps: [] }, scenario: {} },
    422,
    "INVALID_DEFINITION",
  ],
  ["no scenario", "paying", {}, 400, "INVALID_BODY"],
  ["a bad duration", "paying", { scenario: { ...scenario, until: "soon" } }, 400, "INVALID_BODY"],
])("%s is refused", async (_, id, body, status, code) => {
  const answer = await simulate(body, id);

  expect([answer.status, answer.body.code]).toEqual([status, code]);
});

test("one of MAPs inside MAPs inside MAPs ends, and holds nothing else up", async () => {
  const map = (stepId: string, steps: object[]) => {
    return { stepId, type: "MAP", items: "range(0, 300)", steps };
  };
  const task = { stepId: "d", type: "TASK", taskId: "a" };
  const definition = { id: "wide", steps: [map("a", [map("b", [map("c", [task])])])] };

  let isOver = false;
  const simulated = simulate({ definition, scenario: {} }, "wide").finally(() => (isOver = true));
  let answered = 0;
  while (!isOver && answered < 100) {
    expect((await api.call("GET", "/healthz")).status).toBe(200);
    answered += 1;
  }
  const { status, body } = await simulated;

  expect(answered).toBe(100);
  // Whichever comes first: the time that one simulation may take, or the steps.
  const end = status === 400 ? body.errors?.[0]?.code : body.outcome;
  expect(["TOO_COSTLY", "STEP_LIMIT"]).toContain(end);
}, 30_000);
