import { expect, test } from "vitest";
import { ExpressionError, ExpressionSyntaxError, limits, parseTemplate } from "../src/index.ts";
import type { Json, TemplateOptions } from "../src/index.ts";
import { allRoots, scope, thrownBy } from "./scope.ts";

test.each<[string, Json, unknown]>([
  ["a lone expression keeps its type", "${ variables.attempts }", 2],
  ["a lone expression without blanks", "${variables.attempts}", 2],
  ["a list stays a list", "${ pluck(input.lines, 'sku') }", ["a", "b"]],
  ["text around it makes text", "order ${ input.orderId }!", "order o-1!"],
  ["two expressions make text", "${ variables.attempts }${ variables.attempts }", "22"],
  ["blanks around it make text", " ${ variables.attempts }", " 2"],
  ["null in a text is the word", "<${ null }>", "<null>"],
  ["a list in a text is JSON", "<${ [1, 'a'] }>", '<[1,"a"]>'],
  ["a missing value adds nothing to a text", "<${ input.missing }>", "<>"],
  ["text without expressions is itself", "workflow.input", "workflow.input"],
  ["braces of objects inside", "${ { a: { b: '}' } }.a.b }-${ `}${1}` }", "}-}1"],
  ["a comment inside", "${ 1 /* } */ + 1 }", 2],
  ["a dollar is no brace", "$5 and $ {x}", "$5 and $ {x}"],
  ["an undefined value leaves its key out", { a: "${ input.missing }", b: 1 }, { b: 1 }],
  ["an undefined element is null", ["${ input.missing }", 1], [null, 1]],
  ["null is a value", { a: "${ input.nothing }", b: null }, { a: null, b: null }],
  ["nested values", { a: [{ b: "${ 1 + 1 }" }] }, { a: [{ b: 2 }] }],
  ["undefined inside a value leaves its key out", "${ { a: input.missing, b: 1 } }", { b: 1 }],
  ["undefined inside a list is null", "${ [input.missing, 1] }", [null, 1]],
  ["keys are never expressions", { "${ 1 }": 1 }, { "${ 1 }": 1 }],
  ["$literal is untouched", { $literal: "${ x }" }, "${ x }"],
  ["$literal inside", { a: { $literal: { $literal: "${" } } }, { a: { $literal: "${" } }],
  ["$literal in a list of constants", [1, { $literal: "${ x }" }], [1, "${ x }"]],
  ["$literal null", { a: { $literal: null } }, { a: null }],
  ["a key that looks like a method", { constructor: "${ 1 }" }, { constructor: 1 }],
])("%s", (_name, value, result) => {
  expect(evaluate(value)).toStrictEqual(result);
});

test("the whole value may be undefined", () => {
  expect(evaluate("${ input.missing }")).toBeUndefined();
});

test("-0 leaves as 0, which is how JSON would bring it back", () => {
  expect(evaluate({ a: "${ -0 }", b: "${ [-0] }" })).toStrictEqual({ a: 0, b: [0] });
});

test.each<[string, Json, unknown]>([
  ["below workflow", "workflow.input.orderId", "o-1"],
  ["below event", "event.payload.attempts", 4],
  ["with brackets", "workflow.input.lines[1]['sku']", "b"],
  ["with ?.", "workflow?.input", "workflow?.input"],
  ["with ?. further down", "workflow.input?.orderId", "o-1"],
  ["nested", { a: ["workflow.steps.reserve.output.id"] }, { a: ["r-1"] }],
  ["a short form is text", "input.orderId", "input.orderId"],
  ["a sum is text", "workflow.input.a + 1", "workflow.input.a + 1"],
  ["with blanks around is text", " workflow.input.orderId", " workflow.input.orderId"],
  ["a longer word is text", "workflows.input", "workflows.input"],
  ["the root alone is text", "workflow", "workflow"],
  ["an undefined one leaves its key out", { a: "workflow.input.missing" }, {}],
  ["$literal keeps it text", { $literal: "workflow.input.orderId" }, "workflow.input.orderId"],
])("with barePaths, a path %s", (_name, value, result) => {
  expect(evaluate(value, { barePaths: true })).toStrictEqual(result);
});

test("without barePaths a path is text", () => {
  expect(evaluate("workflow.input.orderId")).toBe("workflow.input.orderId");
});

test.each([
  ["a path", "workflow.input.orderId", "o-1"],
  ["an expression", "input.orderId + '!'", "o-1!"],
  ["an expression in ${ }", "${ input.orderId }", "o-1"],
  ["text around ${ }", "order-${ input.orderId }", "order-o-1"],
  ["words around ${ }", "order ${ input.orderId }", "order o-1"],
  ["a path around ${ }", "/orders/${ input.orderId }/", "/orders/o-1/"],
  ["a template literal", "`order-${ input.orderId }`", "order-o-1"],
  ["a template literal in a sum", "'#' + `${ input.orderId }`", "#o-1"],
  ["an object", "{ id: input.orderId }", { id: "o-1" }],
  ["a value in quotes", "'text'", "text"],
])("with stringIsExpression, the string is %s", (_name, value, result) => {
  expect(evaluate(value, { stringIsExpression: true })).toEqual(result);
});

