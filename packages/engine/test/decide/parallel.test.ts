import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";

const parallel = (stepId: string, branches: Record<string, object[]>, more: object = {}) => ({
  stepId,
  type: "PARALLEL",
  branches: Object.entries(branches).map(([name, steps]) => ({ name, steps })),
  ...more,
});
const then = (next: string) => ({ transitions: { default: next } });
const wait = (stepId: string, more: object = {}) => ({
  stepId,
  type: "EVENT_WAIT",
  eventPattern: `${stepId}.done`,
  ...more,
});

describe("a PARALLEL that joins all", () => {
  const definition = define({
    steps: [
      parallel(
        "checkout",
        {
          card: [{ stepId: "authorize", ...then("charge") }, { stepId: "charge" }],
          note: [{ stepId: "mail" }],
        },
        then("after"),
      ),
      { stepId: "after", input: "steps.checkout.output" },
    ],
  });

  test("enters every branch at once, each under a path of its own", () => {
    const simulation = simulate(definition);

    const { inserts } = simulation.start();

    expect(inserts.map(({ path, status }) => [path, status])).toEqual([
      ["checkout", "RUNNING"],
      ["checkout.card.authorize", "PENDING"],
      ["checkout.note.mail", "PENDING"],
    ]);
    expect(simulation.snapshot.status).toBe("RUNNING");
  });

  test("goes on once, when the last branch has come to its end, with the output of each", () => {
    const simulation = simulate(definition);
    simulation.start();

    simulation.succeed("mail", "sent");
    simulation.succeed("authorize", "held");
    const { inserts } = simulation.succeed("charge", { id: 7 });

    expect(inserts.map(({ path }) => path)).toEqual(["after"]);
    expect(inserts[0]?.input).toEqual({ card: { id: 7 }, note: "sent" });
    expect(simulation.row("checkout")).toMatchObject({ status: "COMPLETED", completion: 4 });
    simulation.succeed("after", "bye");
    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: "bye",
      completedSteps: 5,
    });
  });

  test("branches that end in one decision are joined once", () => {
    const names = Array.from({ length: 30 }, (_, index) => `b${index}`);
    const wide = define({
      steps: [
        parallel(
          "fan",
          Object.fromEntries(names.map((name) => [name, [{ stepId: `${name}_work` }]])),
        ),
      ],
    });
    const simulation = simulate(wide);
    simulation.start();
    for (const name of names) simulation.claim(`${name}_work`);

    const { updates } = simulation.send(
      ...names.map((name) => ({
        kind: "stepSucceeded" as const,
        path: `fan.${name}.${name}_work`,
        iteration: 1,
        attempt: 1,
        output: name,
      })),
    );

    expect(updates.filter(({ path }) => path === "fan")).toHaveLength(1);
    expect(simulation.snapshot.output).toEqual(
      Object.fromEntries(names.map((name) => [name, name])),
    );
  });

  test("branches that end one by one are asked for together, however many there are", () => {
    const names = Array.from({ length: 30 }, (_, index) => `b${index}`);
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "fan",
            Object.fromEntries(names.map((name) => [name, [{ stepId: `${name}_work` }]])),
          ),
        ],
      }),
    );
    simulation.start();

    for (const name of names) simulation.succeed(`${name}_work`, name);

    expect(simulation.snapshot.output).toEqual(
      Object.fromEntries(names.map((name) => [name, name])),
    );
  });

  test("C43: a branch whose only step is skipped, or whose choice leads nowhere, has settled", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel("fork", {
            a: [{ stepId: "skipped", condition: "false" }],
            b: [
              { stepId: "switch", type: "CHOICE", choices: [{ when: "input.x", to: "x" }] },
              { stepId: "x" },
            ],
          }),
        ],
      }),
    );

    simulation.start();

    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: { a: null, b: null },
    });
    expect(simulation.statuses()).toMatchObject({ skipped: "SKIPPED", switch: "COMPLETED" });
  });

  test("a failed branch fails it with that branch's error; its siblings and what they wait for go", () => {
    const simulation = simulate(
      define({
        retry: { maxAttempts: 1 },
        steps: [
          parallel(
            "fork",
            {
              a: [{ stepId: "work" }],
              b: [wait("w", { eventTimeout: { duration: "P1D" } })],
              c: [{ stepId: "other" }],
            },
            { onError: [{ errors: ["Boom"], to: "rescue" }] },
          ),
          { stepId: "rescue", input: "steps.fork.error" },
        ],
      }),
    );
    simulation.start();
    simulation.claim("other");

    const { commands, inserts } = simulation.fail("work", "Boom");

    expect(simulation.statuses()).toEqual({
      fork: "FAILED",
      work: "FAILED",
      w: "CANCELLED",
      other: "CANCELLED",
      rescue: "PENDING",
    });
    expect(inserts[0]?.input).toMatchObject({ type: "Boom", stepId: "work" });
    expect(commands.map(({ kind }) => kind).toSorted()).toEqual([
      "abort",
      "clearTimer",
      "closeWait",
      "dispatch",
    ]);
    expect([...simulation.waits, ...simulation.timers]).toEqual([]);
  });

  test("onBranchError CONTINUE joins what completed, and leaves the failed branch out", () => {
    const simulation = simulate(
      define({
        retry: { maxAttempts: 1 },
        steps: [
          parallel(
            "fork",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { onBranchError: "CONTINUE" },
          ),
        ],
      }),
    );
    simulation.start();

    simulation.fail("x");
    simulation.succeed("y", 2);

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { b: 2 } });
  });

  test("is waiting for an event only while every live branch waits", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel("fork", { a: [wait("w")], b: [{ stepId: "x", ...then("v") }, wait("v")] }),
        ],
      }),
    );
    simulation.start();
    expect(simulation.snapshot.status).toBe("RUNNING");

    simulation.succeed("x");
    expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

    simulation.publish("w.done");
    expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");
    simulation.publish("v.done");
    expect(simulation.snapshot.status).toBe("COMPLETED");
  });
});

