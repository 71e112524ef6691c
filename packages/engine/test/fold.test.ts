import { expect, test } from "vitest";
import { claimInMemory, fold } from "../src/fold.ts";
import { define } from "./support/definitions.ts";
import { created, simulate } from "./support/simulation.ts";

const definition = define({
  steps: [{ stepId: "a", scheduleTimeout: "PT1M", transitions: { default: "b" } }, { stepId: "b" }],
  compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
});

test("claims are not in the history; where one made a difference, the history says so", () => {
  const simulation = simulate(definition);
  simulation.start();
  simulation.claim("a");
  simulation.cancel();

  const folded = fold(definition, created(definition).instance.snapshot, simulation.history);

  expect(simulation.history[1]?.signals[0]).toEqual({
    kind: "observedRunning",
    executions: ["a#1"],
  });
  expect(folded.snapshot).toEqual(simulation.snapshot);
});

test("a row that was seen RUNNING once is not taken for RUNNING later, when its worker had died", () => {
  const simulation = simulate(definition);
  simulation.start();
  simulation.claim("a");
  simulation.elapse("PT1M");

  const folded = fold(definition, created(definition).instance.snapshot, simulation.history);

  expect(folded.executions.get("a#1")?.status).toBe("PENDING");
});

test("a row is claimed only where a worker could take it", () => {
  const { instance } = simulate(definition);
  const simulation = simulate(definition);
  simulation.start();
  simulation.succeed("a");

  expect(claimInMemory(instance, "a#1")).toBe(instance);
  expect(claimInMemory(simulation.instance, "a#1")).toBe(simulation.instance);
  expect(claimInMemory(simulation.instance, "b#1").executions.get("b#1")).toMatchObject({
    status: "RUNNING",
    fence: 1,
  });
});

test("an expression that sees a step RUNNING sees it so in a replay", () => {
  const seen = define({
    steps: [
      {
        stepId: "both",
        type: "PARALLEL",
        branches: [
          {
            name: "one",
            steps: [
              { stepId: "a", transitions: { default: "note" } },
              { stepId: "note", type: "SET", variables: { b: "${ steps.b.status }" } },
            ],
          },
          { name: "other", steps: [{ stepId: "b" }] },
        ],
      },
    ],
  });
  const simulation = simulate(seen);
  simulation.start();
  simulation.claim("b");
  simulation.succeed("a");

  const folded = fold(seen, created(seen).instance.snapshot, simulation.history);

  expect(simulation.snapshot.variables).toEqual({ b: "RUNNING" });
  expect(folded.snapshot).toEqual(simulation.snapshot);
});

test("a retry interval that is an expression, and reads another step, comes out the same", () => {
  const reading = define({
    retry: { initialInterval: "${ steps.a.output ?? 'PT1S' }" },
    steps: [
      { stepId: "a", transitions: { default: "b" } },
      { stepId: "b", onError: [{ errors: ["*"], to: "c" }] },
      { stepId: "c" },
    ],
  });
  for (const [output, status] of [
    ["PT5S", "RETRYING"],
    ["soon", "FAILED"],
  ] as const) {
    const simulation = simulate(reading);
    simulation.start();
    simulation.succeed("a", output);
    simulation.fail("b");

    const folded = fold(reading, created(reading).instance.snapshot, simulation.history);

    expect(folded.snapshot).toEqual(simulation.snapshot);
    expect(simulation.row("b")?.status).toBe(status);
    expect(simulation.row("c") !== undefined).toBe(status === "FAILED");
  }
});
