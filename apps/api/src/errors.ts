import type { ErrorCode, Problem } from "@millrace/contract";

interface ApiErrorOptions {
  readonly cause?: unknown;
  /** Every fault, where there may be several. */
  readonly problems?: readonly Problem[];
  readonly retryAfterSeconds?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of the problem that only this kind has. */
  readonly members?: Readonly<Record<string, unknown>>;
}

/** What the door refuses, before anything else of Millrace sees it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  readonly problems?: readonly Problem[];
  readonly retryAfterSeconds?: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly members: Readonly<Record<string, unknown>>;
  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    if (options.problems) this.problems = options.problems;
    if (options.retryAfterSeconds !== undefined) this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
    this.members = options.members ?? {};
  }
}
