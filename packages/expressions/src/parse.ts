/**
 * Source to checked tree. Acorn reads all of JavaScript's expressions; what is not named in `nodeOf`
 * does not pass. Behind this file nothing sees acorn's nodes.
 */
import type * as acorn from "acorn";
import { whereIn } from "./errors.ts";
import type { Problem, ProblemCode } from "./errors.ts";
import { findFunction, functionNames } from "./functions.ts";
import { readExpression, Refusal } from "./grammar.ts";
import { limits } from "./limits.ts";
import { findMethod, methodNames } from "./methods.ts";
import { nearNames } from "./near-names.ts";
import { isForbidden } from "./properties.ts";
import { arityOf } from "./spec.ts";
import { binaryOperators, unaryOperators } from "./tree.ts";
import type { Element, Node, ObjectMember } from "./tree.ts";

export interface Parsed {
  /** The tree; where there are problems it has gaps and must not be evaluated. */
  readonly tree: Node;
  /** Offset behind the expression and the blanks after it; undefined where the syntax is lost. */
  readonly end: number | undefined;
  readonly problems: readonly Problem[];
}

/**
 * Parses the expression at the start of a text; it ends where JavaScript's grammar ends it.
 *
 * @param text At least one character longer than an expression may be, where there is that much.
 * @returns Every problem, not only the first, as far as the syntax can be followed.
 */
export function parseStart(text: string, roots: readonly string[]): Parsed {
  const reader: Reader = { source: text, roots: new Set(roots), problems: [] };
  let tree: acorn.Expression;
  try {
    tree = readExpression(text);
  } catch (error) {
    return lost(syntaxProblem(error, text));
  }
  if (tree.end > limits.sourceLength) return lost(tooLong(text));
  const checked = nodeOf(reader, tree, 0);
  return { tree: checked, end: skipBlanks(text, tree.end), problems: reader.problems };
}

/** Parses a text that is one expression and nothing else. */
export function parseWhole(text: string, roots: readonly string[]): Parsed {
  if (text.length > limits.sourceLength) return lost(tooLong(text));
  if (text.trim() === "") return lost(problem("EMPTY", "the expression is empty", text, 0));
  const parsed = parseStart(text, roots);
  if (parsed.end === undefined || parsed.end === text.length) return parsed;
  const what = "the expression has ended before this; only one is taken, and no statements";
  return { ...parsed, problems: [...parsed.problems, problem("SYNTAX", what, text, parsed.end)] };
}

/** Whether a text is one expression by its grammar, allowed here or not. */
export function looksLikeExpression(text: string): boolean {
  return parseWhole(text, []).end === text.length;
}

interface Reader {
  readonly source: string;
  readonly roots: ReadonlySet<string>;
  readonly problems: Problem[];
}

