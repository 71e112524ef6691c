import { describe, expect, test } from "vitest";
import { done, saga } from "../support/saga.ts";
import { noon } from "../support/simulation.ts";

describe("conditions", () => {
  test("are looked at when the plan is frozen: what is false then is not in it", () => {
    const simulation = done(
      saga({
        undo_a: { condition: "workflow.instance.cancellation.reason === 'rain'" },
        undo_b: { condition: "workflow.steps.b.output.kept" },
      }),
      { b: { kept: false } },
    );

    simulation.cancel("rain");

    expect(simulation.snapshot.compensation?.plan).toEqual(["undo_c", "undo_a"]);
  });

  test("that cannot be evaluated are failures, and the rest still run", () => {
    const simulation = done(saga({ undo_b: { condition: "parseJson('oops')" } }));

    simulation.cancel();
    simulation.succeed("undo_c");
    simulation.succeed("undo_a");

    expect(simulation.snapshot.compensation).toMatchObject({
      status: "COMPLETED_WITH_ERRORS",
      plan: ["undo_c", "undo_a"],
      failed: [{ stepId: "undo_b", error: { kind: "EXPRESSION" }, timestamp: noon.toISOString() }],
    });
  });
});

describe("input", () => {
  test("is by default the original output, the workflow's input and state, and the cancellation", () => {
    const simulation = done(saga(), { a: "of a", b: "of b", c: "of c" });

    const { inserts } = simulation.cancel("rain");

    expect(inserts[0]?.input).toEqual({
      originalOutput: "of c",
      workflowInput: { order: 7 },
      workflowState: {
        input: { order: 7 },
        variables: {},
        steps: {
          a: { status: "COMPLETED", output: "of a", attempts: 1 },
          b: { status: "COMPLETED", output: "of b", attempts: 1 },
          c: { status: "COMPLETED", output: "of c", attempts: 1 },
          w: { status: "CANCELLED", attempts: 1 },
        },
      },
      cancellation: simulation.snapshot.cancellation,
    });
  });

  test("has no outputs over 64 KB in the state, the original one excepted", () => {
    const large = "x".repeat(70_000);
    const simulation = done(saga(), { a: large, c: large });

    const { inserts } = simulation.cancel();

    expect(inserts[0]?.input).toMatchObject({ originalOutput: large });
    expect(inserts[0]?.input).not.toHaveProperty("workflowState.steps.a.output");
    expect(inserts[0]?.input).not.toHaveProperty("workflowState.steps.c.output");
  });

  test("that a condition reads is there, however large it is", () => {
    const large = { data: "x".repeat(70_000), n: 1 };
    const simulation = done(saga({ undo_c: { condition: "steps.c.output.n === 1" } }), {
      c: large,
    });

    simulation.cancel();

    expect(simulation.snapshot.compensation?.plan[0]).toBe("undo_c");
  });

  test("leaves out a key without a value, and is null where it has none at all", () => {
    const simulation = done(
      saga({
        undo_c: { input: { reason: "workflow.instance.cancellation.eventId", n: 1 } },
        undo_b: { input: "workflow.instance.cancellation.eventId" },
      }),
    );

    const first = simulation.cancel();
    const second = simulation.succeed("undo_c");

    expect(first.inserts[0]?.input).toEqual({ n: 1 });
    expect(second.inserts[0]?.input).toBeNull();
  });

  test("that cannot be evaluated fails the step, visibly, and the next one has its turn", () => {
    const simulation = done(saga({ undo_c: { input: { a: "${ parseJson('oops') }" } } }));

    simulation.cancel();

    expect(simulation.row("undo_c")).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", stepId: "undo_c" },
    });
    expect(simulation.row("undo_b")?.status).toBe("PENDING");
    expect(simulation.snapshot.compensation).toMatchObject({
      next: 1,
      failed: [{ stepId: "undo_c" }],
    });
  });

  test("is evaluated when the step starts, not before", () => {
    const simulation = done(saga({ undo_b: { input: "workflow.instance.state.steps.w.status" } }));
    simulation.cancel();

    const { inserts } = simulation.succeed("undo_c");

    expect(inserts[0]?.input).toBe("CANCELLED");
  });
});
