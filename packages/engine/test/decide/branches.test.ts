import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";
import { parallel, leadingTo, wait } from "../support/parallel.ts";

test("an END inside a branch ends the whole instance", () => {
  const simulation = simulate(
    define({
      steps: [
        parallel("fork", {
          a: [
            { stepId: "x", ...leadingTo("stop") },
            { stepId: "stop", type: "END", outcome: "COMPLETED", output: "early" },
          ],
          b: [wait("w")],
        }),
        { stepId: "never" },
      ].map((step, index) =>
        index === 0 ? { ...step, join: "ANY", ...leadingTo("never") } : step,
      ),
    }),
  );
  simulation.start();

  simulation.succeed("x");

  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: "early" });
  expect(simulation.statuses()).toEqual({
    fork: "CANCELLED",
    x: "COMPLETED",
    stop: "COMPLETED",
    w: "CANCELLED",
  });
});

test("C45: steps are undone in the reverse order of their completion, across branches", () => {
  const simulation = simulate(
    define({
      steps: [
        parallel("fork", {
          a: [{ stepId: "a1", ...leadingTo("a2") }, { stepId: "a2" }],
          b: [{ stepId: "b1", ...leadingTo("b2") }, { stepId: "b2" }],
        }),
      ],
      compensationSteps: ["a1", "a2", "b1", "b2"].map((id) => ({
        stepId: `undo_${id}`,
        compensationFor: id,
      })),
    }),
  );
  simulation.start();
  for (const id of ["b1", "a1", "b2"]) simulation.succeed(id);

  simulation.cancel();

  expect(simulation.snapshot.compensation?.plan).toEqual(["undo_b2", "undo_a1", "undo_b1"]);
});

describe("steps.<id>", () => {
  test("is that of the same branch, leadingTo of the enclosing list; one of another branch is its latest", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "first", ...leadingTo("fork") },
          parallel("fork", {
            a: [
              { stepId: "a1", ...leadingTo("a2") },
              {
                stepId: "a2",
                input: {
                  own: "${ steps.a1.output }",
                  outer: "${ steps.first.output }",
                  other: "${ steps.b1.output }",
                },
              },
            ],
            b: [{ stepId: "b1" }],
          }),
        ],
      }),
    );
    simulation.start();
    simulation.succeed("first", 0);
    simulation.succeed("b1", "b");

    const { inserts } = simulation.succeed("a1", "a");

    expect(inserts[0]?.input).toEqual({ own: "a", outer: 0, other: "b" });
  });
});

describe("loops", () => {
  test("a PARALLEL in a loop begins anew, and its steps are new executions", () => {
    const simulation = simulate(
      define({
        variables: { n: 0 },
        steps: [
          parallel("fork", { a: [{ stepId: "x" }], b: [{ stepId: "y" }] }, leadingTo("count")),
          {
            stepId: "count",
            type: "SET",
            variables: { n: "${ variables.n + 1 }" },
            transitions: { conditions: [{ when: "variables.n < 3", to: "fork" }] },
          },
        ],
      }),
    );
    simulation.start();

    for (const pass of [1, 2, 3]) {
      simulation.succeed("x", pass);
      simulation.succeed("y", -pass);
    }

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { a: 3, b: -3 } });
    expect(simulation.row("x")).toMatchObject({ path: "fork.a.x", iteration: 3 });
    expect(simulation.snapshot.iterations).toEqual({ fork: 3, count: 3 });
  });

  test("a loop inside a branch counts by itself while the other branch waits", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel("fork", {
            a: [
              { stepId: "tick", type: "DELAY", duration: "PT1S", ...leadingTo("work") },
              {
                stepId: "work",
                transitions: { conditions: [{ when: "steps.work.output < 3", to: "tick" }] },
              },
            ],
            b: [wait("w")],
          }),
        ],
      }),
    );
    simulation.start();

    for (const pass of [1, 2, 3]) {
      simulation.elapse("PT1S");
      simulation.succeed("work", pass);
      if (pass === 2) simulation.publish("w.done", { n: 1 });
    }

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED" });
    expect(simulation.snapshot.output).toMatchObject({ a: 3, b: { payload: { n: 1 } } });
    expect(simulation.row("work")).toMatchObject({ path: "fork.a.work", iteration: 3 });
  });
});

test("a PARALLEL inside a branch is one execution of that branch", () => {
  const simulation = simulate(
    define({
      steps: [
        parallel("outer", {
          a: [
            parallel(
              "inner",
              { p: [{ stepId: "x" }], q: [{ stepId: "y" }] },
              { join: "ANY", ...leadingTo("z") },
            ),
            { stepId: "z" },
          ],
          b: [{ stepId: "w" }],
        }),
      ],
    }),
  );
  simulation.start();
  expect(simulation.row("x")?.path).toBe("outer.a.inner.p.x");

  simulation.succeed("x", 1);
  simulation.succeed("w", 2);
  simulation.succeed("z", 3);

  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { a: 3, b: 2 } });
  expect(simulation.row("inner")).toMatchObject({ status: "COMPLETED", output: { p: 1 } });
});

test("a thousand branches are entered, and joined once all have settled", () => {
  const names = Array.from({ length: 1_000 }, (_, index) => `b${index}`);
  const simulation = simulate(
    define({
      steps: [
        parallel(
          "fan",
          Object.fromEntries(
            names.map((name) => [
              name,
              [{ stepId: `${name}_s`, type: "SET", variables: { last: name } }],
            ]),
          ),
        ),
      ],
    }),
  );

  simulation.start();
  simulation.elapse("PT1S");

  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", completions: 1_001 });
});