function nodeOf(reader: Reader, node: acorn.AnyNode, depth: number): Node {
  if (depth >= limits.depth) {
    // Once is enough: whatever is deeper is too deep as well.
    if (!reader.problems.some(({ code }) => code === "TOO_DEEP")) {
      report(reader, "TOO_DEEP", tooDeepText, node.start);
    }
    return gap(node.start);
  }
  const { start, end } = node;
  const below = (child: acorn.AnyNode): Node => nodeOf(reader, child, depth + 1);
  switch (node.type) {
    case "ParenthesizedExpression":
      return below(node.expression);
    case "ChainExpression":
      return nodeOf(reader, node.expression, depth);
    case "Literal":
      return literalOf(reader, node);
    case "Identifier":
      return rootOf(reader, node);
    case "MemberExpression":
      return memberOf(reader, node, below);
    case "CallExpression":
      return callOf(reader, node, below);
    case "UnaryExpression": {
      const operator = unaryOperators.find((known) => known === node.operator);
      if (operator === undefined) return refuse(reader, node, `the operator ${node.operator}`);
      return { kind: "unary", operator, operand: below(node.argument), start, end };
    }
    case "BinaryExpression": {
      const operator = binaryOperators.find((known) => known === node.operator);
      if (operator === undefined) return refuse(reader, node, `the operator ${node.operator}`);
      return {
        kind: "binary",
        operator,
        left: below(node.left),
        right: below(node.right),
        start,
        end,
      };
    }
    case "LogicalExpression": {
      const { operator } = node;
      return {
        kind: "logical",
        operator,
        left: below(node.left),
        right: below(node.right),
        start,
        end,
      };
    }
    case "ConditionalExpression": {
      const [test, consequent] = [below(node.test), below(node.consequent)];
      return {
        kind: "conditional",
        test,
        consequent,
        alternate: below(node.alternate),
        start,
        end,
      };
    }
    case "ArrayExpression": {
      const elements = node.elements.map((element) => elementOf(reader, node, element, below));
      return { kind: "array", elements, start, end };
    }
    case "ObjectExpression": {
      const members = node.properties.map((property) => objectMemberOf(reader, property, below));
      return { kind: "object", members, start, end };
    }
    case "TemplateLiteral": {
      const texts = node.quasis.map(({ value }) => value.cooked ?? "");
      return { kind: "text", texts, values: node.expressions.map(below), start, end };
    }
    default:
      return refuse(reader, node, refusals[node.type] ?? "this");
  }
}

type Below = (child: acorn.AnyNode) => Node;

function literalOf(reader: Reader, node: acorn.Literal): Node {
  const { value, start, end } = node;
  if (node.bigint != null || typeof value === "bigint")
    return refuse(reader, node, "a big integer");
  if (value === null || value === undefined || typeof value === "object") {
    return { kind: "literal", value: null, start, end };
  }
  return { kind: "literal", value, start, end };
}

function rootOf(reader: Reader, node: acorn.Identifier): Node {
  const { name, start, end } = node;
  if (name === "undefined") return { kind: "literal", value: undefined, start, end };
  if (isForbidden(name)) return forbidden(reader, name, start);
  if (reader.roots.has(name)) return { kind: "root", name, start, end };
  const known = [...reader.roots];
  const hint =
    findFunction(name) === undefined
      ? suggestion(name, known, `the roots here are ${known.join(", ")}`)
      : `it is a function: write ${name}(…)`;
  report(reader, "UNKNOWN_ROOT", `there is no root ${JSON.stringify(name)} here; ${hint}`, start);
  return gap(start);
}

function memberOf(reader: Reader, node: acorn.MemberExpression, below: Below): Node {
  const { start, end } = node;
  const object = below(node.object);
  if (!node.computed) {
    if (node.property.type !== "Identifier") return refuse(reader, node, "a private name");
    const key = node.property.name;
    if (isForbidden(key)) return forbidden(reader, key, node.property.start);
    return { kind: "member", object, key, start, end };
  }
  const key = below(node.property);
  const literal = literalKey(key);
  if (literal === undefined) return { kind: "computed", object, key, start, end };
  if (isForbidden(literal)) return forbidden(reader, literal, node.property.start);
  return { kind: "member", object, key: literal, start, end };
}

/** A key in brackets that is the same whatever the values are. */
function literalKey(key: Node): string | undefined {
  if (key.kind === "literal" && key.value !== undefined) return String(key.value);
  if (key.kind === "text" && key.values.length === 0) return key.texts.join("");
  return undefined;
}

