/**
 * JSON values with expressions in them (CONTRACT 1.2, "Values with expressions").
 *
 * - `"${ expr }"` with nothing around it is the value of the expression, with its type;
 * - `"id-${ expr }"` is text; a missing value adds nothing to it;
 * - `{ "$literal": x }` is x, untouched;
 * - with `barePaths`, a string that is wholly a path below `workflow.` or `event.` is an expression.
 */
import { ExpressionError, ExpressionSyntaxError } from "./errors.ts";
import type { Problem, ProblemCode, Warning } from "./errors.ts";
import { asExpressionError, build, rootsOf } from "./expression.ts";
import type { CompileOptions } from "./compile.ts";
import type { Built, ExpressionOptions } from "./expression.ts";
import { failingPart, isFixed } from "./failing-parts.ts";
import { infer } from "./infer.ts";
import type { Known, Report } from "./infer.ts";
import { startBudget, toJson } from "./json.ts";
import type { Budget } from "./json.ts";
import { limits } from "./limits.ts";
import { looksLikeExpression, parseStart, parseWhole, problem } from "./parse.ts";
import { setOwn } from "./properties.ts";
import { mergeReads } from "./reads.ts";
import type { Reads } from "./reads.ts";
import { chargeNewText, startRun } from "./run.ts";
import type { Code, Run, Scope } from "./run.ts";
import { anything, either, listOf, objectOf, ofType } from "./shape.ts";
import type { Shape } from "./shape.ts";
import type { Node } from "./tree.ts";
import { toText, typeOf } from "./values.ts";

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/** A JSON value with expressions in it, parsed once. */
export interface Template {
  readonly reads: Reads;
  readonly warnings: readonly Warning[];
  /** There is no expression in it: every evaluation gives the same value. */
  readonly isConstant: boolean;
  /**
   * The value for one scope, which is JSON: bounded, without NaN or Infinity. A value that is
   * undefined leaves its key out of an object and is null in an array; the whole may be undefined.
   * Parts may be shared with the template and the scope: treat it as read-only.
   *
   * @param work Units that the whole may cost; `limits.work` by default.
   * @throws ExpressionError with the `pointer` of the string that failed.
   */
  evaluate(scope: Scope, work?: number): unknown;
}

export interface TemplateOptions extends ExpressionOptions {
  /**
   * A string that is wholly a path below `workflow.` or `event.` is an expression: for input,
   * payload, output, variables, error and reason values. Default false.
   */
  readonly barePaths?: boolean;
  /**
   * A value that is itself a string is one expression, with or without `${ }`: for the input of
   * tasks and compensation steps. Default false.
   */
  readonly stringIsExpression?: boolean;
}

/**
 * Parses a value with expressions.
 *
 * @throws ExpressionSyntaxError carrying every problem, each with the `pointer` of its string.
 */
export function parseTemplate(value: Json, options: TemplateOptions = {}): Template {
  const { template, problems } = parseSoundParts(value, options);
  if (problems.length > 0) throw new ExpressionSyntaxError(problems);
  return template;
}

/**
 * What can be parsed of a value: a string that has a problem hides nothing but itself. Where there are
 * problems the template is for `inspect` and `failuresOf` alone, and must not be evaluated.
 */
export function parseSoundParts(
  value: Json,
  options: TemplateOptions = {},
): { readonly template: Template; readonly problems: readonly Problem[] } {
  const parser: Parser = { options, problems: [], warnings: [], reads: [] };
  const part = partOf(parser, value, []);
  const { problems } = parser;
  const broken = new Set(problems.map(({ pointer }) => pointer));
  const template: Template = {
    reads: mergeReads(parser.reads),
    warnings: parser.warnings.filter(({ pointer }) => !broken.has(pointer)),
    isConstant: part.constant,
    evaluate: (scope, work) => part.evaluate({ run: startRun(scope, work), budget: startBudget() }),
  };
  partsBehind.set(template, part);
  return { template, problems };
}

const partsBehind = new WeakMap<Template, Part>();

/** The shape of a template's value. Reports, each with the pointer of its string, on the way. */
export function shapeOfTemplate(template: Template, known: Known, report: PlacedReport): Shape {
  return partBehind(template).shape(known, report);
}

