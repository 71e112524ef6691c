import { expect, test } from "vitest";
import { decide } from "../../src/decide/decide.ts";
import { readsOf } from "../../src/fold.ts";
import { resolveRetryPolicy } from "../../src/retry.ts";
import { noReads } from "../../src/state/reads.ts";
import type { Signal } from "../../src/state/signal.ts";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

const success = (path: string, output: null | object = null): Signal => ({
  kind: "stepSucceeded",
  path,
  iteration: 1,
  attempt: 1,
  output: output as null,
});

const chain = define({
  steps: [
    { stepId: "a", transitions: { default: "b" } },
    { stepId: "b", transitions: { default: "c" } },
    {
      stepId: "c",
      input: { a: "${ steps.a.output.n }", b: "${ steps.b.output.n }", x: "${ steps.x.status }" },
      transitions: { default: "x" },
    },
    { stepId: "x" },
  ],
});

test("a decision asks for exactly the rows that it lacks, and decides nothing until it has them", () => {
  const simulation = simulate(chain);
  simulation.start();
  simulation.succeed("a", { n: 1 });

  const answer = decide(chain, simulation.snapshot, [success("b", { n: 2 })], noReads, noon);

  expect(answer).toEqual({
    needs: [
      { kind: "latest", path: "a" },
      { kind: "latest", path: "x" },
    ],
  });
});

test("C41: what all of its signals and the steps that follow may read is asked for in one round", () => {
  const names = "abcdefghijklmnopqrst".split("");
  const sets = names.map((name, at) => ({
    stepId: `set_${name}`,
    type: "SET",
    variables: { [name]: `\${ steps.${name}.output }` },
    transitions: names[at + 1] === undefined ? {} : { default: `set_${names[at + 1]}` },
  }));
  const long = define({
    steps: [
      ...names.map((stepId, at) => ({
        stepId,
        transitions: { default: names[at + 1] ?? "pause" },
      })),
      { stepId: "pause", type: "DELAY", duration: "PT1S", transitions: { default: "set_a" } },
      ...sets,
    ],
  });
  const simulation = simulate(long);
  simulation.start();
  for (const name of names) simulation.succeed(name, name);

  const fired = { kind: "timerFired", timer: "delay", path: "pause" } as const;
  const signal = { ...fired, iteration: 1, attempt: 1 };
  const answer = decide(long, simulation.snapshot, [signal], noReads, noon);

  expect(answer).toEqual({ needs: names.map((path) => ({ kind: "latest", path })) });
});

test("an output that was too large to come along is read from outside of its MAP once it has come", () => {
  const outside = define({
    steps: [
      {
        stepId: "m",
        type: "MAP",
        items: "[1]",
        steps: [{ stepId: "label" }],
        transitions: { default: "after" },
      },
      { stepId: "after", input: { label: "${ steps.label.output }" } },
    ],
  });
  const simulation = simulate(outside);
  simulation.start();

  simulation.succeed("label", "x".repeat(70_000));

  expect(simulation.row("after")).toMatchObject({ status: "PENDING" });
});

test("a step that settles in this decision is seen as it will be; one never reached is not there", () => {
  const simulation = simulate(chain);
  simulation.start();
  simulation.succeed("a", { n: 1 });

  const { inserts } = simulation.succeed("b", { n: 2 });

  expect(inserts[0]?.input).toEqual({ a: 1, b: 2 });
});

test("a plain step asks for nothing", () => {
  const simulation = simulate(chain);
  simulation.start();

  const answer = decide(chain, simulation.snapshot, [success("a")], noReads, noon);

  expect(answer).not.toHaveProperty("needs");
});

test("in a loop a step is its latest execution", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "a",
          input: { before: "${ steps.a.output }" },
          transitions: { conditions: [{ when: "steps.a.output < 2", to: "a" }] },
        },
      ],
    }),
  );
  simulation.start();

  const { inserts } = simulation.succeed("a", 1);
  simulation.succeed("a", 2);

  expect(inserts[0]?.input).toEqual({ before: 1 });
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: 2 });
});

