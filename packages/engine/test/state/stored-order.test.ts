import { expect, test } from "vitest";
import { inStoredOrder } from "../../src/state/stored-order.ts";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";

test("keys are in order of their length in UTF-8, then of their bytes, at every depth", () => {
  const value = { zebra: 1, b: [{ dd: 1, c: 2, a: 3 }], é: 4, "\u{1F600}": 5, "\uFFFD!": 6, a: 7 };

  expect(JSON.stringify(inStoredOrder(value))).toBe(
    JSON.stringify({
      a: 7,
      b: [{ a: 3, c: 2, dd: 1 }],
      é: 4,
      "\uFFFD!": 6,
      "\u{1F600}": 5,
      zebra: 1,
    }),
  );
});

test("what a step has set is read in the order in which it will be stored", () => {
  const definition = define({
    variables: { first: { yy: 1, x: 2 } },
    steps: [
      {
        stepId: "a",
        type: "SET",
        variables: { v: { zebra: 1, b: 2 } },
        transitions: { default: "b" },
      },
      {
        stepId: "b",
        type: "SET",
        variables: {
          seen: "${ keys(variables.v)[0] + keys(variables.first)[0] + keys(variables)[0] }",
        },
      },
    ],
  });
  const simulation = simulate(definition);

  simulation.start();

  expect(simulation.snapshot.variables).toMatchObject({ seen: "bxv" });
});
