import { expect, test } from "vitest";
import { ExpressionSyntaxError, limits, parseExpression } from "../src/index.ts";
import { evaluate, thrownBy } from "./scope.ts";

test("an error carries every problem of the source, each with its place", () => {
  const problems = problemsOf("foo + siz(1) + input.__proto__ + 'a'.include('b')");

  expect(problems.map(({ code, offset }) => [code, offset])).toEqual([
    ["UNKNOWN_ROOT", 0],
    ["UNKNOWN_FUNCTION", 6],
    ["FORBIDDEN_PROPERTY", 21],
    ["UNKNOWN_METHOD", 37],
  ]);
});

test.each([
  ["an unknown root", "inputs.a", 'there is no root "inputs" here; did you mean input?'],
  [
    "an unknown root far from any",
    "process",
    "the roots here are workflow, input, variables, steps",
  ],
  ["a function without its parentheses", "size", "it is a function: write size(…)"],
  ["an unknown function", "lenght(input)", 'there is no function "lenght"'],
  ["a mistyped function", "uniqe(input.a)", "did you mean unique?"],
  ["a mistyped method", "input.a.startWith('x')", "did you mean startsWith?"],
  ["a method that takes a function", "input.a.map(1)", "it takes a function"],
  ["too few arguments", "round()", "round got 0 arguments and is round(number, digits?)"],
  ["too many arguments of a method", "input.a.trim(1)", "trim got 1 arguments and is trim()"],
  ["an event where there is none", "event.payload", 'there is no root "event" here'],
  ["text that is no expression", "hello world", "only one is taken, and no statements (at 6"],
  ["an open bracket", "size(input", "this is not an expression"],
  ["nothing", "  ", "the expression is empty"],
])("%s is explained", (_name, source, explanation) => {
  expect(messageOf(source)).toContain(explanation);
});

test.each([
  "a => a",
  "(function () {})",
  "(class {})",
  "new Date()",
  "input.a = 1",
  "input.a++",
  "delete input.a",
  "typeof input",
  "void 0",
  "this",
  "import('fs')",
  "import.meta",
  "/a/.test(input.a)",
  "`a${1}`.x`b`",
  "input`x`",
  "10n",
  "2 ** 3",
  "1 | 2",
  "1 << 2",
  "~1",
  "input instanceof input",
  "[1, , 2]",
  "({ get a() { return 1; } })",
  "({ a() { return 1; } })",
  "size(...input.lines)",
  "input.a?.()",
  "input['a' + 'b']()",
  "(1, 2)",
  "input.list[input.x]()",
])("%s is not part of the language", (source) => {
  expect(problemsOf(source).map(({ code }) => code)).toContain("NOT_ALLOWED");
});

test.each([
  ["input.a; input.b", "SYNTAX"],
  ["let a = 1", "SYNTAX"],
  ["if (input) 1", "SYNTAX"],
  ["await input", "NOT_ALLOWED"],
  ["010", "SYNTAX"],
  ["<!-- input", "SYNTAX"],
  ["input.a ?? input.b || 1", "SYNTAX"],
  ["'\\u{110000}'", "SYNTAX"],
  ["#a in input", "SYNTAX"],
])("%s is refused", (source, code) => {
  expect(problemsOf(source)[0]?.code).toBe(code);
});

test("comments and line breaks are blanks", () => {
  expect(evaluate("1 + // one\n /* two */ 2 // three")).toBe(3);
});

test("a source of the allowed length is taken, a longer one is not", () => {
  const allowed = `'${"a".repeat(limits.sourceLength - 2)}'`;

  expect(evaluate(allowed)).toHaveLength(limits.sourceLength - 2);
  expect(problemsOf(`${allowed} `)[0]?.code).toBe("TOO_LONG");
});

test("nesting of the allowed depth is taken, a deeper one is not", () => {
  const nested = (depth: number) => `${"(".repeat(depth)}1${")".repeat(depth)}`;

  expect(evaluate(nested(limits.depth - 1))).toBe(1);
  expect(problemsOf(nested(limits.depth))[0]?.code).toBe("TOO_DEEP");
});

function problemsOf(source: string) {
  const error = thrownBy(() => parseExpression(source));
  if (!(error instanceof ExpressionSyntaxError)) throw error;
  return error.problems;
}

function messageOf(source: string): string {
  return problemsOf(source)
    .map(({ message }) => message)
    .join("\n");
}
