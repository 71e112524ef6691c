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

  const failing = { conditions: [{ when: "parseJson('oops')", to: "b" }], default: "b" };

  test("a condition that cannot be evaluated fails the instance, and what was done is undone", () => {
    const simulation = simulate(
      define({
        steps: [{ stepId: "a", transitions: failing }, { stepId: "b" }],
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
      }),
    );
    simulation.start();

    simulation.succeed("a", "kept");

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", stepId: "a" },
      compensation: { plan: ["undo_a"] },
    });
    expect(simulation.row("a")).toMatchObject({
      status: "FAILED",
      output: "kept",
      completion: 1,
      error: { kind: "EXPRESSION" },
    });
  });

  test("its error goes through onError, where it can be read", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", transitions: failing, onError: [{ errors: ["*"], to: "c" }] },
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
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
      }),
    );
    simulation.start();

    simulation.succeed("a", "kept");

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", stepId: "a" },
      compensation: { plan: ["undo_a"] },
    });
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
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
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

describe("a step's own condition", () => {
  test("that is false makes it SKIPPED, and the default transition is taken", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "a",
            condition: "input.wanted",
            transitions: { conditions: [{ when: "true", to: "b" }], default: "c" },
          },
          { stepId: "b" },
          { stepId: "c" },
        ],
      }),
    );

    const { entries } = simulation.start();

    expect(simulation.statuses()).toEqual({ a: "SKIPPED", c: "PENDING" });
    expect(entries.map(({ type }) => type)).toContain("workflow.step.skipped");
  });

  test("that cannot be evaluated makes it FAILED, by way of onError", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", condition: "parseJson('oops')", onError: [{ errors: ["*"], to: "b" }] },
          { stepId: "b" },
        ],
      }),
    );

    simulation.start();

    expect(simulation.statuses()).toEqual({ a: "FAILED", b: "PENDING" });
  });

  test("that is false on the only step completes the instance without output", () => {
    const simulation = simulate(define({ steps: [{ stepId: "a", condition: "false" }] }));

    simulation.start();

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: null });
  });
});

describe("values that fail when a step is entered", () => {
  test.each([
    ["its input", { input: { a: "${ parseJson('oops') }" } }],
    ["its timeout", { timeout: "${ input.nothing }" }],
    ["a timeout that is no duration", { timeout: "${ input.word }" }],
    ["its totalTimeout", { totalTimeout: "${ input.word }" }],
    ["its scheduleTimeout", { scheduleTimeout: "${ input.word }" }],
    ["its heartbeatTimeout", { heartbeatTimeout: "${ input.word }" }],
    ["a pattern", { type: "EVENT_WAIT", eventPattern: "${ input.nothing }" }],
    ["a lookback", { type: "EVENT_WAIT", eventPattern: "go", lookback: "${ input.word }" }],
    [
      "an eventTimeout",
      { type: "EVENT_WAIT", eventPattern: "go", eventTimeout: { duration: "${ input.word }" } },
    ],
    ["a delay", { type: "DELAY", duration: "${ input.word }" }],
    ["a time", { type: "DELAY", until: "${ input.word }" }],
    ["a variable", { type: "SET", variables: { a: "${ parseJson('oops') }" } }],
    [
      "an END's output",
      { type: "END", outcome: "COMPLETED", output: { a: "${ parseJson('oops') }" } },
    ],
  ])(
    "%s: the step is FAILED with an EXPRESSION error, and leaves nothing else behind",
    (_, fields) => {
      const simulation = simulate(define({ steps: [{ stepId: "a", ...fields }] }), {
        word: "soon",
      });

      simulation.start();

      expect(simulation.snapshot).toMatchObject({
        status: "FAILED",
        error: { kind: "EXPRESSION", stepId: "a" },
        completions: 0,
      });
      expect(simulation.statuses()).toEqual({ a: "FAILED" });
    },
  );

  test("an expression error is never retried", () => {
    const simulation = simulate(
      define({
        steps: [{ stepId: "a", retry: { maxAttempts: 5 }, input: { a: "${ parseJson('oops') }" } }],
      }),
    );

    expect(simulation.start().commands).toEqual([{ kind: "settle" }]);
  });
});

describe("input of a task", () => {
  test.each([
    ["none: the instance's", {}, undefined],
    ["one expression", { input: "input.n + 1" }, 8],
    ["an expression without a value is null", { input: "input.missing" }, null],
    ["a key without a value is left out", { input: { a: "${ input.missing }", b: 1 } }, { b: 1 }],
  ])("%s", (_, fields, expected) => {
    const simulation = simulate(define({ steps: [{ stepId: "a", ...fields }] }), { n: 7 });

    const { inserts } = simulation.start();

    expect(inserts[0]?.input).toEqual(expected);
  });
});

describe("SET and CHOICE", () => {
  test("take effect at once, in order, and cost no job", () => {
    const simulation = simulate(
      define({
        variables: { n: 1, kept: "as it was" },
        steps: [
          {
            stepId: "double",
            type: "SET",
            variables: { n: "${ variables.n * 2 }", kept: "${ input.missing }" },
            transitions: { default: "choose" },
          },
          {
            stepId: "choose",
            type: "CHOICE",
            choices: [{ when: "variables.n === 2", to: "two" }],
            default: "other",
          },
          { stepId: "two" },
          { stepId: "other" },
        ],
      }),
    );

    simulation.start();

    expect(simulation.snapshot.variables).toEqual({ n: 2, kept: "as it was" });
    expect(simulation.statuses()).toEqual({
      double: "COMPLETED",
      choose: "COMPLETED",
      two: "PENDING",
    });
  });

  test("leave the instance's output to the last TASK or EVENT_WAIT", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", transitions: { default: "b" } },
          { stepId: "b", type: "SET", variables: { done: true } },
        ],
      }),
    );
    simulation.start();

    simulation.succeed("a", "of a");

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: "of a" });
  });
});

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
    expect(simulation.row("count")).toMatchObject({ iteration: 3, status: "FAILED" });
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

test("DELAY waits for its time, to the millisecond, however far it is", () => {
  const simulation = simulate(
    define({ steps: [{ stepId: "a", type: "DELAY", duration: "P400DT0.5S" }] }),
  );
  simulation.start();
  expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

  simulation.elapse("P400DT0.499S");
  expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

  simulation.elapse("PT0.001S");
  expect(simulation.snapshot.status).toBe("COMPLETED");
});

test("DELAY until a time that has passed is over at once", () => {
  const simulation = simulate(
    define({ steps: [{ stepId: "a", type: "DELAY", until: "${ input.at }" }] }),
    { at: "2020-01-01T00:00:00Z" },
  );
  simulation.start();

  simulation.elapse("PT0S");

  expect(simulation.snapshot.status).toBe("COMPLETED");
});
