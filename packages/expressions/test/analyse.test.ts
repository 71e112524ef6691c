import fc from "fast-check";
import { expect, test } from "vitest";
import { ExpressionSyntaxError, mergeReads, parseExpression } from "../src/index.ts";
import type { Reads, Scope } from "../src/index.ts";
import { allRoots, thrownBy } from "./scope.ts";

const nothing = {
  roots: [],
  steps: [],
  stepOutputs: [],
  stepProgress: false,
  input: false,
  variables: false,
  instance: false,
  instanceFields: [],
  event: false,
  item: false,
  now: false,
};

test.each([
  ["1 + 2", {}],
  ["input.a", { roots: ["input"], input: true }],
  ["variables.a.b", { roots: ["variables"], variables: true }],
  ["workflow.input.a", { roots: ["workflow"], input: true }],
  ["workflow['variables'].a", { roots: ["workflow"], variables: true }],
  ["event.payload.a === input.b", { roots: ["event", "input"], event: true, input: true }],
  ["item.a + index", { roots: ["index", "item"], item: true }],
  ["now() > input.at", { roots: ["input"], input: true, now: true }],
  ["dateAdd(now(), 1, 'days')", { now: true }],
  ["workflow.instance.status", { roots: ["workflow"], instance: true, instanceFields: ["status"] }],
  [
    "workflow.instance.input.a",
    { roots: ["workflow"], instance: true, instanceFields: ["input"], input: true },
  ],
  [
    "workflow.instance.state.input.a",
    { roots: ["workflow"], instance: true, instanceFields: ["state"], input: true },
  ],
  [
    "workflow.instance.state.variables[input.a]",
    {
      roots: ["input", "workflow"],
      instance: true,
      instanceFields: ["state"],
      variables: true,
      input: true,
    },
  ],
])("what is read is known: %s", (source, reads) => {
  expect(readsOf(source)).toEqual({ ...nothing, ...reads });
});

test.each([
  ["steps.a.status", ["a"], []],
  ["steps.a.error.message", ["a"], []],
  ["steps.a.output", ["a"], ["a"]],
  ["steps.a.output.x[input.i]", ["a"], ["a"]],
  ["steps.a", ["a"], ["a"]],
  ["steps.a[input.field]", ["a"], ["a"]],
  ["steps['my-step'].status", ["my-step"], []],
  ["steps[`my-step`].output", ["my-step"], ["my-step"]],
  ["steps[0].output", ["0"], ["0"]],
  ["steps?.a?.output", ["a"], ["a"]],
  ["(steps).a.status", ["a"], []],
  ["workflow.steps.a.output", ["a"], ["a"]],
  ["workflow['steps']['a']['status']", ["a"], []],
  ["workflow.instance.state.steps.a.output.x", ["a"], ["a"]],
  ["workflow?.instance['state'].steps.a.attempts", ["a"], []],
  ["(input.x ? steps : variables).a.status", ["a"], []],
  ["(input.x ? steps.a : steps.b).output", ["a", "b"], ["a", "b"]],
  ["(steps.a ?? steps.b).status", ["a", "b"], []],
  ["(steps || workflow.steps).c.output", ["c"], ["c"]],
  ["steps.a.status === 'COMPLETED' && steps.b.output > 1", ["a", "b"], ["b"]],
  ["{ x: steps.a.output }.x", ["a"], ["a"]],
  ["`${steps.a.output}`", ["a"], ["a"]],
  ["steps.a.output.includes(steps.b.output)", ["a", "b"], ["a", "b"]],
  ["steps", "ALL", []],
  ["workflow", "ALL", []],
  ["workflow.steps", "ALL", []],
  ["workflow.instance", "ALL", []],
  ["workflow.instance.state", "ALL", []],
  ["workflow.instance.state.steps", "ALL", []],
  ["size(steps)", "ALL", []],
  ["'a' in steps", "ALL", []],
  ["[steps]", "ALL", []],
  ["[steps][0].a", "ALL", []],
  ["{ ...workflow }", "ALL", []],
  ["{ steps }", "ALL", []],
  ["steps ? 1 : 2", "ALL", []],
  ["(input.x ? steps : variables)", "ALL", []],
  ["steps && steps.a.status", "ALL", []],
  ["coalesce(steps, input).a", "ALL", []],
  ["json(workflow.instance)", "ALL", []],
])("which steps are read is known by every way to them: %s", (source, steps, stepOutputs) => {
  expect(readsOf(source)).toMatchObject({ steps, stepOutputs });
});

