import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { BOUNDS, MAX_PROBLEMS, parseDocument, STEP_TYPES, StepDocument } from "@millrace/contract";

const fixtures = new URL("../../../test/fixtures/definitions/", import.meta.url);

const task = { stepId: "a", type: "TASK", taskId: "noop" };
const of = (...steps: unknown[]) => ({ id: "w", steps });
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);

describe("whole documents", () => {
  test.each(
    readdirSync(fixtures).filter((name) => /^(order_processing|payment_wait|s2_)/.test(name)),
  )("%s parses and comes out unchanged", (name) => {
    const value: unknown = JSON.parse(readFileSync(new URL(name, fixtures), "utf8"));

    const { document, problems } = parseDocument(value);

    expect(problems).toBeUndefined();
    expect(document).toEqual(value);
  });

  test("every step type parses with every field that it has", () => {
    const common = {
      name: "n",
      description: "d",
      condition: "true",
      onError: [{ errors: ["*"], to: "z" }],
      retry: {
        maxAttempts: 3,
        initialInterval: "PT0S",
        backoffCoefficient: 1.5,
        maxInterval: "PT1M",
        jitter: "NONE",
        nonRetryableErrors: ["X"],
        onExhausted: "PAUSE",
      },
      timeout: "PT1M",
      totalTimeout: "PT1M",
      scheduleTimeout: "PT1M",
      heartbeatTimeout: "PT1M",
      maxIterations: 10,
    };
    const transitions = { conditions: [{ when: "true", to: "z" }], default: "z" };
    const steps = [
      { type: "TASK", taskId: "t", input: "workflow.input", queue: "q", priority: -5, transitions },
      {
        type: "EVENT_WAIT",
        eventPattern: "a.*",
        eventCondition: "true",
        eventTimeout: { duration: "PT1S" },
        eventPayloadMapping: { x: "a.b" },
        lookback: "instance",
        deliver: "ONE",
        transitions,
      },
      { type: "DELAY", duration: "PT1S", calendarId: "office", transitions },
      { type: "CHOICE", choices: [{ when: "true", to: "z" }], default: "z" },
      { type: "SET", variables: { x: { $literal: "${no}" } }, transitions },
      {
        type: "PARALLEL",
        branches: [{ name: "one", steps: [{ ...task, stepId: "p1" }] }],
        join: { count: 1 },
        onBranchError: "CONTINUE",
        transitions,
      },
      {
        type: "MAP",
        items: "${ input.items }",
        itemName: "order",
        steps: [{ ...task, stepId: "m1" }],
        maxConcurrency: 5,
        tolerate: 1,
        transitions,
      },
      {
        type: "SUB_WORKFLOW",
        workflowId: "w",
        version: 2,
        input: null,
        detached: true,
        transitions,
      },
      { type: "EMIT_EVENT", eventPattern: "a.b", payload: null, transitions },
      { type: "END", outcome: "FAILED", output: 1, error: { type: "X" }, reason: "r" },
    ].map((step, index) => ({ stepId: `s${index}`, ...common, ...step }));

    const { document, problems } = parseDocument(of(...steps));

    expect(problems).toBeUndefined();
    expect(document?.steps).toEqual(steps);
    expect(steps.map(({ type }) => type)).toEqual(STEP_TYPES);
    expect([...StepDocument.options].map(({ shape }) => shape.type.value)).toEqual(STEP_TYPES);
  });

  test("a chain of 20,000 steps parses", () => {
    const steps = Array.from({ length: BOUNDS.steps }, (_, index) => ({
      ...task,
      stepId: `s${index}`,
    }));

    expect(parseDocument(of(...steps)).problems).toBeUndefined();
  });
});

