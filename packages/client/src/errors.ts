import type { InstanceView, ProblemDetails } from "@millrace/contract";

/** Whatever a call of the client can fail with, an aborted signal apart. */
export abstract class MillraceClientError extends Error {}

/** The API answered with a problem. Go by `code`; the message is for people. */
export class MillraceApiError extends MillraceClientError {
  override readonly name = "MillraceApiError";
  readonly status: number;
  readonly code: string;
  readonly problem: ProblemDetails;
  /** Seconds after which the API asks to be called again; `undefined` when it did not ask. */
  readonly retryAfterSeconds: number | undefined;

  constructor(problem: ProblemDetails, retryAfterSeconds?: number) {
    super(describe(problem));
    this.status = problem.status;
    this.code = problem.code;
    this.problem = problem;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No answer, or none that is the API's: it cannot be told whether the call had its effect. */
export class MillraceConnectionError extends MillraceClientError {
  override readonly name = "MillraceConnectionError";
  readonly method: string;
  readonly url: string;

  constructor(method: string, url: string, why: string, options?: ErrorOptions) {
    super(`${method} ${url}: ${why}`, options);
    this.method = method;
    this.url = url;
  }
}

/** The instance was not settled in the time that the caller gave; it goes on. */
export class MillraceWaitTimeoutError extends MillraceClientError {
  override readonly name = "MillraceWaitTimeoutError";
  /** As last read. */
  readonly instance: InstanceView;

  constructor(instance: InstanceView, timeoutMs: number) {
    super(`instance ${instance.id} is still ${instance.status} after ${timeoutMs} ms`);
    this.instance = instance;
  }
}

/** Problems that one message lists; all are in `problem.errors`. */
const SHOWN = 5;

function describe({ title, detail, code, errors = [] }: ProblemDetails): string {
  const lines = errors.slice(0, SHOWN).map(({ path, message }) => `\n  ${path || "/"}: ${message}`);
  const more = errors.length > SHOWN ? [`\n  and ${errors.length - SHOWN} more`] : [];
  return `${title}: ${detail} (${code})${[...lines, ...more].join("")}`;
}
