import { ok } from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ExpressionError, functions, inspect, methods, parseExpression } from "../src/index.ts";
import type { Shape } from "../src/index.ts";
import {
  absent,
  anything,
  isOnly,
  listOf,
  memberOf,
  objectOf,
  oneOf,
  ofType,
} from "../src/shape.ts";
import { functionSignatures, methodResults } from "../src/signatures.ts";
import { typeOf } from "../src/values.ts";
import { data, expressions } from "./arbitraries.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_260_102);

/** The shape of exactly this value, or, where `isVague`, of values of its type. */
function shapeOf(value: unknown, isVague: boolean): Shape {
  if (Array.isArray(value)) {
    const elements = value.map((each) => shapeOf(each, isVague));
    return listOf(() =>
      elements.reduce((left, right) => (left === right ? left : anything), elements[0] ?? absent),
    );
  }
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([key, each]) => [key, shapeOf(each, isVague)] as const,
    );
    return objectOf(Object.fromEntries(members));
  }
  const plain = value as string | number | boolean | null | undefined;
  return isVague ? ofType(oneOf(plain).types[0] ?? "undefined") : oneOf(plain);
}

/** Whether a value is one that the shape allows. */
function fits(shape: Shape, value: unknown): boolean {
  const type = typeOf(value);
  if (type === "foreign" || !shape.types.includes(type)) return false;
  if (type === "object") {
    return Object.entries(value as object).every(([key, each]) => fits(memberOf(shape, key), each));
  }
  if (type === "array") {
    const element = shape.element?.() ?? anything;
    return (value as unknown[]).every((each) => fits(element, each));
  }
  const { values } = shape;
  return values === undefined || values.some((each) => Object.is(each, value) || each === value);
}

const scope = { now: "2026-01-01T00:00:00.000Z", ...data };

function valueOf(source: string): { readonly value: unknown } | undefined {
  try {
    return { value: parseExpression(source).evaluate(scope) };
  } catch (error) {
    if (error instanceof ExpressionError) return undefined;
    throw error;
  }
}

describe.each([
  ["exact", false],
  ["vague", true],
])("where the shapes of the roots are %s", (_name, isVague) => {
  const roots = Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, shapeOf(value, isVague)]),
  );

  test(`the value of a random expression is one that its shape allows (seed ${seed})`, () => {
    let known = 0;
    fc.assert(
      fc.property(expressions.expression, (source) => {
        const { shape } = inspect(parseExpression(source), roots);
        const result = valueOf(source);
        if (result === undefined) return;
        if (shape.types.length < 7) known += 1;
        if (!fits(shape, result.value))
          throw new Error(
            `${source} gives ${String(result.value)}, not ${shape.types.join(" | ")}`,
          );
      }),
      { seed, numRuns: 2_500 },
    );
    expect(known).toBeGreaterThan(1_000);
  }, 60_000);

  test(`a comparison that is said to be always the same is (seed ${seed})`, () => {
    let said = 0;
    const operator = fc.constantFrom("===", "!==", "==", "!=", "<", "<=", ">", ">=");
    fc.assert(
      fc.property(
        expressions.expression,
        operator,
        expressions.expression,
        (left, between, right) => {
          const source = `(${left}) ${between} (${right})`;
          const { mismatches } = inspect(parseExpression(source), roots);
          const whole = mismatches.find(
            ({ offset, message }) => offset === 0 && message.startsWith("this is always"),
          );
          const result = whole && valueOf(source);
          if (result === undefined) return;
          said += 1;
          const always = whole?.message.startsWith("this is always true");
          if (result.value !== always) throw new Error(`${source}: ${whole?.message}`);
        },
      ),
      { seed, numRuns: 2_500 },
    );
    expect(said).toBeGreaterThan(50);
  }, 60_000);
});

test(`behind a guard of its type a value is what it is there (seed ${seed})`, () => {
  const places = ["input.x", "input.list", "workflow.input.x", "variables.n", "input"];
  const type = fc.constantFrom("null", "number", "string", "array", "object", "undefined");
  const guard = fc.letrec<{ guard: string }>((tie) => ({
    guard: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      fc
        .tuple(fc.constantFrom(...places), fc.constantFrom("===", "!==", "==", "!="), type)
        .map(([place, operator, name]) => `type(${place}) ${operator} '${name}'`),
      fc
        .tuple(fc.constantFrom(...places), type, type)
        .map(([place, ...names]) => `${JSON.stringify(names)}.includes(type(${place}))`),
      tie("guard").map((inner) => `!(${inner})`),
      fc
        .tuple(tie("guard"), fc.constantFrom("&&", "||"), tie("guard"))
        .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
    ),
  })).guard;
  const values = fc.constantFrom<unknown>(undefined, null, 1, "a", [], [1], {}, { x: 1 });
  const read = fc.constantFrom(...places);
  const vague = { input: anything, variables: anything, workflow: anything };
  let narrowed = 0;

  fc.assert(
    fc.property(guard, read, read, values, values, (asked, left, right, x, n) => {
      const input = { x, list: n };
      const given = { now: scope.now, input, variables: { n }, workflow: { input } };
      for (const source of [
        `(${asked}) ? ${left} : ${right}`,
        `(${asked}) && ${left}`,
        `(${asked}) || ${right}`,
      ]) {
        const { shape } = inspect(parseExpression(source), vague);
        if (shape.types.length < 7) narrowed += 1;
        const value = parseExpression(source).evaluate(given);
        if (!fits(shape, value)) throw new Error(`${source} gives ${JSON.stringify(value)}`);
      }
    }),
    { seed, numRuns: 1_000 },
  );
  expect(narrowed).toBeGreaterThan(100);
});

