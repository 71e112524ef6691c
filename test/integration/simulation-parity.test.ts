import { randomUUID } from "node:crypto";
import type { HistoryEntry, Scenario, SimulationView, StepView } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./api/support.ts";

// What a simulation says is what happens: the same definitions run with real tasks and simulated.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api.close());

interface Case {
  readonly name: string;
  readonly status: string;
  readonly definition: { readonly steps: readonly object[] } & Readonly<Record<string, unknown>>;
  readonly scenario?: Scenario;
  /** Workers take what is beside each other in any order. */
  readonly inAnyOrder?: true;
  /** A workflow that it starts, registered under the name that its step gives. */
  readonly child?: { readonly id: string; readonly steps: readonly object[] };
}

const to = (stepId: string) => ({ transitions: { default: stepId } });
const echo = (stepId: string, input: unknown, more: object = {}) => ({
  stepId,
  type: "TASK",
  taskId: "echo",
  input,
  ...more,
});
const fail = (stepId: string, type: string, more: object = {}) => ({
  stepId,
  type: "TASK",
  taskId: "fail",
  input: { type, retryable: false },
  ...more,
});
const failing = (type: string, retryable = false) => ({
  error: { type, message: "failed on purpose", retryable },
});
const event = (pattern: string, payload: Record<string, number>) => ({
  at: "PT1S",
  pattern,
  payload,
});
const lookingBack = {
  type: "EVENT_WAIT",
  eventPattern: "back.seen",
  lookback: "instance",
  timeout: "PT10S",
};
const waits = (mode: string, more: object = {}) => ({
  stepId: "hear",
  type: "EVENT_WAIT",
  mode,
  events: [{ eventPattern: `${mode}.one` }, { eventPattern: `${mode}.two` }],
  lookback: "instance",
  ...more,
});

