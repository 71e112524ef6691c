import { expect, test } from "vitest";
import { decide } from "../../src/decide/decide.ts";
import { readsOf } from "../../src/fold.ts";
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
