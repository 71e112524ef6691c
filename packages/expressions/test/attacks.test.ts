/** Attempts to reach the host, to change data, or to take time or memory without bound. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ExpressionError,
  ExpressionSyntaxError,
  limits,
  parseExpression,
  parseTemplate,
} from "../src/index.ts";
import type { Json } from "../src/index.ts";
import { allRoots, evaluate, thrownBy } from "./scope.ts";

test.each([
  ["the function constructor through a list", "[].constructor.constructor('return process')()"],
  ["the function constructor through a text", "''['constructor']['constructor']('return 1')()"],
  ["the function constructor through a number", "(1).constructor.constructor('return 1')()"],
  ["the function constructor through a method", "'a'.trim.constructor('return 1')()"],
  ["the function constructor by an escaped name", "input.c\\u006fnstructor"],
  ["the function constructor by a template key", "input[`constructor`]"],
  ["the prototype", "input.__proto__"],
  ["the prototype by an escaped name", "input.\\u005f_proto__"],
  ["the prototype by a quoted key", 'input["__proto__"]'],
  ["the prototype by an escaped quoted key", "input['\\x5f_proto__']"],
  ["the prototype by an optional access", "input?.['__proto__']?.polluted"],
  ["the prototype in an object literal", "{ __proto__: input }"],
  ["the prototype in an object literal, quoted", "{ '__proto__': input }"],
  ["the prototype in an object literal, computed", "{ ['__proto__']: input }"],
  ["the constructor in an object literal", "{ constructor: 1 }"],
  ["the prototype property", "size.prototype"],
  ["the constructor as a root", "constructor"],
  ["the prototype as a function", "__proto__()"],
  ["the constructor as a method", "input.constructor()"],
  ["the process", "process.exit(1)"],
  ["the global object", "globalThis.process"],
  ["the module system", "require('fs')"],
  ["a dynamic import", "import('node:fs')"],
  ["the import meta", "import.meta.url"],
  ["this", "this.constructor"],
  ["a function to leave the tree", "(() => { while (true) {} })()"],
  ["a generator", "(function* () { yield 1 })().next()"],
  ["a tag function", "input`x`"],
  ["eval", "eval('1')"],
  ["the function itself", "Function('return 1')()"],
  ["the accessors of the prototype", "input.__defineGetter__('a', 1)"],
  ["the lookup of accessors", "input.__lookupGetter__('__proto__')"],
  ["a call through call", "'a'.trim.call(input)"],
  ["a call through apply", "size.apply(input)"],
  ["an assignment in an argument", "size(input.a = 1)"],
  ["an assignment by destructuring", "[input.a] = [1]"],
  ["an increment", "input.a++"],
  ["a deletion", "delete input.a"],
  ["a statement behind", "1; process.exit()"],
  ["a closing brace to get out", "1 }; process.exit(); {"],
  ["a closing parenthesis to get out", "1) || process.exit("],
  ["a regular expression that backtracks", "/(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!')"],
  ["a regular expression as a separator", "'a'.split(/a/)"],
  ["sorting by a function that never ends", "[2, 1].sort(() => 1)"],
  ["a getter", "{ get a() { return 1 } }"],
  ["toString of an object literal", "`${{ toString() { return 'x' } }}`"],
])("escape by %s does not parse", (_name, source) => {
  expect(thrownBy(() => parseExpression(source, { roots: allRoots }))).toBeInstanceOf(
    ExpressionSyntaxError,
  );
});

test.each([
  ["a computed prototype", "input[item]", "__proto__"],
  ["a computed constructor", "'a'[item]", "constructor"],
  ["a computed constructor of a list", "[][item]", "constructor"],
  ["a key put together", "input['__pro' + item]", "to__"],
  ["a key put together in a template", "input[`__${item}__`]", "proto"],
  ["a computed key of an object literal", "{ [item]: 1 }", "__proto__"],
  ["pairs", "fromEntries([[item, 1]])", "__proto__"],
  ["pluck", "pluck([input], item)", "__proto__"],
  ["where", "where([input], item, 1)", "constructor"],
  ["has", "has(input, item)", "__proto__"],
  ["in", "item in input", "prototype"],
])("escape by a name known only at run time: %s", (_name, source, item) => {
  expect(thrownBy(() => evaluate(source, { item }))).toMatchObject({ code: "FORBIDDEN_PROPERTY" });
});

test.each([
  ["valueOf in data is not called", "input.trap > 1", false],
  ["toString in data is not called", "input.trap == 'x'", false],
  ["a function in data is no method", "input.trap.includes ?? 'none'", expect.any(Function)],
  ["a key in the form of a list is no key", "input[['__proto__']]", undefined],
])("data is only data: %s", (_name, source, value) => {
  const called = () => {
    throw new Error("called");
  };
  const trap = { valueOf: called, toString: called, toJSON: called, includes: called };

  expect(evaluate(source, { input: { trap } })).toEqual(value);
});

test.each([
  ["a call of a function in data", "${ input.trap.includes('a') }", "NO_SUCH_METHOD"],
  ["a function in data as a result", "${ input.trap.includes }", "NOT_JSON"],
  ["toJSON in data", "${ input.trap }", "NOT_JSON"],
  ["toJSON in data as text", "x${ input.trap }", "NOT_JSON"],
  ["a date, which has an inherited toJSON", "${ json(input.date) }", "NOT_JSON"],
  ["a map", "${ input.map }", "NOT_JSON"],
  ["a big integer", "${ input.big }", "NOT_JSON"],
  ["a symbol as text", "x${ input.symbol }", "NOT_JSON"],
])("what is not data does not come out: %s", (_name, source, code) => {
  const called = () => {
    throw new Error("called");
  };
  const input = {
    trap: { toJSON: called, includes: called },
    date: new Date(0),
    map: new Map(),
    big: 1n,
    symbol: Symbol("s"),
  };

  const error = thrownBy(() =>
    parseTemplate(source).evaluate({ now: "2026-01-01T00:00:00.000Z", input }),
  );

  expect(error).toBeInstanceOf(ExpressionError);
  expect(error).toMatchObject({ code });
});

const long = "a".repeat(1_000_000);

test.each([
  ["a range", "range(1e6)", "ARRAY_TOO_LONG"],
  ["an endless range", "range(0, 1 / 0)", "ARRAY_TOO_LONG"],
  ["a range of tiny steps", "range(0, 1, 1e-300)", "ARRAY_TOO_LONG"],
  ["many ranges", `[${"range(1e5),".repeat(20)}]`, "WORK_LIMIT"],
  ["a repeated text", "'a'.repeat(1e9)", "STRING_TOO_LONG"],
  ["an endlessly repeated text", "'a'.repeat(1 / 0)", "BAD_ARGUMENT"],
  ["a repeated text, repeated", "'a'.repeat(1e5).repeat(1e5)", "STRING_TOO_LONG"],
  ["padding at the start", "'a'.padStart(1e9)", "STRING_TOO_LONG"],
  ["padding at the end", "'a'.padEnd(1 / 0, 'b')", "STRING_TOO_LONG"],
  ["a doubled text", `${"input.long + ".repeat(3)}''`, "STRING_TOO_LONG"],
  ["a template of long texts", "`${input.long}${input.long}`", "STRING_TOO_LONG"],
  ["texts put together", "input.long.concat(input.long, input.long)", "STRING_TOO_LONG"],
  ["a joined list with a long separator", "range(1e4).join(input.long)", "STRING_TOO_LONG"],
  [
    "a replacement that grows",
    "input.long.replaceAll('aaaaaaaaaaaa', 'b'.repeat(1000))",
    "STRING_TOO_LONG",
  ],
  ["a replacement of nothing", "input.long.replaceAll('', 'bb')", "ARRAY_TOO_LONG"],
  ["a text split into characters", "input.long.split('')", "ARRAY_TOO_LONG"],
  [
    "a search that is quadratic",
    "input.long.includes('a'.repeat(5e5) + 'b' + 'a'.repeat(5e4))",
    "WORK_LIMIT",
  ],
  [
    "a search from the end that is quadratic",
    "input.long.lastIndexOf('a'.repeat(5e5) + 'b')",
    "WORK_LIMIT",
  ],
  ["a split that is quadratic", "input.long.split('a'.repeat(4e5) + 'b')", "WORK_LIMIT"],
  [
    "a replacement that is quadratic",
    "input.long.replace('a'.repeat(4e5) + 'b', '')",
    "WORK_LIMIT",
  ],
  ["many searches", `[${"input.long.indexOf('b'),".repeat(100)}]`, "WORK_LIMIT"],
  ["many changes of case", `[${"input.long.toUpperCase(),".repeat(100)}]`, "WORK_LIMIT"],
  ["many conversions to a number", `[${"+input.long,".repeat(100)}]`, "WORK_LIMIT"],
  ["many comparisons of long texts", `[${"input.long === input.copy,".repeat(100)}]`, "WORK_LIMIT"],
  ["many passes over a long list", `[${"sum(input.list),".repeat(100)}]`, "WORK_LIMIT"],
  ["many copies of a long list", `[${"...input.list,".repeat(100)}]`, "ARRAY_TOO_LONG"],
  ["many searches in a long list", `[${"input.list.includes(-1),".repeat(100)}]`, "WORK_LIMIT"],
  ["a list put together with itself", "input.list.concat(input.list)", "ARRAY_TOO_LONG"],
  ["sorting again and again", `[${"sort(input.list),".repeat(20)}]`, "WORK_LIMIT"],
  ["finding duplicates of long lists", `[${"unique(input.list),".repeat(20)}]`, "WORK_LIMIT"],
  [
    "comparing long lists by content",
    `[${"equals(input.list, input.list2),".repeat(20)}]`,
    "WORK_LIMIT",
  ],
  ["JSON of a long text", "json([input.long, input.long])", "RESULT_TOO_LARGE"],
  ["many JSON texts", `[${"json(input.list),".repeat(20)}]`, "WORK_LIMIT"],
  ["JSON text nested deep", "parseJson('['.repeat(1e5) + ']'.repeat(1e5))", "TOO_DEEP"],
  ["a value nested deep, as text", "'' + input.deep", "TOO_DEEP"],
  ["values nested deep, compared", "equals(input.deep, input.deep2)", "TOO_DEEP"],
  ["a value nested deep, flattened", "input.deep.flat(1 / 0)", "TOO_DEEP"],
  ["values nested deep, made unique", "unique([input.deep])", "TOO_DEEP"],
])("denial of service by %s is a clear error", (_name, source, code) => {
  const list = Array.from({ length: 90_000 }, (_, index) => index);
  const input = {
    long,
    copy: `${long.slice(1)}a`,
    list,
    list2: [...list],
    deep: nested(50_000),
    deep2: nested(50_000),
  };

  const error = thrownBy(() => evaluate(source, { input }));

  expect(error).toBeInstanceOf(ExpressionError);
  expect(error).toMatchObject({ code });
});

test.each([
  ["parentheses", `${"(".repeat(4_000)}1${")".repeat(4_000)}`],
  ["10,000 parentheses", `${"(".repeat(10_000)}1${")".repeat(10_000)}`],
  ["open parentheses", "(".repeat(9_999)],
  ["lists", `${"[".repeat(4_000)}${"]".repeat(4_000)}`],
  ["objects", `${"{a:".repeat(2_500)}1${"}".repeat(2_500)}`],
  ["negations", `${"!".repeat(9_000)}1`],
  ["minuses", `${"- ".repeat(4_500)}1`],
  ["a sum", `1${"+1".repeat(4_900)}`],
  ["a chain of choices", `${"1?1:".repeat(2_400)}1`],
  ["members", `input${".a".repeat(4_900)}`],
  ["indexes", `input${"[0]".repeat(3_000)}`],
  ["indexes in indexes", `${"input[".repeat(1_600)}0${"]".repeat(1_600)}`],
  ["calls", `${"size(".repeat(1_600)}1${")".repeat(1_600)}`],
  ["template literals", `${"`${".repeat(2_400)}1${"}`".repeat(2_400)}`],
  ["arrow functions", `${"a=>".repeat(3_000)}1`],
  ["spreads", `${"[...".repeat(1_900)}1${"]".repeat(1_900)}`],
  ["conjunctions", `1${"&&1".repeat(3_000)}`],
  ["parameters", `({a(${"[".repeat(4_000)}x${"]".repeat(4_000)}){}})`],
  ["groups of a regular expression", `/${"(".repeat(4_000)}${")".repeat(4_000)}/`],
  ["a long name", "a".repeat(20_000)],
  ["blanks", " ".repeat(1_000_000)],
  ["open comments", "/*".repeat(4_000)],
])("a source that is long or nested does not exhaust the parser: %s", (_name, source) => {
  for (const parse of [
    () => parseExpression(source),
    () => parseTemplate(`\${ ${source} }`),
    () => parseTemplate(source, { stringIsExpression: true }),
  ]) {
    expect(thrownBy(parse)).toBeInstanceOf(ExpressionSyntaxError);
  }
});

// Out of stack, V8 may end the process instead of throwing: the parser must not come near it.
test.each([
  ["parentheses", "(", "1", ")"],
  ["objects", "({a:", "1", "})"],
  ["lists", "[", "1", "]"],
  ["negations", "!", "1", ""],
  ["sums", "1+", "1", ""],
  ["choices", "1?1:", "1", ""],
  ["choices in choices", "1?", "1", ":1"],
  ["template literals", "`${", "1", "}`"],
  ["tagged templates", "a`${", "1", "}`"],
  ["calls", "f(", "1", ")"],
  ["indexes", "a[", "1", "]"],
  ["optional indexes", "a?.[", "1", "]"],
  ["new", "new ", "a", ""],
  ["powers", "1**", "1", ""],
  ["awaits", "await ", "1", ""],
  ["assignments", "a=", "1", ""],
  ["arrow functions", "a=>", "1", ""],
  ["arrow functions with bodies", "()=>{", "", "}"],
  ["functions", "function(){", "", "}"],
  ["patterns", "({a=", "1", "})"],
  ["classes", "class extends ", "a", "{}"],
  ["class bodies", "class{[", "1", "]=1}"],
  ["dynamic imports", "import(", "1", ")"],
  ["spreads", "[...", "1", "]"],
  ["computed keys", "({[", "1", "]:1})"],
  ["groups of a regular expression", "/(", "", ")/"],
  ["a mixture", "1+-(1?1:`${[", "1", "]}`)"],
])(
  "nesting of %s stops before the stack is used up, deep in it as well",
  (_name, before, middle, after) => {
    const levels = Math.floor(limits.sourceLength / (before.length + after.length));
    const source = before.repeat(levels) + middle + after.repeat(levels);

    const error = deepInTheStack(() => thrownBy(() => parseExpression(source)));

    expect(error).toBeInstanceOf(ExpressionSyntaxError);
    expect((error as ExpressionSyntaxError).problems.map(({ code }) => code)).not.toContain(
      "SYNTAX",
    );
  },
);

test("whatever the source and the data are, the outcome is a value or one of two errors", () => {
  const words = fc.constantFrom(
    ..."input steps event item . ?. [ ] ( ) { } , : ? a` ${ 1 -1 1e308 ... + - / % === == < in !".split(
      " ",
    ),
    ...'&& || ?? => = ; /* */ // \\ " __proto__ constructor size range json sort .repeat'.split(
      " ",
    ),
    ..."'a'|'|\n| |new |class ".split("|"),
  );
  const source = fc.array(words, { maxLength: 25 }).map((parts) => parts.join(""));
  const allowed = [ExpressionError, ExpressionSyntaxError];

  const everything = fc.check(
    fc.property(source, fc.jsonValue(), (text, data) => {
      const values = { now: "2026-01-01T00:00:00.000Z", input: data, steps: data, event: data };
      for (const attempt of [
        () => parseExpression(text, { roots: allRoots }).evaluate(values),
        () => parseTemplate(text, { roots: allRoots, barePaths: true }).evaluate(values),
        () => parseTemplate(`a\${${text}}`, { roots: allRoots }).evaluate(values),
        () => parseTemplate(text, { stringIsExpression: true }).evaluate(values),
      ]) {
        try {
          attempt();
        } catch (error) {
          if (!allowed.some((kind) => error instanceof kind)) throw error;
        }
      }
    }),
    { seed: 20_260_101, numRuns: 5_000 },
  );

  expect(fc.defaultReportMessage(everything) ?? "no counterexample").toBe("no counterexample");
}, 60_000);

