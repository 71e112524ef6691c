import type { StepDocument } from "@millrace/contract";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openInstallation, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";
import { expectConsistent } from "../support/consistent.ts";

// PARALLEL and MAP with two workers: branches of one instance end at the same moment in different
// processes, and each of them must count, once.

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation({ workers: 2 });
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

const wait = (stepId: string, more: object = {}): StepDocument => ({
  stepId,
  type: "EVENT_WAIT",
  eventPattern: `${stepId}.done`,
  eventCondition: "event.payload.key === input.key",
  ...more,
});

async function startAll(workflowId: string, inputs: readonly object[]): Promise<readonly string[]> {
  const { results } = await installation.client.instances.startBatch(
    inputs.map((input) => ({ workflowId, input: input as never })),
  );
  return results.map(({ instance }) => instance?.id ?? "");
}

const settled = (id: string) => installation.client.instances.wait(id, { timeoutMs: 90_000 });

test("C41: thirty branches that end at the same moment are joined once, with all their outputs", async () => {
  const names = Array.from({ length: 30 }, (_, index) => `b${index}`);
  await installation.client.definitions.register({
    id: "c41",
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        branches: names.map((name) => ({
          name,
          steps: [{ stepId: `${name}_work`, type: "TASK", taskId: "echo", input: { name } }],
        })),
        transitions: { default: "after" },
      },
      {
        stepId: "after",
        type: "TASK",
        taskId: "echo",
        input: { joined: "${ steps.fork.output }" },
      },
    ],
  });

  const ids = await startAll(
    "c41",
    Array.from({ length: 60 }, () => ({})),
  );

  const joined = Object.fromEntries(names.map((name) => [name, { name }]));
  for (const id of ids) {
    const instance = await settled(id);
    expect(instance.error).toBeNull();
    expect(instance).toMatchObject({ status: "COMPLETED", output: { joined } });
    expect(instance.state.steps["after"]).toMatchObject({ iteration: 1, completionNumber: 32 });
  }
}, 180_000);

test("C06: the branches that lose a race leave no wait, timer or job behind", async () => {
  await installation.client.definitions.register({
    id: "race",
    timeout: "P30D",
    steps: [
      {
        stepId: "race",
        type: "PARALLEL",
        join: "ANY",
        branches: [
          { name: "event", steps: [wait("paid", { eventTimeout: { duration: "P1D" } })] },
          { name: "clock", steps: [{ stepId: "pause", type: "DELAY", duration: "PT1S" }] },
          {
            name: "task",
            steps: [{ stepId: "slow", type: "TASK", taskId: "sleep", input: { ms: 60_000 } }],
          },
        ],
      },
    ],
  });
  const [byEvent = "", byClock = ""] = await startAll("race", [{ key: "a" }, { key: "b" }]);
  await installation.client.events.publish({ pattern: "paid.done", payload: { key: "a" } });

  expect((await settled(byEvent)).output).toMatchObject({ event: { payload: { key: "a" } } });
  const timed = await settled(byClock);
  expect(timed).toMatchObject({ status: "COMPLETED", output: { clock: null } });
  expect(timed.state.steps["paid"]).toMatchObject({ status: "CANCELLED" });
  expect(timed.state.steps["slow"]).toMatchObject({ status: "CANCELLED" });
  for (const table of ["waits", "timers"]) {
    expect(await installation.query(`select from ${table}`)).toHaveLength(0);
  }
}, 60_000);

