/** What can be wrong with a source. Stable: these are the `code` of a definition's problems. */
export type ProblemCode =
  | "EMPTY"
  | "SYNTAX"
  | "NOT_ALLOWED"
  | "UNKNOWN_ROOT"
  | "UNKNOWN_FUNCTION"
  | "UNKNOWN_METHOD"
  | "WRONG_ARGUMENTS"
  | "FORBIDDEN_PROPERTY"
  | "COMPUTED_STEPS"
  | "TOO_LONG"
  | "TOO_MANY"
  | "TOO_DEEP"
  | "UNCLOSED"
  | "BAD_LITERAL";

/** What is allowed but hardly meant. */
export type WarningCode = "UNKNOWN_PROPERTY" | "NEVER_EQUAL" | "LOOKS_LIKE_PATH";

/** One thing that is wrong with a source. */
export interface Problem {
  readonly code: ProblemCode;
  /** What is wrong, where, and what to do. */
  readonly message: string;
  /** Position in the source, or in the template's string, in UTF-16 units from 0. */
  readonly offset: number;
  /** JSON pointer of the string inside the template's value; absent for a lone expression. */
  readonly pointer?: string;
}

/** Like `Problem`, but the source stands. */
export interface Warning {
  readonly code: WarningCode;
  readonly message: string;
  readonly offset: number;
  readonly pointer?: string;
}

/** A source that is not an expression of this language. Carries everything that is wrong with it. */
export class ExpressionSyntaxError extends Error {
  override readonly name = "ExpressionSyntaxError";
  readonly code = "EXPRESSION_SYNTAX";
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map(({ message }) => message).join("; "));
    this.problems = problems;
  }
}

/** What can go wrong while an expression is evaluated. */
export type ExpressionErrorCode =
  /** More work than `limits.work`. */
  | "WORK_LIMIT"
  /** A string longer than `limits.stringLength`. */
  | "STRING_TOO_LONG"
  /** An array or object with more members than `limits.arrayLength`. */
  | "ARRAY_TOO_LONG"
  /** A result larger than `limits.resultSize`. */
  | "RESULT_TOO_LARGE"
  /** A value nested deeper than `limits.resultDepth`. */
  | "TOO_DEEP"
  /** NaN, Infinity, a lone surrogate or another value that JSON (or jsonb) has no form for. */
  | "NOT_JSON"
  /** `__proto__`, `prototype` or `constructor` as a computed key. */
  | "FORBIDDEN_PROPERTY"
  /** A method that values of this type do not have. */
  | "NO_SUCH_METHOD"
  /** A function, method or spread that got a value it cannot work on. */
  | "BAD_ARGUMENT";

/** An expression that failed on the values it was given. The same values fail again. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly code: ExpressionErrorCode;
  readonly retryable = false;
  /** The expression: in a template without the text around it. */
  readonly source: string;
  /** Position in `source` of the operation that failed. */
  readonly offset: number;
  /** JSON pointer of the string inside the template's value; absent for a lone expression. */
  readonly pointer: string | undefined;
  constructor(
    code: ExpressionErrorCode,
    what: string,
    place: { readonly source: string; readonly offset: number; readonly pointer?: string },
    cause?: unknown,
  ) {
    super(
      `${what} (${whereIn(place.source, place.offset)})`,
      cause === undefined ? undefined : { cause },
    );
    this.code = code;
    this.source = place.source;
    this.offset = place.offset;
    this.pointer = place.pointer;
  }
}

/** A place in a source as people read it: `at 12 in "… + foo(x)"`. */
export function whereIn(source: string, offset: number): string {
  const start = source.length <= excerptLength ? 0 : Math.max(0, offset - 20);
  const excerpt = source.slice(start, start + excerptLength);
  const before = start > 0 ? "…" : "";
  const after = start + excerptLength < source.length ? "…" : "";
  return `at ${offset} in ${JSON.stringify(before + excerpt + after)}`;
}

const excerptLength = 60;
