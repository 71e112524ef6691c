import { expect, test } from "vitest";
import { simulate as simulateUsers } from "../../src/simulate/simulate.ts";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";

const emit = (stepId: string, eventPattern: string, more: object = {}) => ({
  stepId,
  type: "EMIT_EVENT",
  eventPattern,
  payload: { from: stepId, n: "${ input.n }" },
  ...more,
});
const wait = (stepId: string, eventPattern: string, more: object = {}) => ({
  stepId,
  type: "EVENT_WAIT",
  eventPattern,
  ...more,
});
const to = (stepId: string) => ({ transitions: { default: stepId } });

test("an event goes with the commit, under an id of its own for each execution", () => {
  const simulation = simulate(
    define({
      variables: { n: 0 },
      steps: [
        { stepId: "count", type: "SET", variables: { n: "${ variables.n + 1 }" }, ...to("tell") },
        emit("tell", "pass.${ variables.n }", {
          transitions: { conditions: [{ when: "variables.n < 2", to: "count" }], default: "after" },
        }),
        { stepId: "after" },
      ],
    }),
    { n: 7 },
  );

  const { commands } = simulation.start();

  const { id } = simulation.snapshot;
  expect(commands.filter(({ kind }) => kind === "emitEvent")).toEqual([
    {
      kind: "emitEvent",
      event: { id: `${id}:tell#1`, pattern: "pass.1", payload: { from: "tell", n: 7 } },
    },
    {
      kind: "emitEvent",
      event: { id: `${id}:tell#2`, pattern: "pass.2", payload: { from: "tell", n: 7 } },
    },
  ]);
  expect(simulation.row("tell")).toMatchObject({
    status: "COMPLETED",
    output: { id: `${id}:tell#2`, pattern: "pass.2" },
  });
});

test("a repeated signal emits nothing again", () => {
  const simulation = simulate(
    define({ steps: [{ stepId: "first", ...to("tell") }, emit("tell", "told")] }),
  );
  simulation.start();
  simulation.claim("first");
  const result = { kind: "stepSucceeded", path: "first", iteration: 1, attempt: 1 } as const;

  const once = simulation.send({ ...result, output: null });
  const twice = simulation.send({ ...result, output: null });

  expect(once.commands.filter(({ kind }) => kind === "emitEvent")).toHaveLength(1);
  expect(twice.commands).toEqual([]);
});

test("a wait says how many events the same decision emits before it opens", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          branches: [
            { name: "a", steps: [wait("early", "told")] },
            { name: "b", steps: [emit("tell", "told", to("late")), wait("late", "told")] },
          ],
        },
      ],
    }),
  );

  simulation.start();

  expect(simulation.waits.get("fork.a.early#1")?.emittedBefore).toBeUndefined();
  expect(simulation.waits.get("fork.b.late#1")?.emittedBefore).toBe(1);
});

test.each([
  ["is reserved", "workflow.completed", "reserved"],
  ["has a wildcard", "told.*", "wildcard"],
  ["is no text", 7, "must be a text"],
])(
  "a name that %s fails the step at run time, by onError where there is one",
  (_, name, message) => {
    const simulation = simulate(
      define({
        steps: [
          emit("tell", "${ input.name }", { onError: [{ errors: ["BAD_VALUE"], to: "other" }] }),
          { stepId: "other", type: "SET", variables: { failed: "${ steps.tell.error.kind }" } },
        ],
      }),
      { name },
    );

    const { commands } = simulation.start();

    expect(commands.filter(({ kind }) => kind === "emitEvent")).toEqual([]);
    expect(simulation.snapshot.variables).toEqual({ failed: "EXPRESSION" });
    expect(simulation.row("tell")?.error?.message).toContain(message);
  },
);

test("on the virtual clock an emitted event is heard by what was open before it", () => {
  const definition = define({
    timeout: "P1D",
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        branches: [
          { name: "a", steps: [wait("early", "told")] },
          {
            name: "b",
            steps: [
              emit("tell", "told", to("late")),
              wait("late", "told", { eventTimeout: { duration: "PT1M" }, onError: [] }),
            ],
          },
          {
            name: "c",
            steps: [emit("say", "said", to("past")), wait("past", "said", { lookback: "PT1H" })],
          },
        ],
        onBranchError: "CONTINUE",
      },
    ],
  });

  const { instance, events } = simulateUsers(definition, {});

  expect(instance.steps).toMatchObject({
    early: { status: "COMPLETED", output: { pattern: "told", payload: { from: "tell" } } },
    late: { status: "FAILED" },
    past: { status: "COMPLETED", output: { pattern: "said" } },
  });
  expect(events).toMatchObject([
    { pattern: "told", delivered: true },
    { pattern: "said", delivered: true },
  ]);
});