describe("a PARALLEL that joins some", () => {
  test("the first branch wins; the others lose their waits and timers in the same commit", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            {
              event: [wait("w", { eventTimeout: { duration: "P1D" } })],
              clock: [{ stepId: "d", type: "DELAY", duration: "PT1S" }],
            },
            { join: "ANY" },
          ),
        ],
      }),
    );
    simulation.start();

    simulation.elapse("PT1S");

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { clock: null } });
    expect(simulation.statuses()).toMatchObject({ w: "CANCELLED", d: "COMPLETED" });
    expect([...simulation.waits, ...simulation.timers]).toEqual([]);
  });

  const two = define({
    retry: { maxAttempts: 1 },
    steps: [
      parallel(
        "vote",
        { a: [{ stepId: "x" }], b: [{ stepId: "y" }], c: [{ stepId: "z" }] },
        { join: { count: 2 } },
      ),
    ],
  });

  test("a count joins when so many have completed, whatever failed before", () => {
    const simulation = simulate(two);
    simulation.start();

    simulation.fail("x");
    simulation.succeed("y", 1);
    simulation.succeed("z", 2);

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { b: 1, c: 2 } });
  });

  test("a count fails as soon as it can no longer be reached", () => {
    const simulation = simulate(two);
    simulation.start();

    simulation.fail("x");
    simulation.fail("y", "Last");

    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { type: "Last" } });
    expect(simulation.statuses()).toEqual({
      vote: "FAILED",
      x: "FAILED",
      y: "FAILED",
      z: "CANCELLED",
    });
  });

  test("a loser in flight that can be undone is given its grace, and is undone first if it succeeds", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { join: "ANY", ...then("after") },
          ),
          { stepId: "after" },
        ],
        compensationSteps: [
          { stepId: "undo_x", compensationFor: "x" },
          { stepId: "undo_y", compensationFor: "y" },
        ],
      }),
    );
    simulation.start();
    simulation.claim("y");

    simulation.succeed("x");
    expect(simulation.row("y")?.status).toBe("RUNNING");
    expect(simulation.row("after")?.status).toBe("PENDING");
    simulation.succeed("y", "late");
    simulation.cancel();

    expect(simulation.row("y")?.status).toBe("COMPLETED");
    expect(simulation.snapshot.compensation?.plan).toEqual(["undo_y", "undo_x"]);
  });

  test("a loser that keeps silent holds nothing up, and a compensation names it", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { join: "ANY", ...then("w") },
          ),
          wait("w"),
        ],
        compensationSteps: [{ stepId: "undo_y", compensationFor: "y" }],
      }),
    );
    simulation.start();
    simulation.claim("y");
    simulation.succeed("x");
    expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

    simulation.elapse("PT30S");
    expect(simulation.row("y")?.status).toBe("CANCELLED");
    simulation.cancel();

    expect(simulation.snapshot.compensation).toMatchObject({ uncertain: ["race.b.y"], plan: [] });
  });

  test("an instance completes without waiting for a loser", () => {
    const simulation = simulate(
      define({
        steps: [parallel("race", { a: [{ stepId: "x" }], b: [{ stepId: "y" }] }, { join: "ANY" })],
        compensationSteps: [{ stepId: "undo_y", compensationFor: "y" }],
      }),
    );
    simulation.start();
    simulation.claim("y");

    simulation.succeed("x", 1);

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { a: 1 } });
    expect(simulation.row("y")?.status).toBe("CANCELLED");
  });
});

test("an END inside a branch ends the whole instance", () => {
  const simulation = simulate(
    define({
      steps: [
        parallel("fork", {
          a: [
            { stepId: "x", ...then("stop") },
            { stepId: "stop", type: "END", outcome: "COMPLETED", output: "early" },
          ],
          b: [wait("w")],
        }),
        { stepId: "never" },
      ].map((step, index) => (index === 0 ? { ...step, join: "ANY", ...then("never") } : step)),
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
          a: [{ stepId: "a1", ...then("a2") }, { stepId: "a2" }],
          b: [{ stepId: "b1", ...then("b2") }, { stepId: "b2" }],
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
  test("is that of the same branch, then of the enclosing list; one of another branch is its latest", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "first", ...then("fork") },
          parallel("fork", {
            a: [
              { stepId: "a1", ...then("a2") },
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
          parallel("fork", { a: [{ stepId: "x" }], b: [{ stepId: "y" }] }, then("count")),
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
              { stepId: "tick", type: "DELAY", duration: "PT1S", ...then("work") },
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
              { join: "ANY", ...then("z") },
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
