import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

describe("transitions", () => {
  const definition = define({
    variables: { n: 0 },
    steps: [
      {
        stepId: "a",
        transitions: {
          conditions: [
            { when: "steps.a.output.n > 10", to: "big" },
            { when: "steps.a.output.n > 5", to: "middle" },
          ],
          default: "small",
        },
      },
      { stepId: "big" },
      { stepId: "middle" },
      { stepId: "small" },
    ],
  });

  test.each([
    [20, "big"],
    [7, "middle"],
    [1, "small"],
    [null, "small"],
  ])("with %s, the first true condition is taken, else the default: %s", (n, next) => {
    const simulation = simulate(definition);
    simulation.start();

    simulation.succeed("a", { n });

    expect(simulation.statuses()).toEqual({ a: "COMPLETED", [next]: "PENDING" });
  });

  test("a branch ends where there is none, and the instance with the last branch", () => {
    const simulation = simulate(definition);
    simulation.start();
    simulation.succeed("a", { n: 1 });

    simulation.succeed("small", "done");

    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: "done",
      completedAt: noon,
      completedSteps: 2,
    });
  });

  const failedAndUndone = {
    status: "FAILED",
    error: { kind: "EXPRESSION", stepId: "a" },
    compensation: { plan: ["undo_a"] },
  };
  const undoA = { compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }] };
  const failing = { conditions: [{ when: "parseJson('oops')", to: "b" }], default: "b" };

  test("a condition that cannot be evaluated fails the instance, and what was done is undone", () => {
    const simulation = simulate(
      define({
        steps: [{ stepId: "a", transitions: failing }, { stepId: "b" }],
        ...undoA,
      }),
    );
    simulation.start();

    simulation.succeed("a", "kept");

    expect(simulation.snapshot).toMatchObject(failedAndUndone);
    expect(simulation.row("a")).toMatchObject({
      status: "FAILED",
      output: "kept",
      completion: 1,
      error: { kind: "EXPRESSION" },
    });
  });

  test.each([
    ["anything", "*"],
    ["its kind", "EXPRESSION"],
    ["its type", "BAD_ARGUMENT"],
  ])("its error goes through onError for %s, where it can be read", (_, name) => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", transitions: failing, onError: [{ errors: [name], to: "c" }] },
          { stepId: "b" },
          { stepId: "c", input: "${ steps.a.error.kind }" },
        ],
      }),
    );
    simulation.start();

    const { inserts } = simulation.succeed("a");

    expect(inserts).toMatchObject([{ stepId: "c", input: "EXPRESSION" }]);
    expect(simulation.statuses()).toEqual({ a: "FAILED", c: "PENDING" });
  });

  test("the history tells that the step has completed, and then that it has failed", () => {
    const simulation = simulate(
      define({ steps: [{ stepId: "a", transitions: failing }, { stepId: "b" }] }),
    );
    simulation.start();

    const { entries } = simulation.succeed("a");

    expect(entries.flatMap(({ type, stepId }) => (stepId === "a" ? [type] : []))).toEqual([
      "workflow.step.completed",
      "workflow.step.failed",
    ]);
  });

  test("of a step that one pass could leave and the next could not, both passes are undone, each in its turn", () => {
    const simulation = simulate(
      define({
        variables: { n: 0 },
        steps: [
          {
            stepId: "a",
            transitions: {
              conditions: [{ when: "steps.a.output === 'bad' && parseJson('oops')", to: "c" }],
              default: "b",
            },
            onError: [{ errors: ["*"], to: "c" }],
          },
          { stepId: "b", transitions: { default: "a" } },
          { stepId: "c" },
        ],
        compensationSteps: [
          { stepId: "undo_a", compensationFor: "a" },
          { stepId: "undo_b", compensationFor: "b" },
        ],
      }),
    );
    simulation.start();
    simulation.succeed("a", "good");
    simulation.succeed("b", 1);
    simulation.succeed("a", "bad");

    simulation.cancel();

    expect(simulation.snapshot.compensation).toMatchObject({
      plan: ["undo_a", "undo_b", "undo_a"],
      targets: ["a#2", "b#1", "a#1"],
    });
    expect(simulation.row("undo_a")).toMatchObject({ status: "PENDING" });
  });

  test.each([
    ["a branch", parallelWith],
    ["an item", mapWith],
  ])(
    "in %s it is FAILED, and its branch goes on by onError with its output as the last",
    (_, around) => {
      const simulation = simulate(
        define({
          steps: [
            around([
              { stepId: "a", transitions: failing, onError: [{ errors: ["*"], to: "note" }] },
              { stepId: "b" },
              { stepId: "note", type: "SET", variables: { noted: "${ steps.a.status }" } },
            ]),
          ],
        }),
      );
      simulation.start();

      simulation.succeed("a", "kept");

      expect(simulation.row("a")).toMatchObject({
        status: "FAILED",
        output: "kept",
        completion: 1,
      });
      expect(simulation.snapshot.status).toBe("COMPLETED");
      expect(JSON.stringify(simulation.snapshot.output)).toContain("kept");
      expect(simulation.snapshot.variables).toEqual({ noted: "FAILED" });
    },
  );

  test.each([
    ["a branch", parallelWith],
    ["an item", mapWith],
  ])("in %s, with nobody to take the error, the branch fails by it", (_, around) => {
    const simulation = simulate(
      define({
        steps: [around([{ stepId: "a", transitions: failing }, { stepId: "b" }])],
        ...undoA,
      }),
    );
    simulation.start();

    simulation.succeed("a", "kept");

    expect(simulation.snapshot).toMatchObject(failedAndUndone);
    expect(simulation.row("a")?.status).toBe("FAILED");
  });

  test("of a PARALLEL that was joined and cannot be left, the branches' outputs are its output still", () => {
    const fork = parallelWith([{ stepId: "x" }]);
    const simulation = simulate(
      define({
        steps: [
          { ...fork, transitions: failing, onError: [{ errors: ["*"], to: "b" }] },
          { stepId: "b" },
        ],
      }),
    );
    simulation.start();

    simulation.succeed("x", 7);

    expect(simulation.row("around")).toMatchObject({ status: "FAILED", output: { only: 7 } });
    expect(simulation.statuses()).toMatchObject({ b: "PENDING" });
  });

  test("a step that completed while it was paused fails when the pause is over, and is undone all the same", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", transitions: failing, onError: [{ errors: ["*"], to: "c" }] },
          { stepId: "b" },
          { stepId: "c" },
        ],
        ...undoA,
      }),
    );
    const who = { actor: "user:ada", reason: null };
    simulation.start();
    simulation.send({ kind: "pauseRequested", intervention: 1, until: null, ...who });
    simulation.succeed("a", "kept");
    const held = simulation.row("a");

    simulation.send({ kind: "resumeRequested", intervention: 2, held: [], ...who });
    const left = simulation.row("a");
    simulation.cancel();

    expect(held).toMatchObject({ status: "COMPLETED", error: null });
    expect(left).toMatchObject({ status: "FAILED", output: "kept", completion: 1 });
    expect(simulation.snapshot.compensation?.plan).toEqual(["undo_a"]);
  });
});

function parallelWith(
  steps: readonly object[],
): Record<string, unknown> & { readonly stepId: string } {
  return { stepId: "around", type: "PARALLEL", branches: [{ name: "only", steps }] };
}

function mapWith(steps: readonly object[]): Record<string, unknown> & { readonly stepId: string } {
  return { stepId: "around", type: "MAP", items: "[1]", steps };
}