test("a PARALLEL out of time ends what is in it, and the error is taken", async () => {
  await installation.client.definitions.register({
    id: "out_of_time",
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        timeout: "PT0.5S",
        onError: [{ errors: ["TIMEOUT"], to: "rescue" }],
        branches: [
          { name: "event", steps: [wait("never", { eventTimeout: { duration: "P1D" } })] },
          {
            name: "items",
            steps: [
              {
                stepId: "each",
                type: "MAP",
                items: "[1, 2]",
                steps: [{ stepId: "slow", type: "TASK", taskId: "sleep", input: { ms: 60_000 } }],
              },
            ],
          },
        ],
      },
      {
        stepId: "rescue",
        type: "TASK",
        taskId: "echo",
        input: "steps.fork.error.type",
        transitions: { default: "last" },
      },
      wait("last", {
        timeout: "PT0.2S",
        eventTimeout: { duration: "PT1H", timeoutHandlerStepId: "rescue" },
      }),
    ],
  });

  const [id = ""] = await startAll("out_of_time", [{ key: "a" }]);

  const instance = await settled(id);
  expect(instance).toMatchObject({
    status: "FAILED",
    error: { kind: "TIMEOUT", type: "TIMEOUT", stepId: "last" },
  });
  expect(instance.state.steps).toMatchObject({
    fork: { status: "FAILED", error: { type: "TIMEOUT" } },
    never: { status: "CANCELLED" },
    slow: { status: "CANCELLED" },
    rescue: { status: "COMPLETED", output: "TIMEOUT" },
  });
  for (const table of ["waits", "timers"]) {
    expect(await installation.query(`select from ${table}`)).toHaveLength(0);
  }
}, 60_000);

test("C08: a branch that loops by a timer and one that waits do not lose each other's steps", async () => {
  await installation.client.definitions.register({
    id: "c08",
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        branches: [
          {
            name: "ticks",
            steps: [
              {
                stepId: "tick",
                type: "DELAY",
                duration: "PT0.2S",
                transitions: { default: "count" },
              },
              {
                stepId: "count",
                type: "SET",
                variables: { n: "${ (variables.n ?? 0) + 1 }" },
                transitions: { conditions: [{ when: "variables.n < 10", to: "tick" }] },
              },
            ],
          },
          { name: "event", steps: [wait("go")] },
        ],
      },
    ],
  });
  const keys = Array.from({ length: 40 }, (_, index) => `c08-${index}`);
  const ids = await startAll(
    "c08",
    keys.map((key) => ({ key })),
  );

  const answers = await Promise.all(
    keys.map(async (key, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 50));
      return installation.client.events.publish({ pattern: "go.done", payload: { key } });
    }),
  );

  expect(answers.map(({ delivered }) => delivered)).toEqual(keys.map(() => 1));
  for (const [index, id] of ids.entries()) {
    const instance = await settled(id);
    expect(instance).toMatchObject({ status: "COMPLETED", state: { variables: { n: 10 } } });
    expect(instance.output).toMatchObject({ event: { payload: { key: keys[index] } } });
  }
}, 120_000);

test("a thousand items are each done once, and their outputs are in order", async () => {
  await installation.client.definitions.register({
    id: "fan_out",
    steps: [
      {
        stepId: "ship",
        type: "MAP",
        items: "input.lines",
        maxConcurrency: 100,
        steps: [
          {
            stepId: "label",
            type: "TASK",
            taskId: "echo",
            input: { of: "${ item }", at: "${ index }" },
          },
        ],
        transitions: { default: "after" },
      },
      {
        stepId: "after",
        type: "TASK",
        taskId: "echo",
        input: { all: "${ steps.ship.output }", one: "${ steps.label.output }" },
      },
    ],
  });
  const lines = Array.from({ length: 1_000 }, (_, index) => `line ${index}`);
  const startedAt = performance.now();

  const [id = ""] = await startAll("fan_out", [{ lines }]);

  const instance = await settled(id);
  const labels = lines.map((of, at) => ({ of, at }));
  const { all, one } = instance.output as { all: unknown; one: unknown };
  expect(all).toEqual(labels);
  // From outside it is that of the item entered last, whichever was completed last.
  expect(one).toEqual(labels.at(-1));
  expect(instance.state.steps["label"]?.output).toEqual(labels.at(-1));
  expect(instance.progress).toEqual({ completed: 1_002, total: 1_002 });
  const { steps } = instance.state;
  expect(steps["ship"]?.items).toEqual({ count: 1_000, completed: 1_000, failed: 0, active: 0 });
  expect(Object.keys(steps).filter((name) => name.includes("["))).toHaveLength(100);
  const { items } = await installation.client.instances.steps(id, { path: "ship[317]" });
  expect(items).toMatchObject([
    { path: "ship[317].label", status: "COMPLETED", output: { of: "line 317", at: 317 } },
  ]);
  console.info(`1,000 items in ${Math.round(performance.now() - startedAt)} ms`);
}, 120_000);