test("the instance shows what it is, its state whole, and an output however large", () => {
  const large = "x".repeat(70_000);
  const simulation = simulate(
    define({
      variables: { v: 1 },
      steps: [
        { stepId: "a", transitions: { default: "b" } },
        { stepId: "b", transitions: { default: "c" } },
        { stepId: "c", input: { instance: "${ workflow.instance }", now: "${ now() }" } },
      ],
    }),
    { i: 1 },
    { correlationId: "corr", userId: "ada" },
  );
  simulation.start();
  simulation.succeed("a", large);

  const { inserts } = simulation.succeed("b");

  const state = {
    input: { i: 1 },
    variables: { v: 1 },
    steps: {
      a: { status: "COMPLETED", output: large, attempts: 1 },
      b: { status: "COMPLETED", output: null, attempts: 1 },
    },
  };
  expect(inserts[0]?.input).toEqual({
    now: noon.toISOString(),
    instance: {
      id: simulation.snapshot.id,
      status: "RUNNING",
      workflowId: "test",
      workflowVersion: 1,
      input: { i: 1 },
      correlationId: "corr",
      tenantId: "default",
      userId: "ada",
      createdAt: noon.toISOString(),
      startedAt: noon.toISOString(),
      cancellation: null,
      state,
    },
  });
});

test("all steps stand in the order of the definition, whichever order their rows come in", () => {
  const listing = define({
    steps: [
      { stepId: "z", transitions: { default: "a" } },
      { stepId: "a", transitions: { default: "b" } },
      { stepId: "b" },
    ],
    output: "${ keys(steps) }",
  });
  const simulation = simulate(listing);
  simulation.start();
  simulation.succeed("z");
  simulation.succeed("a");
  const reads = readsOf(simulation.instance);
  const reversed = { ...reads, latest: new Map([...reads.latest].toReversed()) };

  const decision = decide(listing, simulation.snapshot, [success("b")], reversed, noon);

  expect(decision).toMatchObject({ snapshot: { output: ["z", "a", "b"] } });
});

test("attempts are those that were made, also while the next one is awaited", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "a",
          totalTimeout: "PT1S",
          retry: { initialInterval: "PT1M", jitter: "NONE" },
          onError: [{ errors: ["*"], to: "b" }],
        },
        { stepId: "b", input: "${ steps.a.attempts }" },
      ],
    }),
  );
  simulation.start();
  simulation.fail("a");

  const [firing] = simulation.elapse("PT1S");

  expect(firing?.decision.inserts[0]?.input).toBe(1);
});

test("a row that a decision relies on and that does not exist is a fault of the engine", () => {
  const simulation = simulate(
    define({
      steps: [{ stepId: "a" }],
      compensationSteps: [{ stepId: "undo", compensationFor: "a" }],
    }),
  );
  simulation.start();
  const reads = { ...readsOf(simulation.instance), executions: new Map([["a#1", null]]) };
  const cancel: Signal = {
    kind: "cancelRequested",
    reason: null,
    actor: "x",
    shouldCompensate: true,
  };

  expect(() => decide(simulation.definition, simulation.snapshot, [cancel], reads, noon)).toThrow(
    "not stored",
  );
});

test.each([
  ["no worker has taken", () => {}, { status: "PENDING", attempts: 0 }],
  [
    "a worker has",
    (simulation: Simulation) => simulation.claim("b"),
    { status: "RUNNING", attempts: 1 },
  ],
  [
    "a worker has died of",
    (simulation: Simulation) => {
      simulation.claim("b");
      simulation.lose("b");
    },
    { status: "RUNNING", attempts: 1 },
  ],
] as const)("a step that %s is seen as begun, or not", (_, happen, seen) => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "p",
          type: "PARALLEL",
          branches: [
            {
              name: "x",
              steps: [
                { stepId: "a", transitions: { default: "look" } },
                {
                  stepId: "look",
                  type: "SET",
                  variables: { status: "${ steps.b.status }", attempts: "${ steps.b.attempts }" },
                },
              ],
            },
            { name: "y", steps: [{ stepId: "b" }] },
          ],
        },
      ],
    }),
  );
  simulation.start();
  happen(simulation);

  simulation.succeed("a");

  expect(simulation.snapshot.variables).toEqual(seen);
});

