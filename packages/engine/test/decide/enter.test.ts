import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";

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
      "a lookback to lifecycle events",
      {
        type: "EVENT_WAIT",
        eventPattern: "${ 'workflow.' + (input.word ? 'failed' : '*') }",
        lookback: "PT1H",
      },
    ],
    [
      "an eventTimeout",
      { type: "EVENT_WAIT", eventPattern: "go", eventTimeout: { duration: "${ input.word }" } },
    ],
    ["a delay", { type: "DELAY", duration: "${ input.word }" }],
    ["a time", { type: "DELAY", until: "${ input.word }" }],
    ["a taskId", { taskId: "${ input.word + '\\n' }" }],
    ["a taskId that is no text", { taskId: "${ input }" }],
    ["a taskId that is not there", { taskId: "${ input.nothing }" }],
    ["a queue", { queue: "${ 'a queue ' + input.word }" }],
    ["a workflowId", { type: "SUB_WORKFLOW", workflowId: "${ input.word + '!' }" }],
    ["a workflowId that is no text", { type: "SUB_WORKFLOW", workflowId: "${ input }" }],
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
