import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

describe("loops", () => {
  const loop = (fields: object) =>
    define({
      variables: { n: 0 },
      steps: [
        {
          stepId: "count",
          type: "SET",
          variables: { n: "${ variables.n + 1 }" },
          transitions: {
            conditions: [{ when: "variables.n < input.limit", to: "count" }],
            default: "end",
          },
          ...fields,
        },
        { stepId: "end" },
      ],
    });

  test("each pass is an execution of its own", () => {
    const simulation = simulate(loop({}), { limit: 3 });

    simulation.start();

    expect([...simulation.instance.executions.keys()]).toEqual([
      "count#1",
      "count#2",
      "count#3",
      "end#1",
    ]);
    expect(simulation.snapshot).toMatchObject({ completedSteps: 1, iterations: { count: 3 } });
  });

  test("maxIterations ends a loop with a LIMIT error", () => {
    const simulation = simulate(loop({ maxIterations: 2 }), { limit: 99 });

    simulation.start();

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "LIMIT", type: "MAX_ITERATIONS", stepId: "count" },
    });
    expect(simulation.row("count")).toMatchObject({
      iteration: 3,
      status: "FAILED",
      attempt: 0,
    });
  });

  test("onError can go on from there, once: after that the guard ends the instance", () => {
    const definition = define({
      steps: [
        {
          stepId: "a",
          type: "DELAY",
          duration: "PT1S",
          maxIterations: 1,
          onError: [{ errors: ["MAX_ITERATIONS"], to: "a" }],
          transitions: { default: "a" },
        },
      ],
    });
    const simulation = simulate(definition);
    simulation.start();

    simulation.elapse("PT1S");

    expect(simulation.snapshot.error).toMatchObject({ kind: "LIMIT" });
    expect(simulation.snapshot.iterations).toEqual({ a: 3 });
  });

  test("a step whose name is one of an object's own counts like any other", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "toString",
            type: "DELAY",
            duration: "PT1S",
            maxIterations: 2,
            transitions: { default: "toString" },
          },
        ],
      }),
    );
    simulation.start();

    simulation.elapse("PT10S");

    expect(simulation.snapshot.iterations).toEqual({ toString: 3 });
  });

  test("a walk beyond 1,000 steps is cut, and goes on by a timer that is due at once", () => {
    const simulation = simulate(loop({}), { limit: 2_500 });

    simulation.start();
    expect(simulation.snapshot).toMatchObject({ status: "RUNNING", variables: { n: 1_000 } });
    expect([...simulation.timers.values()]).toMatchObject([{ timer: "continue", dueAt: noon }]);

    const firings = simulation.elapse("PT0S");
    expect(firings).toHaveLength(2);
    expect(simulation.snapshot.variables).toEqual({ n: 2_500 });
    expect(simulation.row("end")?.status).toBe("PENDING");
  });

  test("a cancel ends a walk that was cut", () => {
    const simulation = simulate(loop({}), { limit: 2_500 });
    simulation.start();

    simulation.cancel();

    expect(simulation.snapshot.status).toBe("CANCELLED");
    expect(simulation.elapse("PT1S")).toEqual([]);
  });
});
