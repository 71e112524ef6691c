import { analyse } from "./analyse.ts";
import { compile } from "./compile.ts";
import type { CompileOptions } from "./compile.ts";
import { ExpressionError, ExpressionSyntaxError } from "./errors.ts";
import type { Problem, Warning } from "./errors.ts";
import { limits } from "./limits.ts";
import { parseWhole } from "./parse.ts";
import type { Parsed } from "./parse.ts";
import type { Reads } from "./reads.ts";
import { Failure, startRun } from "./run.ts";
import type { Code, Scope } from "./run.ts";
import type { Node } from "./tree.ts";

/** A parsed expression: compiled once, evaluated often. */
export interface Expression {
  readonly source: string;
  readonly reads: Reads;
  /** What is allowed but hardly meant, such as a property that can never be there. */
  readonly warnings: readonly Warning[];
  /**
   * The value for one scope. Pure: same scope, same value; the scope is never changed. The value may
   * be undefined or NaN, as conditions want it; a Template checks that its result is JSON.
   *
   * @param work Units that it may cost; `limits.work` by default.
   * @throws ExpressionError when the values break a limit or are of a wrong type.
   */
  evaluate(scope: Scope, work?: number): unknown;
}

export interface ExpressionOptions {
  /**
   * Roots that may be named; any other identifier is a problem. Default: all but event, item and
   * index. A name beyond the known ones, as the `itemName` of a MAP, is read from the scope.
   */
  readonly roots?: readonly string[];
  /**
   * The rule of an eventCondition (CONTRACT 1.2): an `===` or `==` with a side that is undefined is
   * false wherever it stands, so that a missing correlation never matches. Default false.
   */
  readonly undefinedNeverEqual?: boolean;
}

/**
 * Parses and compiles one expression.
 *
 * @throws ExpressionSyntaxError carrying every problem of the source.
 */
export function parseExpression(source: string, options: ExpressionOptions = {}): Expression {
  const built = build(parseWhole(source, rootsOf(options)), source, options);
  if (built.problems.length > 0) throw new ExpressionSyntaxError(built.problems);
  return toExpression(built, source, options);
}

const defaultRoots: readonly string[] = ["workflow", "input", "variables", "steps"];

export function rootsOf({ roots = defaultRoots }: ExpressionOptions): readonly string[] {
  return roots;
}

/** A parsed source with all that is known about it; `code` only runs where there are no problems. */
export interface Built {
  readonly tree: Node;
  readonly end: number | undefined;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
  readonly reads: Reads;
  readonly code: Code;
  readonly rules: CompileOptions;
}

export function build(parsed: Parsed, source: string, options: ExpressionOptions): Built {
  const { tree, end } = parsed;
  const rules = { undefinedNeverEqual: options.undefinedNeverEqual ?? false };
  const analysis = analyse(tree, source, rules);
  const { reads, warnings } = analysis;
  const problems = [...parsed.problems, ...analysis.problems].toSorted(
    (left, right) => left.offset - right.offset,
  );
  return { tree, end, problems, warnings, reads, code: compile(tree, rules), rules };
}

export function toExpression(built: Built, source: string, options: ExpressionOptions): Expression {
  const { code, reads, warnings, tree, rules } = built;
  const expression: Expression = {
    source,
    reads,
    warnings,
    evaluate(scope, work) {
      const run = startRun(scope, work);
      try {
        return code(run);
      } catch (error) {
        throw asExpressionError(error, { source, offset: run.at });
      }
    },
  };
  origins.set(expression, { tree, options, rules });
  return expression;
}

/** The tree and rules behind an expression. Kept aside so that trees stay inside this package. */
export function originOf(expression: Expression): Origin {
  const origin = origins.get(expression);
  if (origin === undefined) throw new TypeError("not an expression made by parseExpression");
  return origin;
}

export interface Origin {
  readonly tree: Node;
  readonly options: ExpressionOptions;
  readonly rules: CompileOptions;
}

const origins = new WeakMap<Expression, Origin>();

/** Gives a failure its place. Anything else that is thrown is a defect, and is passed on. */
export function asExpressionError(
  error: unknown,
  place: { readonly source: string; readonly offset: number; readonly pointer?: string },
): unknown {
  if (error instanceof Failure) return new ExpressionError(error.code, error.message, place);
  // The one error of the engine itself that data can cause: a value nested too deep to walk over.
  if (error instanceof RangeError) {
    const what = `a value is nested deeper than ${limits.resultDepth} levels or too large`;
    return new ExpressionError("TOO_DEEP", what, place, error);
  }
  return error;
}
