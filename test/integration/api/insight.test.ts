import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

// What can be asked about one instance beside what it is.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
  await api.call("PUT", "/v1/definitions/booking", booking);
});
afterAll(() => api.close());

/** Two things are done and can be undone, then it waits for a payment. */
const booking = {
  id: "booking",
  variables: { total: 1 },
  steps: [
    { stepId: "room", type: "TASK", taskId: "echo", transitions: { default: "car" } },
    {
      stepId: "car",
      type: "TASK",
      taskId: "echo",
      input: { car: "${ input.car }" },
      transitions: { default: "pay" },
    },
    {
      stepId: "pay",
      type: "EVENT_WAIT",
      eventPattern: "paid",
      eventCondition: "event.payload.order === workflow.input.order && event.payload.amount > 10",
      eventTimeout: { duration: "P1D" },
    },
  ],
  compensationSteps: [
    {
      stepId: "free_room",
      compensationFor: "room",
      type: "TASK",
      taskId: "echo",
      input: { room: "${ steps.room.output.room }" },
    },
    {
      stepId: "free_car",
      compensationFor: "car",
      type: "TASK",
      taskId: "echo",
      condition: "steps.car.output.car !== 'none'",
      input: { car: "${ steps.car.output.car }" },
    },
  ],
};

async function untilPayment(input: object): Promise<string> {
  const { body } = await api.call("POST", "/v1/instances", { workflowId: "booking", input });
  await eventually("it waits for the payment", async () => {
    const { body: now } = await api.call("GET", `/v1/instances/${body.id}`);
    return now.status === "WAITING_FOR_EVENT";
  });
  return body.id;
}

const ask = async (id: string, what: string) => api.call("GET", `/v1/instances/${id}/${what}`);
const missing = "01890a5d-ac96-774b-bcce-b302099a8057";

test("a compensation plan is what a cancel then runs, and asking for it changes nothing", async () => {
  const id = await untilPayment({ order: 1, room: "12", car: "small" });
  const before = await api.call("GET", `/v1/instances/${id}`);

  const { status, body: plan } = await ask(id, "compensation-plan?reason=no+money");

  expect(status).toBe(200);
  expect(plan).toMatchObject({
    instanceId: id,
    version: before.body.version,
    status: "WAITING_FOR_EVENT",
    cancellable: true,
    plan: ["free_car", "free_room"],
    steps: [
      {
        stepId: "free_car",
        compensationFor: "car",
        executionId: "car#1",
        taskId: "echo",
        input: { car: "small" },
      },
      { stepId: "free_room", compensationFor: "room", input: { room: "12" } },
    ],
    awaited: [],
    stopped: ["pay#1"],
    skipped: [],
    failed: [],
  });
  expect((await api.call("GET", `/v1/instances/${id}`)).body).toEqual(before.body);

  await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "no money" });
  const { body: done } = await api.call("GET", `/v1/instances/${id}?wait=20`);
  expect(done.compensation).toMatchObject({ plan: plan.plan, completed: plan.plan });
  const { steps } = done.compensation;
  expect([steps.free_car.output, steps.free_room.output]).toEqual(
    plan.steps.map((step: { readonly input: unknown }) => step.input),
  );
});

test("a compensation plan names what a false condition leaves out", async () => {
  const id = await untilPayment({ order: 2, room: "12", car: "none" });

  const { body } = await ask(id, "compensation-plan");

  expect(body.plan).toEqual(["free_room"]);
  expect(body.skipped).toEqual([
    { stepId: "free_car", compensationFor: "car", executionId: "car#1" },
  ]);
});

test("an instance that has ended has nothing to cancel; one that is not there is a 404", async () => {
  const id = await untilPayment({ order: 3 });
  await api.call("POST", `/v1/instances/${id}/cancel`, { shouldCompensate: false });

  const ended = await ask(id, "compensation-plan");
  const unknown = await ask(missing, "compensation-plan");

  expect(ended.body).toMatchObject({ status: "CANCELLED", cancellable: false, plan: [] });
  expect([unknown.status, unknown.body.code]).toEqual([404, "INSTANCE_NOT_FOUND"]);
});