/** Name, document, and every problem that it must have: code, then JSON pointer. */
const BROKEN: [string, unknown, ...[code: string, path: string][]][] = [
  ["not an object", [], ["WRONG_TYPE", ""]],
  ["null", null, ["WRONG_TYPE", ""]],
  ["nothing at all", undefined, ["NOT_JSON", ""], ["MISSING_FIELD", ""]],
  ["empty", {}, ["MISSING_FIELD", "/id"], ["MISSING_FIELD", "/steps"]],
  ["bad id", { id: "1st", steps: [task] }, ["BAD_FORMAT", "/id"]],
  ["id too long", { id: "a".repeat(129), steps: [task] }, ["BAD_FORMAT", "/id"]],
  ["id of another type", { id: 7, steps: [task] }, ["WRONG_TYPE", "/id"]],
  ["no steps", of(), ["TOO_SHORT", "/steps"]],
  ["steps as an object", { id: "w", steps: {} }, ["WRONG_TYPE", "/steps"]],
  ["unknown field", { ...of(task), stpes: [] }, ["UNKNOWN_FIELD", "/stpes"]],
  [
    "two unknown fields, one to be escaped",
    { ...of(task), "a/b": 1, "c~d": 2 },
    ["UNKNOWN_FIELD", "/a~1b"],
    ["UNKNOWN_FIELD", "/c~0d"],
  ],
  ["variables as a list", { ...of(task), variables: [] }, ["WRONG_TYPE", "/variables"]],
  ["inputSchema as text", { ...of(task), inputSchema: "x" }, ["BAD_VALUE", "/inputSchema"]],
  ["timeout as a number", { ...of(task), timeout: 30 }, ["WRONG_TYPE", "/timeout"]],
  ["priority out of range", { ...of(task), priority: 1001 }, ["OUT_OF_RANGE", "/priority"]],
  ["priority not whole", { ...of(task), priority: 1.5 }, ["WRONG_TYPE", "/priority"]],
  ["tag too long", { ...of(task), tags: ["x".repeat(201)] }, ["TOO_LONG", "/tags/0"]],
  [
    "more concurrency, and a later version, than there can be",
    {
      steps: [{ stepId: "a", type: "SUB_WORKFLOW", workflowId: "b", version: 2_147_483_648 }],
      id: "w",
      concurrency: { limit: 2_147_483_648, maxQueued: 2_147_483_648 },
    },
    ["OUT_OF_RANGE", "/steps/0/version"],
    ["OUT_OF_RANGE", "/concurrency/limit"],
    ["OUT_OF_RANGE", "/concurrency/maxQueued"],
  ],
  [
    "no concurrency",
    { ...of(task), concurrency: { limit: 0 } },
    ["OUT_OF_RANGE", "/concurrency/limit"],
  ],
  [
    "a queue of no kind and bounds below nothing",
    { ...of(task), concurrency: { limit: 1.5, queue: "LIFO", maxQueued: -1 } },
    ["WRONG_TYPE", "/concurrency/limit"],
    ["BAD_VALUE", "/concurrency/queue"],
    ["OUT_OF_RANGE", "/concurrency/maxQueued"],
  ],
  ["step that is no object", of(5), ["WRONG_TYPE", "/steps/0"]],
  ["step without a type", of({ stepId: "a" }), ["MISSING_FIELD", "/steps/0/type"]],
  ["unknown step type", of({ ...task, type: "TASKS" }), ["UNKNOWN_STEP_TYPE", "/steps/0/type"]],
  ["step type of another type", of({ ...task, type: 1 }), ["UNKNOWN_STEP_TYPE", "/steps/0/type"]],
  ["step without an id", of({ type: "TASK", taskId: "t" }), ["MISSING_FIELD", "/steps/0/stepId"]],
  ["bad step id", of({ ...task, stepId: "a b" }), ["BAD_FORMAT", "/steps/0/stepId"]],
  ["task without a task", of({ stepId: "a", type: "TASK" }), ["MISSING_FIELD", "/steps/0/taskId"]],
  [
    "only the chosen type's faults",
    of({ stepId: "a", type: "TASK", taskID: "t" }),
    ["MISSING_FIELD", "/steps/0/taskId"],
    ["UNKNOWN_FIELD", "/steps/0/taskID"],
  ],
  [
    "another type's field",
    of({ ...task, eventPattern: "a.b" }),
    ["UNKNOWN_FIELD", "/steps/0/eventPattern"],
  ],
  ["empty condition", of({ ...task, condition: "" }), ["TOO_SHORT", "/steps/0/condition"]],
  [
    "condition as a boolean",
    of({ ...task, condition: true }),
    ["WRONG_TYPE", "/steps/0/condition"],
  ],
  [
    "expression too long",
    of({ ...task, condition: "x".repeat(10_001) }),
    ["TOO_LONG", "/steps/0/condition"],
  ],
  ["transition as text", of({ ...task, transitions: "b" }), ["WRONG_TYPE", "/steps/0/transitions"]],
  [
    "condition of a transition without a target",
    of({ ...task, transitions: { conditions: [{ when: "true" }] } }),
    ["MISSING_FIELD", "/steps/0/transitions/conditions/0/to"],
  ],
  [
    "handler of no errors",
    of({ ...task, onError: [{ errors: [], to: "b" }] }),
    ["TOO_SHORT", "/steps/0/onError/0/errors"],
  ],
  [
    "retry with several faults",
    of({ ...task, retry: { maxAttempts: 0, backoffCoefficient: 0.5, jitter: "full", delay: 1 } }),
    ["OUT_OF_RANGE", "/steps/0/retry/maxAttempts"],
    ["OUT_OF_RANGE", "/steps/0/retry/backoffCoefficient"],
    ["BAD_VALUE", "/steps/0/retry/jitter"],
    ["UNKNOWN_FIELD", "/steps/0/retry/delay"],
  ],
  [
    "wait for nothing",
    of({ stepId: "a", type: "EVENT_WAIT" }),
    ["MISSING_FIELD", "/steps/0/eventPattern"],
  ],
  [
    "timeout without a duration",
    of({ stepId: "a", type: "EVENT_WAIT", eventPattern: "x", eventTimeout: {} }),
    ["MISSING_FIELD", "/steps/0/eventTimeout/duration"],
  ],
  [
    "mapping to a number, and from no name",
    of({
      stepId: "a",
      type: "EVENT_WAIT",
      eventPattern: "x",
      eventPayloadMapping: { a: 1, "": "b" },
    }),
    ["WRONG_TYPE", "/steps/0/eventPayloadMapping/a"],
    ["BAD_VALUE", "/steps/0/eventPayloadMapping/"],
  ],
  ["delay of nothing", of({ stepId: "a", type: "DELAY" }), ["BAD_VALUE", "/steps/0"]],
  [
    "delay of both, and a field too many",
    of({ stepId: "a", type: "DELAY", duration: "PT1S", until: "x", for: 1 }),
    ["UNKNOWN_FIELD", "/steps/0/for"],
    ["BAD_VALUE", "/steps/0"],
  ],
  [
    "choice of nothing",
    of({ stepId: "a", type: "CHOICE", choices: [] }),
    ["TOO_SHORT", "/steps/0/choices"],
  ],
  ["set of nothing", of({ stepId: "a", type: "SET" }), ["MISSING_FIELD", "/steps/0/variables"]],
  [
    "end without an outcome",
    of({ stepId: "a", type: "END" }),
    ["MISSING_FIELD", "/steps/0/outcome"],
  ],
  [
    "end of an unknown outcome",
    of({ stepId: "a", type: "END", outcome: "DONE" }),
    ["BAD_VALUE", "/steps/0/outcome"],
  ],
  [
    "event without a payload",
    of({ stepId: "a", type: "EMIT_EVENT", eventPattern: "x" }),
    ["MISSING_FIELD", "/steps/0/payload"],
  ],
  [
    "faults deep in branches",
    of({
      stepId: "p",
      type: "PARALLEL",
      join: "SOME",
      branches: [
        {
          name: "one",
          steps: [{ stepId: "m", type: "MAP", items: 3, steps: [{ ...task, taskId: 1 }] }],
        },
      ],
    }),
    ["BAD_VALUE", "/steps/0/branches/0/steps/0/items"],
    ["WRONG_TYPE", "/steps/0/branches/0/steps/0/steps/0/taskId"],
    ["BAD_VALUE", "/steps/0/join"],
  ],
  [
    "compensation of another type than TASK",
    {
      ...of(task),
      compensationSteps: [{ stepId: "c", compensationFor: "a", type: "DELAY", taskId: "t" }],
    },
    ["BAD_VALUE", "/compensationSteps/0/type"],
  ],
  [
    "compensation for nothing",
    { ...of(task), compensationSteps: [{ stepId: "c", type: "TASK", taskId: "t" }] },
    ["MISSING_FIELD", "/compensationSteps/0/compensationFor"],
  ],
  [
    "cancellation without a reason",
    { ...of(task), cancellationTriggers: [{ eventPattern: "x" }] },
    ["MISSING_FIELD", "/cancellationTriggers/0/reason"],
  ],
  [
    "start trigger without a pattern",
    { ...of(task), startTriggers: [{}] },
    ["MISSING_FIELD", "/startTriggers/0/eventPattern"],
  ],
  ["too deep", { ...of(task), output: nested(64) }, ["TOO_DEEP", `/output${"/0".repeat(63)}`]],
  ["U+0000", { ...of(task), name: "a\0b" }, ["BAD_CHARACTER", "/name"]],
  [
    "a lone surrogate in a key",
    { ...of(task), variables: { "\ud800": 1 } },
    ["BAD_CHARACTER", "/variables/\ud800"],
  ],
  [
    "__proto__ as a key",
    { ...of(task), output: JSON.parse('{ "__proto__": { "a": 1 } }') as unknown },
    ["BAD_VALUE", "/output/__proto__"],
  ],
  [
    "values that are not JSON, beside other faults",
    { id: "1", steps: [{ ...task, input: { at: new Date(0), n: Number.NaN, f: [undefined] } }] },
    ["NOT_JSON", "/steps/0/input/at"],
    ["NOT_JSON", "/steps/0/input/n"],
    ["NOT_JSON", "/steps/0/input/f/0"],
    ["BAD_FORMAT", "/id"],
  ],
];