test("with stringIsExpression, strings inside an object are values as ever", () => {
  expect(evaluate({ a: "input.orderId" }, { stringIsExpression: true })).toEqual({
    a: "input.orderId",
  });
  expect(problemsOf("plain text", { stringIsExpression: true }).map(({ code }) => code)).toContain(
    "SYNTAX",
  );
});

test("what a template reads is the sum of its expressions", () => {
  const { reads } = parseTemplate(
    { a: "${ steps.a.output }", b: ["x ${ workflow.steps.b.status }", "event.id"] },
    { roots: allRoots, barePaths: true },
  );

  expect(reads).toMatchObject({ steps: ["a", "b"], stepOutputs: ["a"], event: true, input: false });
});

test("a template without expressions is constant, and one with is not", () => {
  const isConstant = (value: Json) => parseTemplate(value).isConstant;

  expect([{ a: [1, "b"] }, "text", null, { $literal: "${ x }" }].map(isConstant)).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(["${ 1 }", { a: ["${ input.a }"] }].map(isConstant)).toEqual([false, false]);
});

test("every problem comes with the pointer of its string", () => {
  const problems = problemsOf({
    "a/b": ["fine", "id-${ foo }"],
    "c~d": "${ steps[input.x] }${ bar }",
    e: "${ ",
    f: { $literal: 1, g: 2 },
    h: "${}",
    i: "${ 1 2 }",
    j: "${ input.__proto__ }",
  });

  expect(problems.map(({ code, pointer, offset }) => [code, pointer, offset])).toEqual([
    ["UNKNOWN_ROOT", "/a~1b/1", 6],
    ["COMPUTED_STEPS", "/c~0d", 3],
    ["UNKNOWN_ROOT", "/c~0d", 22],
    ["UNCLOSED", "/e", 2],
    ["BAD_LITERAL", "/f", 0],
    ["EMPTY", "/h", 2],
    ["SYNTAX", "/i", 5],
    ["FORBIDDEN_PROPERTY", "/j", 9],
  ]);
});

test("a template holds so many expressions and no more, in one string or in many", () => {
  const { expressions } = limits;
  const strings = (count: number) => Array.from({ length: count }, () => "${1}");
  const bare = Array.from({ length: expressions + 9 }, () => "workflow.input");

  expect(evaluate(strings(expressions).join(""))).toBe("1".repeat(expressions));
  for (const value of [strings(expressions + 9), strings(expressions + 9).join(""), bare]) {
    expect(problemsOf(value, { barePaths: true }).map(({ code }) => code)).toEqual(["TOO_MANY"]);
  }
});

test("an expression longer than allowed is a problem inside a string as well", () => {
  const long = `\${ '${"a".repeat(limits.sourceLength)}' }`;

  expect(problemsOf(long).map(({ code }) => code)).toEqual(["TOO_LONG"]);
  expect(problemsOf(`\${ ${"1 ".repeat(limits.sourceLength)}`)[0]?.code).toBe("SYNTAX");
});

test("a bare path that names no root here is a problem that says how to write text", () => {
  const [problem] = problemsOf({ topic: "event.created" }, { barePaths: true, roots: ["input"] });

  expect(problem).toMatchObject({ code: "UNKNOWN_ROOT", pointer: "/topic" });
  expect(problem?.message).toContain('write { "$literal": "event.created" }');
});

test("what looks like a bare path and is none is a warning", () => {
  const { warnings } = parseTemplate(
    { a: "workflow.steps.my-step.output", b: "event.order.created" },
    { barePaths: true, roots: allRoots },
  );

  expect(warnings.map(({ code, pointer }) => [code, pointer])).toEqual([
    ["LOOKS_LIKE_PATH", "/a"],
    ["UNKNOWN_PROPERTY", "/b"],
  ]);
});

test.each<[string, Json, string, string]>([
  ["NaN", { a: "${ 0 / 0 }" }, "NOT_JSON", "NaN"],
  ["Infinity", { a: "${ [1 / 0] }" }, "NOT_JSON", "Infinity"],
  ["NaN inside a text of JSON", { a: "x${ [0 / 0] }" }, "NOT_JSON", "NaN"],
  ["half a character", { a: "${ '😀'.slice(0, 1) }" }, "NOT_JSON", "half a character"],
  ["a NUL", { a: "${ '\\0' }" }, "NOT_JSON", "NUL"],
  ["half a character in a text", { a: "x${ '😀'.slice(0, 1) }" }, "NOT_JSON", "half a character"],
  ["a NUL in a text", { a: "x${ '\\0' }" }, "NOT_JSON", "NUL"],
  ["a method on another type", { a: "${ variables.attempts.trim() }" }, "NO_SUCH_METHOD", "trim"],
])("a result that is %s fails with the place in the template", (_name, value, code, message) => {
  const error = thrownBy(() => evaluate(value));

  expect(error).toBeInstanceOf(ExpressionError);
  expect(error).toMatchObject({ code, pointer: "/a", message: expect.stringContaining(message) });
});