test("taking workflow whole reads all of it", () => {
  expect(readsOf("json(workflow)")).toMatchObject({
    input: true,
    variables: true,
    instance: true,
    instanceFields: "ALL",
  });
});

test.each([
  "steps[input.x]",
  "steps[item]",
  "steps['a' + index]",
  "steps[`${item}`]",
  "steps?.[input.x]",
  "(steps)[input.x].output",
  "workflow.steps[input.x]",
  "workflow['steps'][input.x]",
  "workflow?.['steps']?.[input.x]",
  "workflow[`steps`][input.x]",
  "workflow[input.x]",
  "workflow[input.x][input.y]",
  "workflow.instance[input.x]",
  "workflow.instance.state[input.x]",
  "workflow.instance.state.steps[input.x]",
  "workflow.instance['state']['steps'][input.x]",
  "(input.x ? steps : variables)[input.x]",
  "(input.x ? variables : workflow.steps)[input.x]",
  "(steps || {})[input.x]",
  "(variables.a ?? steps)[input.x]",
  "(steps && workflow.steps)[input.x]",
  "[steps][0][input.x]",
  "[steps][input.x]",
  "[...[steps]][0][input.x]",
  "{ a: steps }.a[input.x]",
  "{ a: { b: workflow } }.a.b.steps[input.x]",
  "{ ...steps }[input.x]",
  "{ ...workflow.instance.state }.steps[input.x]",
  "coalesce(steps)[input.x]",
  "merge(steps, {})[input.x]",
  "first([steps])[input.x]",
  "values(workflow)[input.x]",
  "[steps].at(0)[input.x]",
  "[].concat(steps)[0][input.x]",
])("a computed step is refused: %s", (source) => {
  const error = thrownBy(() => parseExpression(source, { roots: allRoots }));

  expect(error).toBeInstanceOf(ExpressionSyntaxError);
  expect((error as ExpressionSyntaxError).problems.map(({ code }) => code)).toContain(
    "COMPUTED_STEPS",
  );
});

test.each(["keys(steps)[index]", "steps.a.output[input.x]", "variables[input.x]", "input[item]"])(
  "computed access beside steps is allowed: %s",
  (source) => {
    expect(() => readsOf(source)).not.toThrow();
  },
);

test.each([
  ["workflow.inputs.a", "UNKNOWN_PROPERTY", "it has input, variables, steps, instance"],
  ["workflow.instance.state.variable", "UNKNOWN_PROPERTY", "workflow.instance.state has no"],
  ["event.data.orderId", "UNKNOWN_PROPERTY", 'event has no "data"'],
])("a property that can never be there is a warning: %s", (source, code, message) => {
  const { warnings } = parseExpression(source, { roots: allRoots });

  expect(warnings).toEqual([
    { code, message: expect.stringContaining(message), offset: expect.any(Number) },
  ]);
});

test("an equality with undefined is a warning where it is never true", () => {
  const source = "event.payload.a === undefined";
  const warningsWith = (undefinedNeverEqual: boolean) =>
    parseExpression(source, { roots: allRoots, undefinedNeverEqual }).warnings;

  expect(warningsWith(true)).toMatchObject([{ code: "NEVER_EQUAL" }]);
  expect(warningsWith(false)).toEqual([]);
});

test.each([
  ["steps.a.output.x", false],
  ["steps.a.error.type", false],
  ["steps.a.status", true],
  ["workflow.instance.state.steps.a.attempts", true],
  ["string(steps.a)", true],
  ["keys(workflow.instance.state)", true],
])("of %s a worker may change what is read: %s", (source, expected) => {
  expect(readsOf(source).stepProgress).toBe(expected);
});

test("reads of several expressions add up", () => {
  const reads = mergeReads(["steps.b.output + input.a", "steps.a.status", "now()"].map(readsOf));

  expect(reads).toEqual({
    ...nothing,
    roots: ["input", "steps"],
    steps: ["a", "b"],
    stepOutputs: ["b"],
    stepProgress: true,
    input: true,
    now: true,
  });
  expect(mergeReads([reads, readsOf("steps")]).steps).toBe("ALL");
  expect(mergeReads([])).toEqual(nothing);
});