describe("broken documents", () => {
  test.each(BROKEN)("%s: every fault has its code and place", (_, value, ...expected) => {
    const { problems = [] } = parseDocument(value);

    expect(problems.map(({ code, path }) => [code, path])).toEqual(expected);
  });

  test.each([
    [
      { ...of(task), stpes: 1 },
      'a workflow definition has no field "stpes"; did you mean "steps"?',
    ],
    [
      of({ ...task, type: "EVENTWAIT" }),
      /^there is no step type "EVENTWAIT"; did you mean "EVENT_WAIT"\?/,
    ],
    [
      of({ ...task, retry: { jitter: "full" } }),
      '"full" is not one of "FULL", "NONE"; did you mean "FULL"?',
    ],
    [
      of({ ...task, transitions: { to: "b" } }),
      'transitions has no field "to"; known: conditions, default',
    ],
    [of({ ...task, timeout: 30 }), "expected a string, got the number 30"],
    [{ id: "w" }, '"steps" is missing'],
    [of(), "must not be empty"],
  ])("messages say what is wrong and what is right: %#", (value, message) => {
    expect(parseDocument(value).problems?.[0]?.message).toMatch(message);
  });

  test("of very many problems the first are listed, and how many more there are", () => {
    const steps = Array.from({ length: MAX_PROBLEMS + 500 }, () => ({
      type: "TASK",
      taskId: "t",
      stepId: "",
    }));

    const { problems = [] } = parseDocument(of(...steps));

    expect(problems).toHaveLength(MAX_PROBLEMS);
    expect(problems.at(-1)).toEqual({
      path: "",
      code: "TOO_MANY_PROBLEMS",
      message: "and 501 more problems",
    });
  });

  test.each([
    ["a list of half a million numbers", { steps: Array(500_000).fill(5) }],
    [
      "130,000 unknown fields",
      Object.fromEntries(Array.from({ length: 130_000 }, (_, i) => [`a${i}`, 1])),
    ],
    [
      "150,000 bad members",
      {
        steps: [
          {
            stepId: "a",
            type: "EVENT_WAIT",
            eventPattern: "x",
            eventPayloadMapping: Object.fromEntries(
              Array.from({ length: 150_000 }, (_, i) => [i, 1]),
            ),
          },
        ],
      },
    ],
    ["half a million bad characters", { output: Array(500_000).fill("\0") }],
  ])("%s: a bounded number of problems, and no crash", (_, fields) => {
    const { problems = [] } = parseDocument({ ...of(task), ...fields });

    expect(problems.length).toBeGreaterThan(0);
    expect(problems.length).toBeLessThanOrEqual(MAX_PROBLEMS);
  });

  test("a large list as a value is no problem", () => {
    expect(parseDocument({ ...of(task), output: Array(500_000).fill(1) }).problems).toBeUndefined();
  });

  test("nesting that would exhaust the stack is a problem, not a crash", () => {
    const value: unknown = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);

    expect(parseDocument({ ...of(task), output: value }).problems?.[0]?.code).toBe("TOO_DEEP");
  });
});