test("the state of every version is what an instance was at it, the latest is what it is", async () => {
  const id = await untilPayment({ order: 4, room: "12", car: "small" });
  const { body: waiting } = await api.call("GET", `/v1/instances/${id}`);
  await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "no money" });
  const { body: done } = await api.call("GET", `/v1/instances/${id}?wait=20`);
  const at = async (version: number) => (await ask(id, `state?version=${version}`)).body;

  const first = await at(1);
  expect(first).toMatchObject({ version: 1, status: "RUNNING", latestVersion: done.version });
  expect(first.state).toMatchObject({ variables: { total: 1 }, steps: { room: { output: null } } });
  expect(first.state.steps.car).toBeUndefined();

  const before = await at(waiting.version);
  expect(before).toMatchObject({ status: "WAITING_FOR_EVENT", cancellation: null });
  expect(before.state.waitingFor).toMatchObject([
    { stepId: "pay", kind: "EVENT", eventPattern: "paid" },
  ]);
  expect(before.state.steps).toMatchObject({
    room: { status: "COMPLETED", output: { room: "12" } },
    car: { status: "COMPLETED", output: { car: "small" }, attempts: 1 },
    pay: { status: "WAITING" },
  });

  const latest = (await ask(id, "state")).body;
  expect(latest).toMatchObject({
    version: done.version,
    status: "CANCELLED",
    cancellation: done.cancellation,
    completedAt: done.completedAt,
    compensation: {
      completed: ["free_car", "free_room"],
      steps: { free_car: { status: "COMPLETED", output: { car: "small" } } },
    },
  });
  expect(latest.state.steps.pay.status).toBe("CANCELLED");
});

/** Nothing of it ends: a child, a task that nobody runs, and waits in items of a MAP that was passed before. */
const fair = {
  id: "fair",
  steps: [
    {
      stepId: "both",
      type: "PARALLEL",
      branches: [
        { name: "child", steps: [{ stepId: "sub", type: "SUB_WORKFLOW", workflowId: "booking" }] },
        { name: "task", steps: [{ stepId: "unserved", type: "TASK", taskId: "unknown" }] },
        {
          name: "stalls",
          steps: [
            {
              stepId: "stalls",
              type: "MAP",
              items: "${ variables.isOpen ? [1, 2] : [] }",
              steps: [
                {
                  stepId: "offer",
                  type: "EVENT_WAIT",
                  mode: "ALL",
                  events: [{ eventPattern: "bid" }, { eventPattern: "ask" }],
                },
              ],
              transitions: {
                conditions: [{ when: "variables.isOpen", to: "shut" }],
                default: "unlock",
              },
            },
            {
              stepId: "unlock",
              type: "SET",
              variables: { isOpen: true },
              transitions: { default: "stalls" },
            },
            { stepId: "shut", type: "SET", variables: { isOpen: false } },
          ],
        },
      ],
    },
  ],
};

test("what is open at a version, and what was tried, is there as in the instance", async () => {
  await api.call("PUT", "/v1/definitions/fair", fair);
  const { body } = await api.call("POST", "/v1/instances", { workflowId: "fair", input: {} });
  const waiting = await eventually("it waits for four events", async () => {
    const { body: now } = await api.call("GET", `/v1/instances/${body.id}`);
    return now.state.waitingFor.length === 4 ? now : undefined;
  });
  const before = (await ask(body.id, `state?version=${waiting.version}`)).body;
  await api.call("POST", `/v1/instances/${body.id}/cancel`, {});
  const { body: cancelled } = await api.call("GET", `/v1/instances/${body.id}?wait=20`);
  const after = (await ask(body.id, "state")).body;

  expect(comparable(before)).toEqual(comparable(waiting));
  expect(comparable(after)).toEqual(comparable(cancelled));
  const { steps } = before.state;
  expect(steps).toMatchObject({
    both: { status: "RUNNING" },
    stalls: { executionId: "both.stalls.stalls#2" },
  });
  expect(after.state.steps).toMatchObject({ unserved: { status: "CANCELLED", attempts: 0 } });
});

function comparable({
  state,
}: {
  state: { steps: object; waitingFor: Record<string, unknown>[] };
}) {
  const steps = Object.entries(state.steps).map(([name, { status, attempts, executionId }]) => [
    name,
    { status, attempts, executionId },
  ]);
  const waits = state.waitingFor.map(({ executionId, kind, eventPattern }) =>
    [executionId, kind, eventPattern].join(" "),
  );
  return { steps: Object.fromEntries(steps), waits: waits.toSorted() };
}

test.each([
  ["0", 400, "INVALID_QUERY"],
  ["-1", 400, "INVALID_QUERY"],
  ["x", 400, "INVALID_QUERY"],
  ["1.5", 400, "INVALID_QUERY"],
  ["1000", 404, "VERSION_NOT_FOUND"],
  ["99999999999", 400, "INVALID_QUERY"],
])("a version %s that does not exist answers %i %s", async (version, status, code) => {
  const { body } = await api.call("POST", "/v1/instances", { workflowId: "booking", input: {} });

  const answer = await ask(body.id, `state?version=${version}`);

  expect([answer.status, answer.body.code]).toEqual([status, code]);
});