test("a result larger than allowed is refused, the sum of many parts as well", () => {
  const large = "x".repeat(Math.floor(limits.resultSize / 3.5));
  const part = (count: number) =>
    parseTemplate(Array.from({ length: count }, () => "${ input.text }")).evaluate({
      now: scope.now,
      input: { text: large },
    });

  expect(part(2)).toHaveLength(2);
  expect(thrownBy(() => part(4))).toMatchObject({ code: "RESULT_TOO_LARGE", pointer: "/3" });
});

test("the depth of a result counts from the whole value", () => {
  const nested = (depth: number): Json => (depth === 0 ? 1 : [nested(depth - 1)]);
  const values = { now: scope.now, input: nested(limits.resultDepth - 1) };

  expect(parseTemplate(["${ input }"]).evaluate(values)).toEqual(nested(limits.resultDepth));
  expect(thrownBy(() => parseTemplate([["${ input }"]]).evaluate(values))).toMatchObject({
    code: "TOO_DEEP",
    pointer: "/0/0",
  });
  expect(parseTemplate(nested(limits.resultDepth)).isConstant).toBe(true);
  expect(problemsOf(nested(limits.resultDepth + 1))[0]?.code).toBe("TOO_DEEP");
  expect(problemsOf({ $literal: nested(limits.resultDepth + 1) })[0]?.code).toBe("TOO_DEEP");
});

test("values of the scope are passed on by identity", () => {
  const { lines } = scope.input as { lines: unknown };

  expect(evaluate({ lines: "${ input.lines }" })).toEqual({ lines });
  expect((evaluate({ lines: "${ input.lines }" }) as { lines: unknown }).lines).toBe(lines);
});

test("C66: keys such as __proto__ in data stay plain keys, and pollute nothing", () => {
  const hostile: unknown = JSON.parse(
    '{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}},"a":{"__proto__":null,"b":-0}}',
  );
  const values = { ...scope, input: hostile, variables: { "__proto__.polluted": 1 } };
  const text = JSON.stringify(hostile);
  const result = (source: string) => parseTemplate(source, { roots: allRoots }).evaluate(values);

  expect(JSON.stringify(result("${ input }"))).toBe(text);
  expect(JSON.stringify(result("${ { ...input } }"))).toBe(text);
  expect(JSON.stringify(result("${ merge({}, input) }"))).toBe(text);
  expect(JSON.stringify(result("${ omit(input, []) }"))).toBe(text);
  expect(result("${ json(input) }")).toBe(text);
  expect(JSON.stringify(result(`\${ parseJson('${text}') }`))).toBe(text);
  expect(result("${ keys(input) }")).toEqual(["__proto__", "constructor", "a"]);
  expect(result("${ variables['__proto__.polluted'] }")).toBe(1);
  expect(
    JSON.stringify(
      parseTemplate(JSON.parse('{"__proto__":{"x":"${ 1 }"}}') as Json).evaluate(values),
    ),
  ).toBe('{"__proto__":{"x":1}}');
  expect(({} as { x?: unknown }).x).toBeUndefined();
  expect(Object.getPrototypeOf(result("${ { ...input } }"))).toBe(Object.prototype);
});

test("the documents of the contract parse as they are", () => {
  const options = { barePaths: true, stringIsExpression: true };

  expect(
    parseTemplate(
      {
        paymentId: "workflow.instance.state.steps.process_payment.output.paymentId",
        amount: "workflow.instance.state.steps.process_payment.output.amount",
        reason: "workflow.instance.cancellation.reason",
      },
      options,
    ).reads,
  ).toMatchObject({
    steps: ["process_payment"],
    stepOutputs: ["process_payment"],
    instanceFields: ["cancellation", "state"],
  });
  expect(evaluate("${ workflow.input.paymentWindow ?? 'P3D' }")).toBe("P3D");
});

function evaluate(value: Json, options: TemplateOptions = {}): unknown {
  return parseTemplate(value, { roots: allRoots, ...options }).evaluate(scope);
}

function problemsOf(value: Json, options: TemplateOptions = {}) {
  const error = thrownBy(() => parseTemplate(value, options));
  if (!(error instanceof ExpressionSyntaxError)) throw error;
  return error.problems;
}