function callOf(reader: Reader, node: acorn.CallExpression, below: Below): Node {
  const { start, end } = node;
  const values = node.arguments.map((argument) =>
    argument.type === "SpreadElement"
      ? refuse(reader, argument, "... in a call", "functions of many values take a list too")
      : below(argument),
  );
  if (node.optional) return refuse(reader, node, "?.(…)");
  const callee = unwrap(node.callee);
  if (callee.type === "Identifier") return functionCallOf(reader, node, callee.name, values);
  if (callee.type !== "MemberExpression") return refuse(reader, node, "a call of a value");
  const object = below(callee.object);
  const name = methodNameOf(callee, below);
  if (name === undefined) return refuse(reader, node, "a call of a computed name");
  if (isForbidden(name)) return forbidden(reader, name, callee.property.start);
  const method = findMethod(name);
  if (method === undefined) {
    const hint = functionTaking.has(name)
      ? "it takes a function, and there are none here: use pluck(), where(), find(), sort(), or a MAP step"
      : suggestion(name, methodNames, `the methods are ${methodNames.join(", ")}`);
    const what = `there is no method ${JSON.stringify(name)}; ${hint}`;
    report(reader, "UNKNOWN_METHOD", what, callee.property.start);
    return gap(start);
  }
  const variants = [method.string, method.array, method.number]
    .filter((variant) => variant !== undefined)
    .map(({ parameters }) => parameters);
  checkArity(reader, node, name, variants, values.length);
  return { kind: "method", object, name, arguments: values, start, end };
}

function methodNameOf(callee: acorn.MemberExpression, below: Below): string | undefined {
  if (callee.computed) return literalKey(below(callee.property));
  return callee.property.type === "Identifier" ? callee.property.name : undefined;
}

function functionCallOf(
  reader: Reader,
  { start, end, ...node }: acorn.CallExpression,
  name: string,
  values: readonly Node[],
): Node {
  if (isForbidden(name)) return forbidden(reader, name, start);
  const specification = findFunction(name);
  if (specification === undefined) {
    const hint = suggestion(name, functionNames, `the functions are ${functionNames.join(", ")}`);
    report(
      reader,
      "UNKNOWN_FUNCTION",
      `there is no function ${JSON.stringify(name)}; ${hint}`,
      start,
    );
    return gap(start);
  }
  checkArity(reader, { start, end, ...node }, name, [specification.parameters], values.length);
  return { kind: "call", name, arguments: values, start, end };
}

function checkArity(
  reader: Reader,
  { start }: acorn.Node,
  name: string,
  variants: readonly string[],
  given: number,
): void {
  const fits = variants.some((parameters) => {
    const { least, most } = arityOf(parameters);
    return given >= least && given <= most;
  });
  if (fits) return;
  const forms = variants.map((parameters) => `${name}(${parameters})`).join(" or ");
  report(reader, "WRONG_ARGUMENTS", `${name} got ${given} arguments and is ${forms}`, start);
}

function elementOf(
  reader: Reader,
  array: acorn.Node,
  element: acorn.Expression | acorn.SpreadElement | null,
  below: Below,
): Element {
  if (element === null) return { spread: false, value: refuse(reader, array, "a gap in a list") };
  if (element.type === "SpreadElement") return { spread: true, value: below(element.argument) };
  return { spread: false, value: below(element) };
}

function objectMemberOf(
  reader: Reader,
  property: acorn.Property | acorn.SpreadElement,
  below: Below,
): ObjectMember {
  if (property.type === "SpreadElement") return { kind: "spread", value: below(property.argument) };
  if (property.kind !== "init" || property.method) {
    return { kind: "spread", value: refuse(reader, property, "a method or accessor") };
  }
  const value = below(property.value);
  if (property.computed) {
    const node = below(property.key);
    const literal = literalKey(node);
    if (literal === undefined) return { kind: "computed", key: node, value };
    return staticMember(reader, literal, value, property.key.start);
  }
  const key = property.key.type === "Identifier" ? property.key.name : literalName(property.key);
  if (key === undefined) {
    return { kind: "spread", value: refuse(reader, property.key, "a key of this kind") };
  }
  return staticMember(reader, key, value, property.key.start);
}

function literalName(key: acorn.Expression): string | undefined {
  return key.type === "Literal" && key.bigint == null ? String(key.value) : undefined;
}

function staticMember(reader: Reader, key: string, value: Node, offset: number): ObjectMember {
  if (isForbidden(key)) forbidden(reader, key, offset);
  return { kind: "static", key, value };
}