const cases: readonly Case[] = [
  {
    name: "a loop of SET and CHOICE, a step that is skipped, an output template",
    status: "COMPLETED",
    definition: {
      variables: { count: 0 },
      output: { count: "${ variables.count }" },
      steps: [
        {
          stepId: "add",
          type: "SET",
          variables: { count: "${ variables.count + 1 }" },
          ...to("ask"),
        },
        {
          stepId: "ask",
          type: "CHOICE",
          choices: [{ when: "variables.count < 3", to: "add" }],
          default: "not",
        },
        echo("not", {}, { condition: "variables.count > 3", ...to("last") }),
        echo("last", 1),
      ],
    },
    scenario: { tasks: { last: { output: 1 } } },
  },
  {
    name: "PARALLEL with all its branches",
    inAnyOrder: true,
    status: "COMPLETED",
    definition: {
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          branches: [
            { name: "a", steps: [echo("first", 1)] },
            { name: "b", steps: [echo("second", 2)] },
          ],
        },
      ],
    },
    scenario: { tasks: { first: { output: 1 }, second: { output: 2 } } },
  },
  {
    name: "PARALLEL with the first of its branches",
    status: "COMPLETED",
    definition: {
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          join: "ANY",
          branches: [
            { name: "a", steps: [echo("first", 1)] },
            { name: "b", steps: [{ stepId: "rest", type: "DELAY", duration: "P1D" }] },
          ],
        },
      ],
    },
    scenario: { tasks: { first: { output: 1 } } },
  },
  {
    name: "an END in a branch",
    status: "CANCELLED",
    definition: {
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          branches: [
            { name: "a", steps: [{ stepId: "rest", type: "DELAY", duration: "P1D" }] },
            {
              name: "b",
              steps: [
                echo("first", 1, to("end")),
                { stepId: "end", type: "END", outcome: "CANCELLED", reason: "enough" },
              ],
            },
          ],
        },
      ],
    },
    scenario: { tasks: { first: { output: 1 } } },
  },
  {
    name: "MAP that tolerates its failures",
    inAnyOrder: true,
    status: "COMPLETED",
    definition: {
      steps: [
        {
          stepId: "each",
          type: "MAP",
          items: "[1, 2]",
          tolerate: 2,
          steps: [fail("work", "Broken")],
        },
      ],
    },
    scenario: { tasks: { work: failing("Broken") } },
  },
  {
    name: "an error that is taken",
    status: "COMPLETED",
    definition: {
      steps: [
        fail("pay", "Declined", { onError: [{ errors: ["Declined"], to: "tell" }] }),
        echo("tell", "${ steps.pay.error.type }"),
      ],
    },
    scenario: { tasks: { pay: failing("Declined"), tell: { output: "Declined" } } },
  },
  {
    name: "compensation after a failure",
    status: "FAILED",
    definition: {
      steps: [echo("reserve", 1, to("pay")), fail("pay", "Declined")],
      compensationSteps: [
        { stepId: "release", compensationFor: "reserve", type: "TASK", taskId: "echo" },
      ],
    },
    scenario: { tasks: { reserve: { output: 1 }, pay: failing("Declined") } },
  },
  {
    name: "retries that are spent, and compensation",
    status: "FAILED",
    definition: {
      steps: [
        echo("reserve", 1, to("pay")),
        {
          stepId: "pay",
          type: "TASK",
          taskId: "fail",
          input: { type: "BankDown" },
          retry: { maxAttempts: 3, initialInterval: "PT0S" },
        },
      ],
      compensationSteps: [
        { stepId: "release", compensationFor: "reserve", type: "TASK", taskId: "echo" },
      ],
    },
    scenario: { tasks: { reserve: { output: 1 }, pay: failing("BankDown", true) } },
  },
  {
    name: "the first of two events",
    status: "COMPLETED",
    definition: { steps: [waits("ANY")], output: "${ steps.hear.output.payload }" },
    scenario: { events: [event("ANY.one", { n: 1 })] },
  },
  {
    name: "all of two events",
    status: "COMPLETED",
    definition: { steps: [waits("ALL")], output: "${ steps.hear.output[1].payload }" },
    scenario: { events: [event("ALL.two", { n: 2 }), event("ALL.one", { n: 1 })] },
  },
  {
    name: "waits that open together, and look back for one event",
    status: "COMPLETED",
    definition: {
      steps: [
        { stepId: "rest", type: "DELAY", duration: "PT0.2S", ...to("fork") },
        {
          stepId: "fork",
          type: "PARALLEL",
          branches: ["a", "b"].map((name) => ({ name, steps: [{ ...lookingBack, stepId: name }] })),
        },
      ],
      output: "${ steps.a.output.id === steps.b.output.id }",
    },
    scenario: { events: [{ at: "PT0.1S", pattern: "back.seen", payload: { n: 1 } }] },
  },
  {
    name: "a wait that is over, for its handler",
    status: "COMPLETED",
    definition: {
      steps: [
        {
          stepId: "hear",
          type: "EVENT_WAIT",
          eventPattern: "never",
          eventTimeout: { duration: "PT0.1S", timeoutHandlerStepId: "late" },
        },
        { stepId: "late", type: "END", outcome: "COMPLETED", output: "late" },
      ],
    },
  },
  {
    name: "a cancel while it waits, and compensation",
    status: "CANCELLED",
    definition: {
      steps: [
        echo("reserve", 1, to("hear")),
        { stepId: "hear", type: "EVENT_WAIT", eventPattern: "never" },
      ],
      compensationSteps: [
        { stepId: "release", compensationFor: "reserve", type: "TASK", taskId: "echo" },
      ],
    },
    scenario: {
      tasks: { reserve: { output: 1 } },
      cancel: { at: "PT1H", reason: "no more", shouldCompensate: true },
    },
  },
  {
    name: "a cancel after a failure that undid nothing",
    status: "CANCELLED",
    definition: {
      compensateOnFailure: false,
      steps: [echo("reserve", 1, to("pay")), fail("pay", "Declined")],
      compensationSteps: [
        { stepId: "release", compensationFor: "reserve", type: "TASK", taskId: "echo" },
      ],
    },
    scenario: {
      tasks: { reserve: { output: 1 }, pay: failing("Declined") },
      cancel: { at: "PT1H" },
    },
  },
  {
    name: "a workflow that is started and awaited",
    status: "COMPLETED",
    child: { id: "parity_child", steps: [echo("say", "workflow.input")] },
    definition: {
      steps: [
        {
          stepId: "call",
          type: "SUB_WORKFLOW",
          workflowId: "parity_child",
          input: { n: 4 },
          ...to("say"),
        },
        echo("say", "steps.call.output"),
      ],
      output: "${ steps.say.output }",
    },
    scenario: { tasks: { call: { output: { n: 4 } }, say: { output: { n: 4 } } } },
  },
  {
    name: "a cancel that reaches a child before it has settled",
    status: "CANCELLED",
    child: { id: "parity_sleeper", steps: [{ stepId: "rest", type: "DELAY", duration: "P1D" }] },
    definition: {
      steps: [
        echo("reserve", 1, to("call")),
        { stepId: "call", type: "SUB_WORKFLOW", workflowId: "parity_sleeper" },
      ],
      compensationSteps: [
        { stepId: "release", compensationFor: "reserve", type: "TASK", taskId: "echo" },
        { stepId: "call_off", compensationFor: "call", type: "TASK", taskId: "echo" },
      ],
    },
    scenario: {
      tasks: { reserve: { output: 1 }, call: { duration: "P1D" } },
      cancel: { at: "PT1H" },
    },
  },
  {
    name: "an event that is emitted and heard",
    status: "COMPLETED",
    definition: {
      steps: [
        {
          stepId: "tell",
          type: "EMIT_EVENT",
          eventPattern: "told",
          payload: { n: [3], by: "${ workflow.instance.id }" },
          ...to("hear"),
        },
        {
          stepId: "hear",
          type: "EVENT_WAIT",
          eventPattern: "told",
          eventCondition: "event.payload.by === workflow.instance.id && event.payload.n[0] === 3",
          lookback: "instance",
        },
      ],
      output: "${ steps.hear.output.payload.n }",
    },
  },
];