test("an expression sees no difference when only what it reads is there", () => {
  fc.assert(
    fc.property(sources.expression, (source) => {
      const expression = parseOrSkip(source);
      const whole = expression.evaluate(full);

      const trimmed = expression.evaluate(onlyWhatIsRead(full, expression.reads));

      expect(JSON.stringify(trimmed)).toBe(JSON.stringify(whole));
    }),
    { seed: 20_260_101, numRuns: 3_000 },
  );
});

const full = stateScope({
  input: { a: 1, b: { c: [1, 2] }, key: "a" },
  variables: { a: "x", b: { c: null }, key: "b" },
  steps: {
    a: { status: "COMPLETED", output: { a: 1, b: { c: "y" } }, attempts: 1 },
    b: { status: "FAILED", output: { a: 2, key: "c" }, error: { a: 3 } },
  },
});

function stateScope(state: Record<string, unknown>): Scope {
  const instance = { id: "i", a: { b: 1 }, input: state["input"], state };
  return { now: "2026-01-01T00:00:00.000Z", ...state, workflow: { ...state, instance } };
}

/** The scope that an engine would build for the reads, everything else left out. */
function onlyWhatIsRead({ now, input, variables, steps }: Scope, reads: Reads): Scope {
  const stepOf = ([id, step]: [string, Record<string, unknown>]) => {
    const withOutput = reads.steps === "ALL" || reads.stepOutputs.includes(id);
    const fields = Object.entries(step).filter(([field]) => withOutput || field !== "output");
    return [id, Object.fromEntries(fields)];
  };
  const trimmed = stateScope({
    ...(reads.input && { input }),
    ...(reads.variables && { variables }),
    steps: Object.fromEntries(
      Object.entries(steps as Record<string, Record<string, unknown>>)
        .filter(([id]) => reads.steps === "ALL" || reads.steps.includes(id))
        .map(stepOf),
    ),
  });
  const { workflow, ...roots } = trimmed;
  const { instance, ...state } = workflow as Record<string, object>;
  const fields = Object.entries(instance ?? {}).filter(
    ([field]) => reads.instanceFields === "ALL" || reads.instanceFields.includes(field),
  );
  const all = {
    ...roots,
    workflow: { ...state, ...(reads.instance && { instance: Object.fromEntries(fields) }) },
  };
  return {
    now,
    ...Object.fromEntries(Object.entries(all).filter(([root]) => reads.roots.includes(root))),
  };
}

function parseOrSkip(source: string) {
  try {
    return parseExpression(source);
  } catch (error) {
    // Computed steps are refused: that is another test's matter.
    return fc.pre(!(error instanceof ExpressionSyntaxError)) as never;
  }
}

const sources = fc.letrec<{ expression: string }>((tie) => {
  const expression = tie("expression");
  const join = (...parts: (string | fc.Arbitrary<string>)[]) =>
    fc
      .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
      .map((texts) => texts.join(""));
  const root = fc.constantFrom("input", "variables", "steps", "workflow", "workflow.instance");
  const key = fc.constantFrom(
    "a",
    "b",
    "c",
    "output",
    "status",
    "steps",
    "state",
    "instance",
    "input",
    "error",
  );
  return {
    expression: fc.oneof(
      { maxDepth: 5 },
      { weight: 3, arbitrary: root },
      { weight: 6, arbitrary: join("(", expression, ").", key) },
      join("(", expression, ")['", key, "']"),
      join("(", expression, ")[input.key]"),
      join("(", expression, " ? ", expression, " : ", expression, ")"),
      join("(", expression, " ?? ", expression, ")"),
      join("(", expression, " && ", expression, ")"),
      join("(", expression, " || ", expression, ")"),
      join("[", expression, ", ", expression, "]"),
      join("({ a: ", expression, ", ...(type(", expression, ") === 'object' ? input : null) })"),
      join("coalesce(", expression, ", ", expression, ")"),
      join("equals(", expression, ", ", expression, ")"),
      join("('a' in ", expression, ")"),
      join("(", expression, " === ", expression, ")"),
      join("json(", expression, ")"),
    ),
  };
});

function readsOf(source: string) {
  return parseExpression(source, { roots: allRoots }).reads;
}