test("steps of branches and items are undone in the reverse order of their completion", async () => {
  await installation.client.definitions.register({
    id: "undo_all",
    steps: [
      {
        stepId: "lines",
        type: "MAP",
        items: "[1, 2, 3]",
        maxConcurrency: 1,
        steps: [{ stepId: "book", type: "TASK", taskId: "echo", input: { n: "${ item }" } }],
        transitions: { default: "halt" },
      },
      wait("halt"),
    ],
    compensationSteps: [
      {
        stepId: "unbook",
        compensationFor: "book",
        type: "TASK",
        taskId: "witness",
        input: { ms: 1, of: "${ steps.book.output.n }" },
      },
    ],
  });
  const [id = ""] = await startAll("undo_all", [{ key: "x" }]);
  await expect
    .poll(async () => (await installation.client.instances.get(id)).status, { timeout: 30_000 })
    .toBe("WAITING_FOR_EVENT");

  await installation.client.instances.cancel(id, { reason: "enough" });

  const { compensation } = await settled(id);
  expect(compensation).toMatchObject({ status: "COMPLETED", plan: ["unbook", "unbook", "unbook"] });
  const targets = await installation.query<{ compensates: string }>(
    `select compensates from step_executions where instance_id = $1 and compensates is not null
    order by iteration`,
    [id],
  );
  expect(targets.map(({ compensates }) => compensates)).toEqual([
    "lines[2].book#1",
    "lines[1].book#1",
    "lines[0].book#1",
  ]);
}, 60_000);

test("what a decision reads is loaded in as many rounds as it takes", async () => {
  const names = Array.from({ length: 14 }, (_, at) => `t${at}`);
  const inner: StepDocument = {
    stepId: "label",
    type: "TASK",
    taskId: "echo",
    input: "input.large",
  };
  const nested = names.reduce<StepDocument>(
    (step, name) => ({ stepId: `m_${name}`, type: "MAP", items: "[1]", steps: [step] }),
    inner,
  );
  await installation.client.definitions.register({
    id: "many_rounds",
    steps: [
      ...names.map((stepId, at): StepDocument => {
        const transitions = { default: names[at + 1] ?? "deep" };
        return { stepId, type: "TASK", taskId: "echo", input: "input.large", transitions };
      }),
      {
        stepId: "deep",
        type: "MAP",
        items: "[1]",
        steps: [nested],
        transitions: { default: "go" },
      },
      wait("go", {
        // Each of them is too large to come along with another one.
        eventCondition: `event.payload.key === input.key && ${names
          .map((name) => `size(steps.${name}.output) > 65536`)
          .join(" && ")}`,
        transitions: { default: "set_t0" },
      }),
      ...names.map((name, at): StepDocument => {
        const next = names[at + 1];
        return {
          stepId: `set_${name}`,
          type: "SET",
          variables: { [name]: `\${ size(steps.${name}.output) }` },
          transitions: { default: next === undefined ? "last" : `set_${next}` },
        };
      }),
      // From outside of all MAPs.
      { stepId: "last", type: "TASK", taskId: "echo", input: "size(steps.label.output)" },
    ],
    compensationSteps: names.map((name) => ({
      stepId: `undo_${name}`,
      compensationFor: name,
      type: "TASK",
      taskId: "echo",
      input: `size(steps.${name}.output)`,
    })),
  });
  const [id = ""] = await startAll("many_rounds", [{ key: "r", large: "x".repeat(70_000) }]);
  await expect
    .poll(async () => (await installation.client.instances.get(id)).status, { timeout: 30_000 })
    .toBe("WAITING_FOR_EVENT");

  const plan = await installation.client.instances.compensationPlan(id);
  const published = await installation.client.events.publish({
    pattern: "go.done",
    payload: { key: "r" },
  });

  expect(plan.steps.map(({ input }) => input)).toEqual(names.map(() => 70_000));
  expect(published).toMatchObject({ delivered: 1 });
  const { status, output, state } = await settled(id);
  expect({ status, output }).toEqual({ status: "COMPLETED", output: 70_000 });
  expect(Object.keys(state.variables)).toEqual(names);
}, 60_000);