/** Of each expression in it what fails in every run. @param run Of no values. */
export function failuresInTemplate(template: Template, run: Run): readonly ExpressionError[] {
  return partBehind(template).failures(run);
}

function partBehind(template: Template): Part {
  const part = partsBehind.get(template);
  if (part === undefined) throw new TypeError("not a template made by parseTemplate");
  return part;
}

export type PlacedReport = (pointer: string) => Report;

interface Parser {
  readonly options: TemplateOptions;
  readonly problems: Problem[];
  readonly warnings: Warning[];
  readonly reads: Reads[];
}

/** Work and size are those of the whole template: many small parts cost as much as a large one. */
interface Evaluation {
  readonly run: Run;
  readonly budget: Budget;
}

interface Part {
  readonly constant: boolean;
  shape(known: Known, report: PlacedReport): Shape;
  failures(run: Run): readonly ExpressionError[];
  evaluate(evaluation: Evaluation): unknown;
}

type Path = readonly (string | number)[];

function partOf(parser: Parser, value: Json, path: Path): Part {
  if (typeof value === "string") return soundPart(parser, value, path);
  if (typeof value !== "object" || value === null) return constant(value);
  if (path.length >= limits.resultDepth) {
    reportWhole(parser, path, "TOO_DEEP", tooDeepText);
    return constant(null);
  }
  if (Array.isArray(value)) return arrayPart(parser, value as readonly Json[], path);
  const object = value as Readonly<Record<string, Json>>;
  if (Object.hasOwn(object, "$literal")) return literalPart(parser, object, path);
  return objectPart(parser, object, path);
}

function soundPart(parser: Parser, text: string, path: Path): Part {
  const before = parser.problems.length;
  const isWhole = path.length === 0 && parser.options.stringIsExpression === true;
  const part = isWhole ? wholeString(parser, text) : stringPart(parser, text, path);
  return parser.problems.length === before ? part : unknown;
}

/** A string that has a problem: whatever it was meant to be. */
const unknown: Part = {
  constant: false,
  shape: () => anything,
  failures: () => [],
  evaluate() {
    throw new TypeError("a template with problems is not evaluated");
  },
};

function arrayPart(parser: Parser, value: readonly Json[], path: Path): Part {
  const parts = value.map((element, index) => partOf(parser, element, [...path, index]));
  return {
    constant: parts.every((part) => part.constant),
    shape(known, report) {
      const shapes = parts.map((part) => part.shape(known, report));
      return listOf(() => shapes.reduce(either, anything));
    },
    failures: (run) => parts.flatMap((part) => part.failures(run)),
    evaluate: (evaluation) => parts.map((part) => part.evaluate(evaluation) ?? null),
  };
}

function objectPart(parser: Parser, value: Readonly<Record<string, Json>>, path: Path): Part {
  const parts = Object.entries(value).map(
    ([key, member]) => [key, partOf(parser, member, [...path, key])] as const,
  );
  return {
    constant: parts.every(([, part]) => part.constant),
    shape: (known, report) =>
      objectOf(
        Object.fromEntries(parts.map(([key, part]) => [key, part.shape(known, report)])),
        anything,
      ),
    failures: (run) => parts.flatMap(([, part]) => part.failures(run)),
    evaluate(evaluation) {
      const result: Record<string, unknown> = {};
      for (const [key, part] of parts) {
        const member = part.evaluate(evaluation);
        if (member !== undefined) setOwn(result, key, member);
      }
      return result;
    },
  };
}