test.concurrent.each(cases)("$name: run and simulated alike", async (each) => {
  const { definition, scenario = {}, status, child, inAnyOrder = false } = each;
  if (child !== undefined) await api.call("PUT", `/v1/definitions/${child.id}`, child);
  const id = `p${randomUUID().slice(0, 8)}`;
  const registered = await api.call("PUT", `/v1/definitions/${id}`, { id, ...definition });
  expect(registered).toMatchObject({ status: 201 });

  const simulated = await api.call("POST", `/v1/definitions/${id}/simulate`, { scenario });
  const started = await api.call("POST", "/v1/instances", { workflowId: id });
  for (const { pattern, payload } of scenario.events ?? []) {
    await api.call("POST", "/v1/events", { pattern, payload });
  }
  if (scenario.cancel !== undefined) {
    await eventually("it waits, or has failed", async () => {
      const seen = await api.call("GET", `/v1/instances/${started.body.id}`);
      const { status: now, state } = seen.body;
      return (
        now === "FAILED" || ["hear", "call"].some((step) => state.steps[step]?.status === "WAITING")
      );
    });
    const { at: _, ...how } = scenario.cancel;
    await api.call("POST", `/v1/instances/${started.body.id}/cancel`, how);
  }
  const { body } = await api.call("GET", `/v1/instances/${started.body.id}?wait=20`);
  const steps = await api.call("GET", `/v1/instances/${started.body.id}/steps?limit=100`);
  const history = await api.call("GET", `/v1/instances/${started.body.id}/history?limit=500`);

  expect(simulated.status).toBe(200);
  const { instance, transcript } = simulated.body as SimulationView;
  const last = transcript.flatMap(({ changes }) => changes);
  expect(body.status).toBe(status);
  expect(instance).toMatchObject({ status, output: body.output });
  expect(instance.error?.type).toEqual(body.error?.type);
  expect(instance.variables).toEqual(body.state.variables);
  expect(instance.compensation?.plan).toEqual(body.compensation?.plan);
  expect(instance.compensation?.completed).toEqual(body.compensation?.completed);
  for (const [stepId, step] of Object.entries<StepView>(body.state.steps)) {
    if (stepId.includes("[")) continue;
    expect([stepId, instance.steps[stepId]?.attempts]).toEqual([stepId, step.attempts]);
  }
  const inOrder = (settled: readonly string[]) => (inAnyOrder ? settled.toSorted() : settled);
  expect(
    inOrder(
      last.flatMap((row) => (endings.has(row.status) ? `${row.executionId} ${row.status}` : [])),
    ),
  ).toEqual(inOrder(history.body.items.flatMap(endingOf)));
  expect(Object.fromEntries(last.map((row) => [row.executionId, row.status]))).toEqual(
    Object.fromEntries(
      steps.body.items.map((row: { executionId: string; status: string }) => [
        row.executionId,
        row.status,
      ]),
    ),
  );
});

const endings: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "SKIPPED", "CANCELLED"]);

/** `ship#1 COMPLETED`, where the entry tells of the end of an execution. */
function endingOf({ type, stepId, path, iteration = 1 }: HistoryEntry): readonly string[] {
  const status = type.replace(/^workflow\.(compensation\.)?step\./, "").toUpperCase();
  return stepId && endings.has(status) ? [`${path ?? stepId}#${iteration} ${status}`] : [];
}
