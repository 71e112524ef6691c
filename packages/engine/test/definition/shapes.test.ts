import { expect, test } from "vitest";
import { outlineOf } from "../../src/definition/outline.ts";
import { shapesOf } from "../../src/definition/shapes.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { define } from "../support/definitions.ts";

/** What expressions see is found by running one, so that nothing that is there is called missing. */
test("the instance, a step and an event have exactly the members that the checker knows", () => {
  const sketch = {
    steps: [
      {
        stepId: "w",
        type: "EVENT_WAIT",
        eventPattern: "a.b",
        eventTimeout: { duration: "P1D" },
        transitions: { default: "look" },
      },
      {
        stepId: "look",
        type: "SET",
        variables: {
          instance: "${ keys(workflow.instance) }",
          step: "${ keys(steps.w) }",
          event: "${ keys(steps.w.output) }",
        },
      },
    ],
  };
  const { instance } = simulate(define(sketch), {
    events: [{ at: "PT1H", pattern: "a.b", payload: {} }],
  });

  const roots = shapesOf(outlineOf(sketch));
  const member = (root: "workflow" | "steps", key: string) => roots[root]?.member?.(key);
  expect(instance.variables).toEqual({
    instance: expect.toSatisfy(sameNames(member("workflow", "instance")?.names)),
    // It has no error, and would have one.
    step: expect.toSatisfy(sameNames(["status", "output", "attempts"])),
    event: expect.toSatisfy(sameNames(member("steps", "w")?.member?.("output").names)),
  });
  expect(member("steps", "w")?.names?.toSorted()).toEqual([
    "attempts",
    "error",
    "output",
    "status",
  ]);
});

function sameNames(expected: readonly string[] = []) {
  return (found: readonly string[]): boolean =>
    JSON.stringify(found.toSorted()) === JSON.stringify(expected.toSorted());
}