function literalPart(parser: Parser, value: Readonly<Record<string, Json>>, path: Path): Part {
  const literal = value["$literal"];
  if (Object.keys(value).length > 1) {
    reportWhole(parser, path, "BAD_LITERAL", `"$literal" must be the only key of its object`);
  }
  if (isDeeper(literal, limits.resultDepth - path.length)) {
    reportWhole(parser, path, "TOO_DEEP", tooDeepText);
  }
  return constant(literal);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels <= 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

function constant(value: unknown): Part {
  return {
    constant: true,
    shape: () => shapeOfJson(value),
    failures: () => [],
    evaluate: () => value,
  };
}

function shapeOfJson(value: unknown): Shape {
  const type = typeOf(value);
  return type === "foreign" ? anything : ofType(type);
}

/** A string that stands for a whole input: an expression, unless it only holds some. */
function wholeString(parser: Parser, text: string): Part {
  if (text.includes("${") && !looksLikeExpression(text)) return stringPart(parser, text, []);
  return expressionPart(parser, text, []);
}

function stringPart(parser: Parser, text: string, path: Path): Part {
  const barePaths = parser.options.barePaths === true && text.length <= limits.sourceLength;
  if (barePaths && barePath.test(text)) return expressionPart(parser, text, path, orLiteral(text));
  if (!text.includes("${")) {
    if (barePaths && almostBarePath.test(text)) warnAlmostPath(parser, text, path);
    return constant(text);
  }
  const pieces = piecesOf(parser, text, path);
  const [only, ...others] = pieces;
  if (only === undefined) return constant(text);
  if (others.length === 0 && typeof only !== "string") return valuePart(only, path);
  return textPart(text, pieces, path);
}

function warnAlmostPath(parser: Parser, text: string, path: Path): void {
  const what = `${JSON.stringify(text)} is text: a path is made of names, [0] and ['key']`;
  const message = `${what}; write "\${ … }" for an expression${orLiteral(text)}`;
  parser.warnings.push({ code: "LOOKS_LIKE_PATH", message, offset: 0, pointer: pointerOf(path) });
}

function orLiteral(text: string): string {
  return `; write { "$literal": ${JSON.stringify(text)} } where it is meant as text`;
}

/** An expression and its source. */
interface Embedded {
  readonly source: string;
  readonly tree: Node;
  readonly code: Code;
  readonly rules: CompileOptions;
}

/** The texts and expressions that a string is made of; nothing where the syntax is lost. */
function piecesOf(parser: Parser, text: string, path: Path): readonly (string | Embedded)[] {
  const pieces: (string | Embedded)[] = [];
  let position = 0;
  for (;;) {
    const opening = text.indexOf("${", position);
    if (opening < 0) break;
    if (opening > position) pieces.push(text.slice(position, opening));
    const start = opening + 2;
    // Cut off, so that a long string with many expressions is not walked over for each of them.
    const rest = text.slice(start, start + limits.sourceLength + 1);
    const built = embedded(parser, rest, start, path);
    if (built?.end === undefined) return [];
    const { tree, code, rules } = built;
    pieces.push({ source: rest.slice(0, built.end), tree, code, rules });
    position = start + built.end + 1;
  }
  if (position < text.length) pieces.push(text.slice(position));
  return pieces;
}

/** The expression at the start of `rest`, up to its `}`. Undefined where the syntax is lost. */
function embedded(parser: Parser, rest: string, start: number, path: Path): Built | undefined {
  const found = (code: ProblemCode, what: string, offset: number): undefined => {
    reportAt(parser, path, start, problem(code, what, rest, offset));
  };
  if (/^\s*\}/.test(rest)) return found("EMPTY", "the expression in ${ } is empty", 0);
  if (rest.length <= limits.sourceLength && !rest.includes("}")) {
    return found("UNCLOSED", "the ${ is not closed by a }", 0);
  }
  if (!isAllowedOneMore(parser, path)) return undefined;
  const built = build(parseStart(rest, rootsOf(parser.options)), rest, parser.options);
  collect(parser, built, path, start);
  if (built.end === undefined || rest[built.end] === "}") return built;
  return found("SYNTAX", "the expression in ${ } must end with a } here", built.end);
}

function expressionPart(parser: Parser, text: string, path: Path, hint = ""): Part {
  if (!isAllowedOneMore(parser, path)) return unknown;
  const built = build(parseWhole(text, rootsOf(parser.options)), text, parser.options);
  collect(parser, built, path, 0, hint);
  const { tree, code, rules } = built;
  return valuePart({ source: text, tree, code, rules }, path);
}

function valuePart(expression: Embedded, path: Path): Part {
  const pointer = pointerOf(path);
  const depth = path.length;
  return {
    constant: false,
    shape: (known, report) => infer(expression.tree, expression.source, known, report(pointer)),
    failures: (run) =>
      failuresIn(expression, pointer, run, (value) => toJson(startBudget(), value, depth)),
    evaluate: ({ run, budget }) =>
      placed(run, expression.source, pointer, () => toJson(budget, expression.code(run), depth)),
  };
}