test("outside of a MAP a step is its latest execution: that of the item entered last, whatever became of it", () => {
  const mapped = define({
    steps: [
      {
        stepId: "ship",
        type: "MAP",
        items: "[1, 2, 3]",
        tolerate: 3,
        steps: [{ stepId: "label", retry: { maxAttempts: 1 } }],
        transitions: { default: "after" },
      },
      {
        stepId: "after",
        type: "SET",
        variables: { latest: "${ steps.label.status }", all: "${ workflow.instance.state.steps }" },
      },
    ],
  });
  const settle = (at: number, isFailed: boolean): Signal => {
    const place = { path: `ship[${at}].label`, iteration: 1, attempt: 1 };
    const failure = { type: "Error", message: "", details: null, retryable: false };
    return isFailed
      ? { kind: "stepFailed", ...place, failure, retry: resolveRetryPolicy({}) }
      : { kind: "stepSucceeded", ...place, output: at };
  };
  const simulation = simulate(mapped);
  simulation.start();
  simulation.send(settle(2, true));
  simulation.send(settle(1, false));

  simulation.send(settle(0, false));

  expect(simulation.snapshot.variables).toMatchObject({
    latest: "FAILED",
    all: { label: { status: "FAILED", attempts: 1 } },
  });
});

test("an item reads the steps of a MAP within it as they are in that item", () => {
  const nested = define({
    steps: [
      {
        stepId: "outer",
        type: "MAP",
        items: "[1, 2]",
        steps: [
          {
            stepId: "inner",
            type: "MAP",
            items: "[1]",
            steps: [{ stepId: "n" }],
            transitions: { default: "work" },
          },
          { stepId: "work", transitions: { default: "look" } },
          { stepId: "look", input: "${ steps.n.output }" },
        ],
      },
    ],
  });
  const simulation = simulate(nested);
  simulation.start();
  simulation.send(success("outer[0].inner[0].n", { of: 0 }));
  simulation.send(success("outer[1].inner[0].n", { of: 1 }));

  const { inserts } = simulation.send(success("outer[0].work"), success("outer[1].work"));

  expect(inserts.map(({ path, input }) => [path, input])).toEqual([
    ["outer[0].look", { of: 0 }],
    ["outer[1].look", { of: 1 }],
  ]);
});

test("what comes of an event or a time finds the instance RUNNING; conditions of events, as it waits", () => {
  const status = "${ workflow.instance.status }";
  const waiting = define({
    steps: [
      { stepId: "rest", type: "DELAY", duration: "PT1S", transitions: { default: "first" } },
      {
        stepId: "first",
        type: "SET",
        variables: { first: status },
        transitions: { default: "wait" },
      },
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "go",
        eventCondition: "workflow.instance.status === event.payload.status",
        transitions: {
          conditions: [{ when: "workflow.instance.status === 'RUNNING'", to: "second" }],
          default: "never",
        },
      },
      { stepId: "second", type: "SET", variables: { second: status } },
      { stepId: "never", type: "END", outcome: "FAILED" },
    ],
    output: status,
  });
  const simulation = simulate(waiting);
  simulation.start();
  simulation.elapse("PT1S");
  const before = simulation.snapshot;
  expect(simulation.publish("go", { status: "RUNNING" })).toBeUndefined();

  simulation.publish("go", { status: "WAITING_FOR_EVENT" });

  expect(before).toMatchObject({ status: "WAITING_FOR_EVENT", variables: { first: "RUNNING" } });
  expect(simulation.snapshot).toMatchObject({
    output: "RUNNING",
    variables: { second: "RUNNING" },
  });
});

test("where the values of a task or a child fail nothing was tried", () => {
  const failing = define({
    steps: [
      { stepId: "a", input: { n: "${ sum('x') }" }, onError: [{ errors: ["*"], to: "b" }] },
      {
        stepId: "b",
        type: "SUB_WORKFLOW",
        workflowId: "child",
        input: { n: "${ sum('x') }" },
        onError: [{ errors: ["*"], to: "c" }],
      },
      { stepId: "c", type: "SET", variables: { all: "${ [steps.a.attempts, steps.b.attempts] }" } },
    ],
  });
  const simulation = simulate(failing);

  simulation.start();

  expect(simulation.snapshot.variables).toEqual({ all: [0, 0] });
  expect(simulation.row("a")).toMatchObject({
    status: "FAILED",
    attempt: 0,
    error: { attempt: null },
  });
});