test("an array nested too deep in a template is a problem, in $literal as well", () => {
  for (const value of [nested(5_000), { $literal: nested(5_000) }] as readonly Json[]) {
    expect(thrownBy(() => parseTemplate(value))).toMatchObject({
      problems: [{ code: "TOO_DEEP" }],
    });
  }
});

test("the work of a template is bounded as a whole", () => {
  const parts = Array.from({ length: 50 }, () => "${ size(range(5e4)) }");

  expect(
    thrownBy(() => parseTemplate(parts).evaluate({ now: "2026-01-01T00:00:00.000Z" })),
  ).toMatchObject({ code: "WORK_LIMIT" });
});

test("work is counted per evaluation, not per expression", () => {
  const expression = parseExpression("size(range(9e4))");

  const sizes = Array.from({ length: 30 }, () =>
    expression.evaluate({ now: "2026-01-01T00:00:00.000Z" }),
  );

  expect(new Set(sizes)).toEqual(new Set([90_000]));
  expect(limits.work).toBeLessThan(30 * 90_000);
});

test("no attempt has changed what all objects inherit", () => {
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

/** Calls a function when about a third of the stack is in use, more than any caller needs. */
function deepInTheStack<Value>(act: () => Value): Value {
  const descend = (levels: number): Value => (levels === 0 ? act() : descend(levels - 1));
  return descend(Math.floor(stackLevels() / 3));
}

function stackLevels(): number {
  let levels = 0;
  const descend = (): number => ((levels += 1), descend());
  expect(descend).toThrow(RangeError);
  return levels;
}