/** @param take What becomes of its value, which can fail as well. */
function failuresIn(
  { source, tree, code, rules }: Embedded,
  pointer: string,
  run: Run,
  take: (value: unknown) => unknown,
): readonly ExpressionError[] {
  if (!isFixed(tree)) {
    const found = failingPart(tree, rules, run);
    if (found === undefined) return [];
    const { failure, offset } = found;
    return [new ExpressionError(failure.code, failure.message, { source, offset, pointer })];
  }
  if (run.work <= 0) return [];
  try {
    placed(run, source, pointer, () => take(code(run)));
    return [];
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return error.code === "WORK_LIMIT" ? [] : [error];
  }
}

function textPart(source: string, pieces: readonly (string | Embedded)[], path: Path): Part {
  const pointer = pointerOf(path);
  return {
    constant: false,
    shape(known, report) {
      for (const piece of pieces) {
        if (typeof piece !== "string") infer(piece.tree, piece.source, known, report(pointer));
      }
      return ofType("string");
    },
    failures: (run) =>
      pieces.flatMap((piece) =>
        typeof piece === "string"
          ? []
          : failuresIn(piece, pointer, run, (value) => value === undefined || toText(run, value)),
      ),
    evaluate({ run, budget }) {
      let result = "";
      for (const piece of pieces) {
        if (typeof piece === "string") result += piece;
        else {
          result += placed(run, piece.source, pointer, () => {
            const value = piece.code(run);
            const text = value === undefined ? "" : toText(run, value);
            chargeNewText(run, result.length + text.length);
            return text;
          });
        }
      }
      return placed(run, source, pointer, () => toJson(budget, result));
    },
  };
}

/** Runs what may fail; the failure says where in the template it happened. */
function placed<Value>(run: Run, source: string, pointer: string, evaluate: () => Value): Value {
  run.at = 0;
  try {
    return evaluate();
  } catch (error) {
    throw asExpressionError(error, { source, offset: run.at, pointer });
  }
}

/** Takes over what is known of an expression that starts at `start` of its string. */
function collect(parser: Parser, built: Built, path: Path, start: number, hint = ""): void {
  const pointer = pointerOf(path);
  parser.reads.push(built.reads);
  for (const found of built.problems) {
    parser.problems.push({ ...shifted(found, start, hint), pointer });
  }
  for (const found of built.warnings) {
    parser.warnings.push({ ...shifted(found, start, hint), pointer });
  }
}

/** Whether another expression may be parsed; reports the first that may not. */
function isAllowedOneMore(parser: Parser, path: Path): boolean {
  if (parser.reads.length < limits.expressions) return true;
  if (!parser.problems.some(({ code }) => code === "TOO_MANY")) {
    const what = `the value holds more than ${limits.expressions} expressions`;
    reportWhole(parser, path, "TOO_MANY", `${what}; compute parts in SET steps`);
  }
  return false;
}

function shifted<Found extends Problem | Warning>(
  found: Found,
  start: number,
  hint: string,
): Found {
  return { ...found, offset: start + found.offset, message: found.message + hint };
}

function reportAt(parser: Parser, path: Path, start: number, found: Problem): void {
  parser.problems.push({ ...shifted(found, start, ""), pointer: pointerOf(path) });
}

/** A problem of a whole value rather than of a string in it. */
function reportWhole(parser: Parser, path: Path, code: ProblemCode, message: string): void {
  parser.problems.push({ code, message, offset: 0, pointer: pointerOf(path) });
}

const tooDeepText = `the value is nested deeper than ${limits.resultDepth} levels`;

/** RFC 6901 */
function pointerOf(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

const barePath =
  /^(?:workflow|event)\.[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*|\[\d+\]|\['[^'\\]*'\]|\["[^"\\]*"\])*$/;

/** What starts like a path below data but is none, as `workflow.steps.my-step.output`. */
const almostBarePath = /^(?:workflow\.(?:input|variables|steps|instance)|event\.payload)\.\S+$/;
