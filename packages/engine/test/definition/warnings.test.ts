import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { validateDefinition } from "../../src/definition/validate.ts";

const fixtures = new URL("../../../../test/fixtures/definitions/", import.meta.url);

function load(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, fixtures), "utf8"));
}

describe("a warning", () => {
  const task = (stepId: string, next?: string, more: object = {}) => ({
    stepId,
    type: "TASK",
    taskId: "noop",
    ...(next !== undefined && { transitions: { default: next } }),
    ...more,
  });
  const wait = (more: object = {}) => ({
    stepId: "w",
    type: "EVENT_WAIT",
    eventPattern: "order.paid",
    eventTimeout: { duration: "P1D" },
    ...more,
  });
  const toSelf = (...conditions: readonly string[]) => ({
    transitions: { conditions: conditions.map((when) => ({ when, to: "b" })), default: "b" },
  });
  const toThree = (first: string, second: string) => ({
    transitions: {
      conditions: [
        { when: first, to: "b" },
        { when: second, to: "c" },
      ],
      default: "b",
    },
  });
  const anyErrors = (...names: readonly string[]) => ({
    onError: names.map((name) => ({ errors: [name], to: "b" })),
  });

  const race = (more: object) => ({
    stepId: "p",
    type: "PARALLEL",
    branches: [
      { name: "one", steps: [task("x")] },
      { name: "two", steps: [task("y")] },
    ],
    transitions: { default: "use" },
    ...more,
  });

  type Case = readonly [
    what: string,
    steps: readonly object[],
    path: string,
    code: string,
    more?: Readonly<Record<string, unknown>>,
  ];
  const cases: readonly Case[] = [
    ["a wait without end", [wait({ eventTimeout: undefined })], "/steps/0", "WAIT_WITHOUT_TIMEOUT"],
    [
      "a wait without end beside a loop that only the wait ends",
      [
        {
          stepId: "p",
          type: "PARALLEL",
          join: "ANY",
          branches: [
            { name: "x", steps: [wait({ eventTimeout: undefined })] },
            {
              name: "y",
              steps: [
                { stepId: "d", type: "DELAY", duration: "P1D", transitions: { default: "d" } },
              ],
            },
          ],
        },
      ],
      "/steps/0/branches/0/steps/0",
      "WAIT_WITHOUT_TIMEOUT",
    ],
    [
      "a loop that its conditions do not leave, and a branch beside it may end",
      [
        {
          stepId: "p",
          type: "PARALLEL",
          join: "ANY",
          branches: [
            {
              name: "x",
              steps: [
                task("a", undefined, {
                  transitions: { conditions: [{ when: "input.x", to: "b" }], default: "c" },
                }),
                task("b", "a"),
                task("c", "a"),
              ],
            },
            { name: "y", steps: [wait()] },
          ],
        },
      ],
      "/steps/0/branches/0/steps/0",
      "ENDLESS_CYCLE",
    ],
    [
      "a default behind a condition that is always true",
      [task("a", undefined, toSelf("1 < 2")), task("b")],
      "/steps/0/transitions/default",
      "NEVER_TAKEN",
    ],
    [
      "the default of a choice behind one that is always true",
      [
        { stepId: "a", type: "CHOICE", choices: [{ when: "true", to: "b" }], default: "c" },
        task("b"),
        task("c"),
      ],
      "/steps/0/default",
      "NEVER_TAKEN",
    ],
    [
      "a status that no step has",
      [task("a", "b"), task("b", undefined, { condition: "steps.a.status === 'DONE'" })],
      "/steps/1/condition",
      "NEVER_EQUAL",
    ],
    [
      "a status that no instance has",
      [task("a", undefined, { condition: "workflow.instance.status !== 'DONE'" })],
      "/steps/0/condition",
      "NEVER_EQUAL",
    ],
    [
      "an item that the list does not hold",
      [
        {
          stepId: "m",
          type: "MAP",
          items: "[1, 2]",
          steps: [task("a", undefined, { condition: "item === 9" })],
        },
      ],
      "/steps/0/steps/0/condition",
      "NEVER_EQUAL",
    ],
    [
      "a list that is compared with whatever",
      [task("a", undefined, { condition: "input.last === input.tags" })],
      "/steps/0/condition",
      "NEVER_EQUAL",
      {
        inputSchema: {
          type: "object",
          properties: { tags: { type: "array" } },
          required: ["tags"],
        },
      },
    ],
    [
      "a value that is not of the enum",
      [task("a", undefined, { condition: "input.kind === 'expres'" })],
      "/steps/0/condition",
      "NEVER_EQUAL",
      { inputSchema: { properties: { kind: { enum: ["standard", "express"] } } } },
    ],
    [
      "a condition behind one that is always true",
      [
        task("a", undefined, {
          transitions: {
            conditions: [
              { when: "true", to: "b" },
              { when: "input.x", to: "b" },
            ],
          },
        }),
        task("b"),
      ],
      "/steps/0/transitions/conditions/1/when",
      "NEVER_TAKEN",
    ],
    [
      "a condition that is always false",
      [task("a", undefined, toSelf("1 > 2")), task("b")],
      "/steps/0/transitions/conditions/0/when",
      "NEVER_TAKEN",
    ],
    [
      "a condition that is there already",
      [task("a", undefined, toSelf("input.x", "input.y", " input.x ")), task("b")],
      "/steps/0/transitions/conditions/2/when",
      "NEVER_TAKEN",
    ],
    [
      "a handler behind one for every error",
      [task("a", undefined, anyErrors("*", "TIMEOUT")), task("b")],
      "/steps/0/onError/1/errors/0",
      "NEVER_TAKEN",
    ],
    [
      "a handler for an error that another takes",
      [task("a", undefined, anyErrors("TIMEOUT", "Declined", "TIMEOUT")), task("b")],
      "/steps/0/onError/2/errors/0",
      "NEVER_TAKEN",
    ],
    [
      "an expression that reads nothing and fails",
      [{ stepId: "set", type: "SET", variables: { a: "${ 1 / 0 }" } }],
      "/steps/0/variables/a",
      "ALWAYS_FAILS",
    ],
    [
      "one that fails inside a value",
      [{ stepId: "set", type: "SET", variables: { a: { b: [1, "${ lower(5) }"] } } }],
      "/steps/0/variables/a/b/1",
      "ALWAYS_FAILS",
    ],
    [
      "a part of a text that fails, beside others",
      [{ stepId: "set", type: "SET", variables: { a: "a ${ parseJson('oops') } ${ input.x }" } }],
      "/steps/0/variables/a",
      "ALWAYS_FAILS",
    ],
    [
      "a value that fails, beside others that read something",
      [{ stepId: "set", type: "SET", variables: { a: { b: "${ input.x }", c: "${ 1 / 0 }" } } }],
      "/steps/0/variables/a/c",
      "ALWAYS_FAILS",
    ],
    [
      "a condition of which one part always fails",
      [
        task("a", undefined, {
          transitions: { conditions: [{ when: "parseJson('oops') === input.x", to: "b" }] },
        }),
        task("b"),
      ],
      "/steps/0/transitions/conditions/0/when",
      "ALWAYS_FAILS",
    ],
    [
      "a condition that another one before it implies",
      [
        task("a", undefined, toThree("input.n > 10", "input.n > 100 && input.x")),
        task("b"),
        task("c"),
      ],
      "/steps/0/transitions/conditions/1/when",
      "NEVER_TAKEN",
    ],
    [
      "a text that a wider condition has taken",
      [
        task("a", undefined, toThree("input.s === 'x' || input.s === 'y'", "'y' === input.s")),
        task("b"),
        task("c"),
      ],
      "/steps/0/transitions/conditions/1/when",
      "NEVER_TAKEN",
    ],
    [
      "a condition that contradicts itself",
      [task("a", undefined, toSelf("input.n > 10 && input.n < 5")), task("b")],
      "/steps/0/transitions/conditions/0/when",
      "NEVER_TAKEN",
    ],
    [
      "a choice that is no number and one",
      [
        {
          stepId: "a",
          type: "CHOICE",
          choices: [{ when: "!input.x && input.x === 'a'", to: "b" }],
          default: "b",
        },
        task("b"),
      ],
      "/steps/0/choices/0/when",
      "NEVER_TAKEN",
    ],
    [
      "two conditions that share their border",
      [task("a", undefined, toThree("input.n <= 100", "input.n >= 100")), task("b"), task("c")],
      "/steps/0/transitions/conditions/1/when",
      "OVERLAPPING",
    ],
    [
      "two choices that share a range",
      [
        task("a", undefined, toThree("input.n >= 0 && input.n < 10", "5 < input.n")),
        task("b"),
        task("c"),
      ],
      "/steps/0/transitions/conditions/1/when",
      "OVERLAPPING",
    ],
    [
      "the status of a step that comes later",
      [task("a", "b", { condition: "steps.b.status === 'COMPLETED'" }), task("b")],
      "/steps/0/condition",
      "NEVER_THERE",
    ],
    [
      "an output that a timeout leaves out",
      [
        wait({
          eventTimeout: { duration: "P1D", timeoutHandlerStepId: "late" },
          transitions: { default: "use" },
        }),
        task("late", "use"),
        task("use", undefined, { input: { paid: "${ steps.w.output.payload.amount }" } }),
      ],
      "/steps/2/input/paid",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output that an error leaves out",
      [
        task("a", "use", { onError: [{ errors: ["*"], to: "use" }] }),
        task("use", undefined, { input: "steps.a.output" }),
      ],
      "/steps/1/input",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output of only one of two ways",
      [
        task("start", undefined, {
          transitions: { conditions: [{ when: "steps.start.output.ok", to: "a" }], default: "use" },
        }),
        task("a", "use"),
        task("use", undefined, { input: { a: "id-${ steps.a.output.id }" } }),
      ],
      "/steps/2/input/a",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output of a step that may be skipped",
      [
        task("a", "use", { condition: "input.gift" }),
        task("use", undefined, { input: { a: "${ upper(steps.a.output.text) }" } }),
      ],
      "/steps/1/input/a",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output of the branch beside it",
      [
        {
          stepId: "p",
          type: "PARALLEL",
          branches: [
            { name: "x", steps: [task("a")] },
            { name: "y", steps: [task("b", undefined, { input: { a: "${ steps.a.output }" } })] },
          ],
        },
      ],
      "/steps/0/branches/1/steps/0/input/a",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output that one of the ways to the end does not have",
      [
        task("a", undefined, {
          transitions: { conditions: [{ when: "input.q", to: "b" }], default: "c" },
        }),
        task("b"),
        task("c"),
      ],
      "/output",
      "OUTPUT_MAY_BE_MISSING",
      { output: "${ steps.b.output }" },
    ],
    [
      "an output that an END does not have",
      [
        task("a", "b", { onError: [{ errors: ["*"], to: "e" }] }),
        task("b"),
        { stepId: "e", type: "END", outcome: "COMPLETED" },
      ],
      "/output/x",
      "OUTPUT_MAY_BE_MISSING",
      { output: { x: "${ steps.b.output.y }" } },
    ],
    [
      "an output of a branch that may lose",
      [race({ join: "ANY" }), task("use", undefined, { input: "steps.y.output" })],
      "/steps/1/input",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "the member of a branch that may lose",
      [race({ join: { count: 1 } }), task("use", undefined, { input: "steps.p.output.two" })],
      "/steps/1/input",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output of a branch that may fail",
      [
        race({ onBranchError: "CONTINUE" }),
        task("use", undefined, { input: { y: "${ steps.y.output.z }" } }),
      ],
      "/steps/1/input/y",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "the member of a branch that may fail, at the end",
      [race({ onBranchError: "CONTINUE", transitions: undefined })],
      "/output",
      "OUTPUT_MAY_BE_MISSING",
      { output: "${ steps.p.output.two.z }" },
    ],
    [
      "an output of a step that a branch may go past",
      [
        {
          stepId: "p",
          type: "PARALLEL",
          branches: [
            {
              name: "one",
              steps: [
                task("x", undefined, {
                  transitions: { conditions: [{ when: "input.q", to: "y" }] },
                }),
                task("y"),
              ],
            },
          ],
          transitions: { default: "use" },
        },
        task("use", undefined, { input: "steps.y.output" }),
      ],
      "/steps/1/input",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "an output of items that may fail",
      [
        {
          stepId: "m",
          type: "MAP",
          items: "[1]",
          tolerate: 1,
          steps: [task("i")],
          transitions: { default: "use" },
        },
        task("use", undefined, { input: "steps.i.output" }),
      ],
      "/steps/1/input",
      "OUTPUT_MAY_BE_MISSING",
    ],
    [
      "a default behind events that all lead on",
      [
        wait({
          eventPattern: undefined,
          events: [{ eventPattern: "order.paid", to: "b" }],
          transitions: { default: "c" },
        }),
        task("b"),
        task("c"),
      ],
      "/steps/0/transitions/default",
      "NEVER_TAKEN",
    ],
    [
      "a compensation step that would pause what has ended",
      [task("a")],
      "/compensationSteps/0/retry/onExhausted",
      "NO_EFFECT",
      {
        compensationSteps: [
          {
            stepId: "undo",
            compensationFor: "a",
            type: "TASK",
            taskId: "noop",
            retry: { onExhausted: "PAUSE" },
          },
        ],
      },
    ],
    [
      "an output that a compensation may be without",
      [task("a", "b"), task("b", "c"), task("c")],
      "/compensationSteps/0/input/c",
      "OUTPUT_MAY_BE_MISSING",
      {
        compensationSteps: [
          {
            stepId: "undo_b",
            compensationFor: "b",
            type: "TASK",
            taskId: "noop",
            input: { a: "${ steps.a.output }", b: "${ steps.b.output }", c: "${ steps.c.output }" },
          },
        ],
      },
    ],
    [
      "a loop that waits and is never left",
      [wait({ transitions: { default: "w" } })],
      "/steps/0",
      "ENDLESS_CYCLE",
    ],
    [
      "a step of a task that is undone elsewhere",
      [task("a", "b", { taskId: "charge" }), task("b", undefined, { taskId: "charge" })],
      "/steps/1",
      "UNCOMPENSATED",
      {
        compensationSteps: [
          { stepId: "undo", compensationFor: "a", type: "TASK", taskId: "refund" },
        ],
      },
    ],
    [
      "a task that nothing undoes, before a step that may fail",
      [task("a", "b", { taskId: "charge" }), task("b", "c", { taskId: "ship" }), task("c")],
      "/steps/1",
      "UNCOMPENSATED",
      {
        compensationSteps: [
          { stepId: "undo", compensationFor: "a", type: "TASK", taskId: "refund" },
        ],
      },
    ],
    [
      "a task that nothing undoes, beside another",
      [
        {
          stepId: "p",
          type: "PARALLEL",
          branches: [
            { name: "x", steps: [task("a", undefined, { taskId: "charge" })] },
            { name: "y", steps: [task("b", undefined, { taskId: "ship" })] },
          ],
        },
      ],
      "/steps/0/branches/1/steps/0",
      "UNCOMPENSATED",
      {
        compensationSteps: [
          { stepId: "undo", compensationFor: "a", type: "TASK", taskId: "refund" },
        ],
      },
    ],
    [
      "a clock on a step that takes no time",
      [{ stepId: "s", type: "SET", variables: { x: 1 }, timeout: "PT1S" }],
      "/steps/0/timeout",
      "NO_EFFECT",
    ],
    ["a retry of a wait", [wait({ retry: { maxAttempts: 2 } })], "/steps/0/retry", "NO_EFFECT"],
    [
      "a first interval above the longest one",
      [task("a", undefined, { retry: { initialInterval: "PT5M" } })],
      "/steps/0/retry/initialInterval",
      "INTERVAL_CAPPED",
    ],
    [
      "a timeout of no time",
      [task("a", undefined, { timeout: "PT0S" })],
      "/steps/0/timeout",
      "NO_TIME",
    ],
    [
      "a heartbeat of no time",
      [task("a", undefined, { heartbeatTimeout: "PT0S" })],
      "/steps/0/heartbeatTimeout",
      "NO_TIME",
    ],
    [
      "the output of an END that fails",
      [{ stepId: "e", type: "END", outcome: "FAILED", output: 1 }],
      "/steps/0/output",
      "NO_EFFECT",
    ],
    [
      "the error of an END that completes",
      [{ stepId: "e", type: "END", outcome: "COMPLETED", error: "no" }],
      "/steps/0/error",
      "NO_EFFECT",
    ],
    [
      "a bare path among the initial variables",
      [task("a")],
      "/variables/x",
      "NOT_EVALUATED",
      { variables: { x: ["workflow.input.q"] } },
    ],
    [
      "an expression among the initial variables",
      [task("a")],
      "/variables/x",
      "NOT_EVALUATED",
      { variables: { x: "${ input.x }" } },
    ],
    [
      "a bare path as the id of what an event starts",
      [task("a")],
      "/startTriggers/0/correlationId",
      "NOT_EVALUATED",
      { startTriggers: [{ eventPattern: "x", correlationId: "event.payload.id" }] },
    ],
  ];

  for (const [what, steps, path, code, more] of cases) {
    test(`is given for ${what}`, () => {
      const { problems, warnings } = validateDefinition({ id: "doubtful", steps, ...more });

      expect(problems).toBeUndefined();
      expect(warnings).toEqual([{ path, code, message: expect.any(String) }]);
    });
  }

  test("is not given for the acceptance documents", () => {
    for (const name of ["order_processing.json", "payment_wait.json"]) {
      expect(validateDefinition(load(name)).warnings).toEqual([]);
    }
  });

  test("is not given for what a step may read that is skipped past what it asks of types", () => {
    const steps = [
      task("a", undefined, {
        condition: "input.go",
        transitions: {
          conditions: [{ when: "type(input.x) !== 'array'", to: "b" }],
          default: "c",
        },
      }),
      task("b"),
      task("c", undefined, { input: { x: "${ upper(input.x) }" } }),
    ];

    expect(validateDefinition({ id: "skipped", steps })).toMatchObject({
      warnings: [],
      document: {},
    });
    const [{ condition: _, ...asked } = {}, ...rest] = steps as Record<string, unknown>[];
    const { problems } = validateDefinition({ id: "asked", steps: [asked, ...rest] });
    expect(problems).toMatchObject([{ path: "/steps/2/input/x", code: "TYPE_MISMATCH" }]);
  });

  test("is not given for what has its place", () => {
    const steps = [
      task("a", "b", { retry: { initialInterval: "PT5M", maxInterval: "PT1H" } }),
      task("b", undefined, {
        condition: "steps.a.status === 'COMPLETED'",
        transitions: {
          conditions: [
            { when: "steps.b.output.again", to: "a" },
            { when: "steps.b.output.more", to: "b" },
          ],
        },
        input: { last: "${ steps.b.output }" },
      }),
    ];

    expect(validateDefinition({ id: "fine", steps }).warnings).toEqual([]);
  });
});
