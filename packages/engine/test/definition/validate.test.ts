import { readdirSync, readFileSync } from "node:fs";
import { PROBLEM_CODES } from "@millrace/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileDefinition } from "../../src/definition/compile.ts";
import { definitionCodes, definitionWarningCodes } from "../../src/definition/problem.ts";
import { validateDefinition } from "../../src/definition/validate.ts";

const fixtures = new URL("../../../../test/fixtures/definitions/", import.meta.url);

function load(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, fixtures), "utf8"));
}

function namesIn(folder: string): string[] {
  return readdirSync(new URL(folder, fixtures)).filter((name) => name.endsWith(".json"));
}

interface Broken {
  readonly problems: readonly { readonly path: string; readonly code: string }[];
  readonly document: unknown;
}

describe("a definition that is sound", () => {
  test.each([...namesIn("."), ...namesIn("good/").map((name) => `good/${name}`)])(
    "%s is accepted without a warning, and compiles",
    (name) => {
      const { document, problems, warnings } = validateDefinition(load(name));

      expect(problems).toBeUndefined();
      expect(warnings).toEqual([]);
      expect(document && compileDefinition(document, 1).size).toBeGreaterThan(0);
    },
  );
});

describe("a definition that is broken", () => {
  test.each(namesIn("broken/"))("%s is refused with exactly its problems, in order", (name) => {
    const { problems: expected, document } = load(`broken/${name}`) as Broken;

    const { problems = [] } = validateDefinition(document);

    expect(problems.map(({ path, code }) => ({ path, code }))).toEqual(expected);
    for (const { message } of problems) expect(message.length).toBeGreaterThan(10);
  });

  test("is told what it should be where nothing is given", () => {
    const { problems } = validateDefinition(undefined);

    expect(problems).toEqual([
      { path: "", code: "MISSING_FIELD", message: expect.stringContaining('"id" and "steps"') },
    ]);
  });

  test("gives only codes that are listed", () => {
    const known = new Set<string>([...PROBLEM_CODES, ...Object.keys(definitionCodes)]);
    for (const name of namesIn("broken/")) {
      const { problems = [], warnings } = validateDefinition(
        (load(`broken/${name}`) as Broken).document,
      );
      for (const { code } of problems) expect(known).toContain(code);
      for (const { code } of warnings) expect(Object.keys(definitionWarningCodes)).toContain(code);
    }
  });
});

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
      "a loop that its conditions do not leave",
      [
        task("a", undefined, {
          transitions: { conditions: [{ when: "input.x", to: "b" }], default: "c" },
        }),
        task("b", "a"),
        task("c", "a"),
      ],
      "/steps/0",
      "ENDLESS_CYCLE",
    ],
    [
      "a condition behind one that is always true",
      [task("a", undefined, toSelf("true", "input.x")), task("b")],
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
      "an expression among the initial variables",
      [task("a")],
      "/variables/x",
      "NOT_EVALUATED",
      { variables: { x: "${ input.x }" } },
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

describe("a message about an unknown id", () => {
  const messageFor = (target: string): string | undefined =>
    validateDefinition({
      id: "slips",
      steps: [
        { stepId: "a", type: "TASK", taskId: "noop", transitions: { default: target } },
        { stepId: "ship_order", type: "TASK", taskId: "noop" },
      ],
    }).problems?.[0]?.message;

  test.each(["shp_order", "ship_ordr", "Ship_Order", "shiporder", "ship_orders"])(
    "suggests what %s is near to, and reports nothing that follows from it",
    (target) => {
      expect(messageFor(target)).toBe(
        `there is no step ${JSON.stringify(target)}; did you mean "ship_order"?`,
      );
    },
  );

  test("suggests nothing for what is near to nothing", () => {
    expect(messageFor("refund")).toBe('there is no step "refund"');
  });
});

describe("whatever is handed in", () => {
  const documents = [...namesIn("."), ...namesIn("good/").map((name) => `good/${name}`)].map(load);
  const pieces =
    "${ input.x }|${|steps|event.payload.x|workflow.input|ship_order||PT5S|P1M|2026-01-01|order.*|*";
  const types = "TASK|EVENT_WAIT|SET|END|CHOICE|DELAY|PARALLEL|COMPLETED|ALL";
  const texts = fc.constantFrom(...`${pieces}|${types}`.split("|"));
  const values = fc.oneof(texts, fc.jsonValue({ maxDepth: 2 }));

  /** A copy of the document in which the member that `choices` lead to is replaced, or taken out. */
  function mutate(node: unknown, choices: readonly number[], value: unknown): unknown {
    const [choice = 0, ...rest] = choices;
    if (typeof node !== "object" || node === null) return value;
    const entries = Object.entries(node);
    const chosen = entries[choice % Math.max(1, entries.length)];
    if (chosen === undefined) return value;
    const [key, member] = chosen;
    const isLast = rest.length === 0;
    const changed = isLast ? value : mutate(member, rest, value);
    const others = entries.flatMap((entry) =>
      entry[0] === key ? (isLast && value === undefined ? [] : [[key, changed] as const]) : [entry],
    );
    return Array.isArray(node) ? others.map(([, each]) => each) : Object.fromEntries(others);
  }

  test("is answered and not thrown at, and compiles if it has no problems", () => {
    const mutations = fc.array(
      fc.tuple(
        fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
        fc.option(values, { nil: undefined }),
      ),
      { minLength: 1, maxLength: 3 },
    );
    let accepted = 0;
    fc.assert(
      fc.property(fc.constantFrom(...documents), mutations, (original, changes) => {
        let mutant = original;
        for (const [path, value] of changes) mutant = mutate(mutant, path, value);

        const { document, problems } = validateDefinition(mutant);

        if (document === undefined) return problems.length > 0;
        accepted += 1;
        // Those inside a PARALLEL or MAP are steps too.
        return compileDefinition(document, 1).steps.size >= document.steps.length;
      }),
      { numRuns: 1_000 },
    );
    expect(accepted).toBeGreaterThan(50);
  }, 60_000);

  test("is answered if it is any value at all", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(validateDefinition(value).problems?.length).toBeGreaterThan(0);
      }),
    );
  });
});