function unwrap(node: acorn.Expression | acorn.Super): acorn.Expression | acorn.Super {
  let inner = node;
  while (inner.type === "ParenthesizedExpression" || inner.type === "ChainExpression") {
    inner = inner.expression;
  }
  return inner;
}

/** What is left out of JavaScript, by the name a reader knows it by. */
const refusals: Readonly<Record<string, string>> = {
  ArrowFunctionExpression: "a function",
  FunctionExpression: "a function",
  ClassExpression: "a class",
  AssignmentExpression: "an assignment",
  UpdateExpression: "++ or --",
  NewExpression: "new",
  SequenceExpression: "a comma between expressions",
  TaggedTemplateExpression: "a tagged template",
  ThisExpression: "this",
  Super: "super",
  MetaProperty: "a meta property",
  ImportExpression: "import",
  AwaitExpression: "await",
  YieldExpression: "yield",
};

const functionTaking: ReadonlySet<string> = new Set([
  "every",
  "filter",
  "find",
  "findIndex",
  "findLast",
  "findLastIndex",
  "flatMap",
  "forEach",
  "map",
  "match",
  "matchAll",
  "reduce",
  "reduceRight",
  "some",
  "sort",
  "toSorted",
]);

function refuse(reader: Reader, node: acorn.Node, what: string, instead?: string): Node {
  const hint = instead === undefined ? "" : `; ${instead}`;
  report(reader, "NOT_ALLOWED", `${what} ${notPartOfIt}${hint}`, node.start);
  return gap(node.start);
}

function forbidden(reader: Reader, key: string, offset: number): Node {
  const what = `the name ${JSON.stringify(key)} is never accessible; rename it where the data is made`;
  report(reader, "FORBIDDEN_PROPERTY", what, offset);
  return gap(offset);
}

function suggestion(name: string, known: readonly string[], otherwise: string): string {
  const near = nearNames(name, known);
  return near.length === 0 ? otherwise : `did you mean ${near.join(" or ")}?`;
}

function report(reader: Reader, code: ProblemCode, what: string, offset: number): void {
  reader.problems.push(problem(code, what, reader.source, offset));
}

export function problem(code: ProblemCode, what: string, source: string, offset: number): Problem {
  return { code, message: `${what} (${whereIn(source, offset)})`, offset };
}

function syntaxProblem(error: unknown, text: string): Problem {
  if (error instanceof Refusal) {
    const { found, offset } = error;
    if (found === undefined) return problem("TOO_DEEP", tooDeepText, text, offset);
    return problem("NOT_ALLOWED", `${found} ${notPartOfIt}`, text, offset);
  }
  if (!(error instanceof SyntaxError)) throw error;
  const offset = "pos" in error && typeof error.pos === "number" ? error.pos : 0;
  // A text that was cut off breaks at its end, or where the string or comment starts that it cuts.
  const atEnd = offset >= limits.sourceLength || error.message.startsWith("Unterminated");
  if (text.length > limits.sourceLength && atEnd) return tooLong(text);
  const what = error.message.replace(/ \(\d+:\d+\)$/, "");
  return problem("SYNTAX", `this is not an expression: ${what}`, text, offset);
}

function tooLong(text: string): Problem {
  const what = `the expression is longer than ${limits.sourceLength} characters; compute parts in SET steps`;
  return problem("TOO_LONG", what, text, 0);
}

const notPartOfIt = "is not part of the expression language";

const tooDeepText = `the expression is nested deeper than ${limits.depth} levels; compute parts in SET steps`;

function lost(found: Problem): Parsed {
  return { tree: gap(found.offset), end: undefined, problems: [found] };
}

/** Stands where something was refused. */
function gap(offset: number): Node {
  return { kind: "literal", value: undefined, start: offset, end: offset };
}

function skipBlanks(source: string, offset: number): number {
  blanks.lastIndex = offset;
  blanks.exec(source);
  return blanks.lastIndex;
}

/** Blanks and comments, as acorn skips them. */
const blanks = /(?:\s|\/\*[^]*?\*\/|\/\/[^\n\r\u2028\u2029]*)*/y;
