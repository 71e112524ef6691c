import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

describe("an END step", () => {
  const ending = (fields: object, more: object = {}) => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", transitions: { default: "end" } },
          { stepId: "end", type: "END", ...fields },
        ],
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
        ...more,
      }),
    );
    simulation.start();
    simulation.succeed("a", { n: 1 });
    return simulation;
  };

  test("COMPLETED completes the instance, with its own output or the default one", () => {
    const own = ending({ outcome: "COMPLETED", output: { of: "${ steps.a.output.n }" } });
    const none = ending({ outcome: "COMPLETED" });
    const undefinedOne = ending({ outcome: "COMPLETED", output: "${ steps.a.output.missing }" });

    expect(own.snapshot).toMatchObject({
      status: "COMPLETED",
      output: { of: 1 },
      compensation: null,
    });
    expect(none.snapshot).toMatchObject({ status: "COMPLETED", output: { n: 1 } });
    expect(undefinedOne.snapshot).toMatchObject({ status: "COMPLETED", output: null });
    expect(own.row("end")).toMatchObject({ status: "COMPLETED", output: { of: 1 } });
  });

  test.each([
    [
      { type: "Late", message: "after ${ steps.a.output.n } day", details: { a: 1 } },
      { type: "Late", message: "after 1 day", details: { a: 1 } },
    ],
    ["too late", { type: "FAILED", message: "too late", details: null }],
    [undefined, { type: "FAILED", message: 'the workflow ended at step "end"', details: null }],
    [{ type: "Odd" }, { type: "Odd", message: 'the workflow ended at step "end"' }],
  ])("FAILED fails it with the error %j, and compensates", (error, expected) => {
    const simulation = ending({ outcome: "FAILED", ...(error !== undefined && { error }) });

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "END", stepId: "end", attempt: null, ...expected },
      cancellation: null,
      compensation: { plan: ["undo_a"] },
    });
    expect(simulation.row("end")?.status).toBe("COMPLETED");
  });

  test("CANCELLED cancels it with its reason, and compensates", () => {
    const simulation = ending({ outcome: "CANCELLED", reason: "${ steps.a.output.n } is enough" });

    expect(simulation.snapshot).toMatchObject({
      status: "CANCELLED",
      error: null,
      cancellation: {
        reason: "1 is enough",
        requestedBy: "step:end",
        requestedAt: noon.toISOString(),
        source: "END",
        shouldCompensate: true,
      },
      compensation: { plan: ["undo_a"] },
    });
  });

  test("whose condition is false is SKIPPED, and the instance goes on", () => {
    const simulation = ending({ outcome: "FAILED", condition: "false" });

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { n: 1 } });
    expect(simulation.row("end")?.status).toBe("SKIPPED");
  });

  test("whose instance's output fails has ended all the same: the instance FAILED", () => {
    const simulation = ending(
      { outcome: "COMPLETED" },
      { output: { a: "${ parseJson('oops') }" } },
    );

    expect(simulation.row("end")?.status).toBe("COMPLETED");
    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", stepId: null },
      completions: 2,
    });
  });
});

describe("the instance's output", () => {
  const steps = [
    { stepId: "a", transitions: { default: "w" } },
    { stepId: "w", type: "EVENT_WAIT", eventPattern: "go", transitions: { default: "d" } },
    { stepId: "d", type: "DELAY", duration: "PT1S" },
  ];

  test("is by default that of the last completed TASK or EVENT_WAIT, however long ago", () => {
    const simulation = simulate(define({ steps }));
    simulation.start();
    simulation.succeed("a", 1);
    simulation.publish("go", { n: 2 });

    simulation.elapse("PT1S");

    expect(simulation.snapshot.output).toMatchObject({ id: "event-1", payload: { n: 2 } });
  });

  test("is what the definition says, from any step that was reached", () => {
    const simulation = simulate(
      define({ steps, output: { a: "${ steps.a.output }", none: "${ steps.d.output }" } }),
    );
    simulation.start();
    simulation.succeed("a", 1);
    simulation.publish("go");

    simulation.elapse("PT1S");

    expect(simulation.snapshot.output).toEqual({ a: 1 });
  });

  test("that cannot be evaluated fails the instance, and what was done is undone", () => {
    const simulation = simulate(
      define({
        steps: [{ stepId: "a" }],
        output: { a: "${ parseJson('oops') }" },
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
      }),
    );
    simulation.start();

    simulation.succeed("a");

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION" },
      compensation: { plan: ["undo_a"] },
    });
  });
});

test("what is left waiting goes with the instance: wait, timers and triggers", () => {
  const simulation = simulate(
    define({
      timeout: "P1D",
      cancellationTriggers: [{ eventPattern: "stop", reason: "stop" }],
      steps: [
        {
          stepId: "w",
          type: "EVENT_WAIT",
          eventPattern: "go",
          eventTimeout: { duration: "PT1H" },
        },
      ],
    }),
  );
  simulation.start();
  expect([simulation.waits.size, simulation.timers.size]).toEqual([2, 2]);

  const { commands } = simulation.publish("go") ?? { commands: [] };

  expect(commands.map(({ kind }) => kind).toSorted()).toEqual([
    "clearTimer",
    "clearTimer",
    "closeWait",
    "closeWait",
    "settle",
  ]);
});

describe("a cancel that a publisher was told of", () => {
  const definition = define({
    cancellationTriggers: [{ eventPattern: "stop", reason: "stop" }],
    steps: [{ stepId: "a", retry: { maxAttempts: 1 } }],
  });
  const untaken = { kind: "waitUnmatched", path: "$cancel", iteration: 1 };

  test("is not overtaken by completion or failure: both commit only if no event took a trigger", () => {
    const completing = simulate(definition);
    const failing = simulate(definition);
    completing.start();
    failing.start();

    expect(completing.succeed("a").guards).toEqual([untaken]);
    expect(failing.fail("a").guards).toEqual([untaken]);
  });

  test("is not in the way of another cancel, which relies on nothing but the steps that no worker has taken", () => {
    const simulation = simulate(definition);
    simulation.start();

    const { guards } = simulation.cancel();

    expect(guards.every((guard) => guard.kind === "execution" && guard.status === "PENDING")).toBe(
      true,
    );
  });
});