describe("ten thousand steps", () => {
  const size = 10_000;
  const chain = (more: (index: number) => object) => ({
    id: "long",
    steps: Array.from({ length: size }, (_, index) => ({
      stepId: `s${index}`,
      type: "TASK",
      taskId: "noop",
      ...(index + 1 < size && { transitions: { default: `s${index + 1}` } }),
      ...more(index),
    })),
  });
  const last = `s${size - 1}`;

  // Generous; anything quadratic takes far longer.
  const limitMs = 4_000;

  /** Of this process alone: the machine may be busy with others. */
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };

  test.each([
    ["in a row", () => ({})],
    [
      "each with a handler",
      (index: number) => (index === size - 1 ? {} : { onError: [{ errors: ["*"], to: last }] }),
    ],
    ["each skippable", () => ({ condition: "input.on" })],
  ])("%s are checked and compiled in little time", (_how, more) => {
    const started = cpuMs();

    const { document } = validateDefinition(chain(more));
    expect(document && compileDefinition(document, 1).size).toBe(size);

    expect(cpuMs() - started).toBeLessThan(limitMs);
  });

  test("with a problem each give the first thousand and the number of the others", () => {
    const started = cpuMs();

    const { problems } = validateDefinition(
      chain((index) => ({ onError: [{ errors: ["*"], to: `ghost${index}` }] })),
    );

    expect(problems).toHaveLength(1_000);
    expect(problems?.find(({ code }) => code === "TOO_MANY_PROBLEMS")?.message).toBe(
      "and 9001 more problems",
    );
    expect(cpuMs() - started).toBeLessThan(limitMs);
  });
});