test.each([
  ["type(input.x) === 'string' ? input.x.split(',') : input.x", 0],
  ["type(input.x) === 'string' ? input.x : input.x.split(',')", 1],
  ["type(input.x) !== 'string' || input.x.trim()", 0],
  ["type(input.x) === 'string' || input.x.trim()", 1],
  ["type(input.x) === 'string' && type(input.y) === 'string' && input.y.trim()", 0],
  ["(type(input.x) === 'string' || type(input.y) === 'string') && input.x.trim()", 1],
  ["!(type(input.x) !== 'string' || input.z) ? lower(input.x) : 0", 0],
  ["['string', 'null'].includes(type(input.x)) ? upper(workflow.input.x) : 0", 0],
  ["type(input.x) === 'object' ? input.x.member : 0", 0],
])("%s has %i mismatches where x and y are lists", (source, count) => {
  const list = listOf(() => anything);
  const input = objectOf({ x: list, y: list }, anything);
  const roots = { input, workflow: objectOf({ input }, anything) };

  expect(inspect(parseExpression(source), roots).mismatches).toHaveLength(count);
});

const samples = [
  "undefined",
  "null",
  "true",
  "0",
  "1.5",
  "''",
  "'ab'",
  "'2026-01-01'",
  "[]",
  "[1]",
  "['a', 'b']",
  "[[1]]",
  "({})",
  "({ a: 1 })",
];
const second = ["", ", 1", ", 'days'", ", 'a'", ", 1, 'days'"];

test.each(functions.map(({ name, parameters }) => [name, parameters] as const))(
  "the signature of %s holds for values of every type",
  (name, parameters) => {
    const { takes, gives } = functionSignatures.get(name) ?? {};
    const calls = samples.flatMap((sample) =>
      second.map((more) => ({
        sample,
        source: `${name}(${parameters === "" ? "" : sample + more})`,
      })),
    );
    for (const { sample, source } of calls) {
      let expression;
      try {
        expression = parseExpression(source);
      } catch {
        continue; // another number of arguments
      }
      const [type] = inspect(parseExpression(sample), {}).shape.types;
      const isTaken =
        parameters === "" || takes === undefined || (type !== undefined && takes.includes(type));
      const result = valueOf(source);
      ok(result === undefined || isTaken, `${source} takes what it should not`);
      if (result === undefined || gives === undefined) continue;
      expect([source, ...gives]).toContain(typeOf(result.value));
      expect(isOnly(inspect(expression, {}).shape, ...gives)).toBe(true);
    }
  },
);

test("what methods give is what their examples give", () => {
  const known = methods.filter(({ name }) => methodResults.has(name));
  expect(known.length).toBeGreaterThan(20);
  for (const { name, example } of known) {
    const [source] = example;
    expect([source, ...(methodResults.get(name) ?? [])]).toContain(typeOf(valueOf(source)?.value));
  }
});

test.each([
  ["steps.a.output.x", ["a"]],
  ["workflow.steps.a.output", ["a"]],
  ["'id-' + workflow.instance.state.steps.a.output.x", ["a"]],
  ["[steps.a.output, steps.b.output]", ["a", "b"]],
  ["steps.a.output.x ?? 1", []],
  ["steps.a.output.x ?? steps.b.output.x", []],
  ["steps.a.output.x || steps.b.output.x", []],
  ["steps.a.status === 'COMPLETED' && steps.a.output.x", []],
  ["isDefined(steps.a) ? steps.a.output.x : 0", []],
  ["coalesce(steps.a.output, 1)", []],
  ["steps.a.output.x === 1", []],
  ["!steps.a.output", []],
  ["upper(steps.a.output.x)", ["a"]],
  ["steps.a.error.type", []],
])("%s reads without a care the outputs of %j", (source, stepIds) => {
  const { bareOutputs } = inspect(parseExpression(source), {});

  expect(bareOutputs.map(({ stepId }) => stepId)).toEqual(stepIds);
});

test("a key that may be text finds the length of a list as well as its elements", () => {
  const list = listOf(() => ofType("string"));
  const roots = { variables: objectOf({ list, index: ofType("number"), key: anything }) };
  const typesOf = (source: string) => inspect(parseExpression(source), roots).shape.types;

  expect(typesOf("variables.list[variables.index]")).not.toContain("number");
  expect(typesOf("variables.list[variables.key]")).toContain("number");
});
