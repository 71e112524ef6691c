/**
 * JSON values with expressions in them (CONTRACT 1.2, "Values with expressions").
 *
 * - `"${ expr }"` with nothing around it is the value of the expression, with its type;
 * - `"id-${ expr }"` is text; a missing value adds nothing to it;
 * - `{ "$literal": x }` is x, untouched;
 * - with `barePaths`, a string that is wholly a path below `workflow.` or `event.` is an expression.
 */
import { ExpressionSyntaxError } from "./errors.ts";
import type { Problem, ProblemCode, Warning } from "./errors.ts";
import { asExpressionError, build, rootsOf } from "./expression.ts";
import type { Built, ExpressionOptions } from "./expression.ts";
import { startBudget, toJson } from "./json.ts";
import type { Budget } from "./json.ts";
import { limits } from "./limits.ts";
import { looksLikeExpression, parseAt, parseWhole, problem } from "./parse.ts";
import { setOwn } from "./properties.ts";
import { mergeReads } from "./reads.ts";
import type { Reads } from "./reads.ts";
import { chargeNewText, startRun } from "./run.ts";
import type { Run, Scope } from "./run.ts";
import { toText } from "./values.ts";

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
   * @throws ExpressionError with the `pointer` of the string that failed.
   */
  evaluate(scope: Scope): unknown;
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
  const parser: Parser = { options, problems: [], warnings: [], reads: [] };
  const part =
    options.stringIsExpression === true && typeof value === "string"
      ? wholeString(parser, value)
      : partOf(parser, value, []);
  if (parser.problems.length > 0) throw new ExpressionSyntaxError(parser.problems);
  return {
    reads: mergeReads(parser.reads),
    warnings: parser.warnings,
    isConstant: part.constant,
    evaluate: (scope) => part.evaluate({ run: startRun(scope), budget: startBudget() }),
  };
}

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
  evaluate(evaluation: Evaluation): unknown;
}

type Path = readonly (string | number)[];

function partOf(parser: Parser, value: Json, path: Path): Part {
  if (typeof value === "string") return stringPart(parser, value, path);
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

function arrayPart(parser: Parser, value: readonly Json[], path: Path): Part {
  const parts = value.map((element, index) => partOf(parser, element, [...path, index]));
  return {
    constant: parts.every((part) => part.constant),
    evaluate: (evaluation) => parts.map((part) => part.evaluate(evaluation) ?? null),
  };
}

function objectPart(parser: Parser, value: Readonly<Record<string, Json>>, path: Path): Part {
  const parts = Object.entries(value).map(
    ([key, member]) => [key, partOf(parser, member, [...path, key])] as const,
  );
  return {
    constant: parts.every(([, part]) => part.constant),
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
  return { constant: true, evaluate: () => value };
}

/** A string that stands for a whole input: an expression, unless it only holds some. */
function wholeString(parser: Parser, text: string): Part {
  if (text.includes("${") && !looksLikeExpression(text)) return stringPart(parser, text, []);
  return expressionPart(parser, text, []);
}

function stringPart(parser: Parser, text: string, path: Path): Part {
  const { barePaths = false } = parser.options;
  if (barePaths && barePath.test(text)) return expressionPart(parser, text, path, orLiteral(text));
  if (!text.includes("${")) {
    if (barePaths && almostBarePath.test(text)) warnAlmostPath(parser, text, path);
    return constant(text);
  }
  const pieces = piecesOf(parser, text, path);
  const [only, ...others] = pieces;
  if (only === undefined) return constant(text);
  if (others.length === 0 && typeof only !== "string") return valuePart(only, text, path);
  return textPart(pieces, text, path);
}

function warnAlmostPath(parser: Parser, text: string, path: Path): void {
  const what = `${JSON.stringify(text)} is text: a path is made of names, [0] and ['key']`;
  const message = `${what}; write "\${ … }" for an expression${orLiteral(text)}`;
  parser.warnings.push({ code: "LOOKS_LIKE_PATH", message, offset: 0, pointer: pointerOf(path) });
}

function orLiteral(text: string): string {
  return `; write { "$literal": ${JSON.stringify(text)} } where it is meant as text`;
}

/** The texts and expressions that a string is made of. */
function piecesOf(parser: Parser, text: string, path: Path): readonly (string | Built)[] {
  const pieces: (string | Built)[] = [];
  let position = 0;
  for (;;) {
    const opening = text.indexOf("${", position);
    if (opening < 0) break;
    if (opening > position) pieces.push(text.slice(position, opening));
    const piece = embedded(parser, text, opening, path);
    if (piece === undefined) return [];
    pieces.push(piece);
    position = piece.end + 1;
  }
  if (position < text.length) pieces.push(text.slice(position));
  return pieces;
}

/** The expression behind `${`; its `end` is at the `}`. Undefined where the syntax is lost. */
function embedded(
  parser: Parser,
  text: string,
  opening: number,
  path: Path,
): (Built & { readonly end: number }) | undefined {
  const start = opening + 2;
  const { options } = parser;
  if (/^\s*\}/.test(text.slice(start, start + limits.sourceLength))) {
    report(parser, path, problem("EMPTY", "the expression in ${ } is empty", text, opening));
    return undefined;
  }
  if (text.indexOf("}", start) < 0) {
    report(parser, path, problem("UNCLOSED", "the ${ is never closed by a }", text, opening));
    return undefined;
  }
  const built = build(parseAt(text, start, rootsOf(options)), text, options);
  collect(parser, built, path);
  if (built.end === undefined) return undefined;
  if (text[built.end] === "}") return { ...built, end: built.end };
  const what = "the expression in ${ } must end with a } here";
  report(parser, path, problem("SYNTAX", what, text, built.end));
  return undefined;
}

function expressionPart(parser: Parser, text: string, path: Path, hint = ""): Part {
  const built = build(parseWhole(text, rootsOf(parser.options)), text, parser.options);
  collect(parser, built, path, hint);
  return valuePart(built, text, path);
}

function valuePart({ code }: Built, source: string, path: Path): Part {
  const depth = path.length;
  return placed(source, path, ({ run, budget }) => toJson(budget, code(run), depth));
}

function textPart(pieces: readonly (string | Built)[], source: string, path: Path): Part {
  return placed(source, path, ({ run, budget }) => {
    let result = "";
    for (const piece of pieces) {
      const value = typeof piece === "string" ? piece : piece.code(run);
      if (value === undefined) continue;
      const text = toText(run, value);
      chargeNewText(run, result.length + text.length);
      result += text;
    }
    return toJson(budget, result);
  });
}

/** A part whose failures say where in the template they happened. */
function placed(source: string, path: Path, evaluate: Part["evaluate"]): Part {
  const pointer = pointerOf(path);
  return {
    constant: false,
    evaluate(evaluation) {
      evaluation.run.at = 0;
      try {
        return evaluate(evaluation);
      } catch (error) {
        throw asExpressionError(error, { source, offset: evaluation.run.at, pointer });
      }
    },
  };
}

function collect(parser: Parser, built: Built, path: Path, hint = ""): void {
  const pointer = pointerOf(path);
  parser.reads.push(built.reads);
  for (const { message, ...found } of built.problems) {
    parser.problems.push({ ...found, message: message + hint, pointer });
  }
  for (const { message, ...found } of built.warnings) {
    parser.warnings.push({ ...found, message: message + hint, pointer });
  }
}

function report(parser: Parser, path: Path, found: Problem): void {
  parser.problems.push({ ...found, pointer: pointerOf(path) });
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
