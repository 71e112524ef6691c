import {
  MillraceApiError,
  MillraceConnectionError,
  MillraceWaitTimeoutError,
} from "@millrace/client";
import type { Problem } from "@millrace/contract";
import { CommandError, messageOf, UsageError } from "./errors.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { printable } from "./output.ts";

/** A failure as a person reads it: what happened, and what to do about it. */
export interface FailureReport {
  readonly exitCode: ExitCode;
  readonly code: string;
  readonly message: string;
  /** Each fault, where there are several. */
  readonly details?: readonly Problem[] | undefined;
  readonly advice?: string | undefined;
}

export function reportOf(error: unknown, apiUrl: string): FailureReport {
  if (error instanceof UsageError) {
    return { exitCode: EXIT.usage, code: "USAGE", message: error.message };
  }
  if (error instanceof CommandError) {
    const { code, message, advice } = error;
    return { exitCode: EXIT.failed, code, message, advice };
  }
  if (error instanceof MillraceConnectionError) {
    return unreachable(apiUrl, error.message.replace(/^\S+ \S+: /, ""));
  }
  if (error instanceof MillraceApiError) return apiReport(error, apiUrl);
  if (error instanceof MillraceWaitTimeoutError) {
    return { exitCode: EXIT.failed, code: "STILL_RUNNING", message: error.message };
  }
  if (error instanceof Error && "code" in error && typeof error.code === "string") {
    return { exitCode: EXIT.failed, code: error.code, message: error.message };
  }
  const stack = error instanceof Error ? error.stack : undefined;
  return { exitCode: EXIT.failed, code: "UNEXPECTED", message: stack ?? messageOf(error) };
}

function unreachable(apiUrl: string, why: string): FailureReport {
  return {
    exitCode: EXIT.unreachable,
    code: "UNREACHABLE",
    message: `no Millrace API at ${apiUrl}: ${why || "it does not answer"}`,
    advice:
      "Start one with `millrace dev`, or say where it is: --api <url>, or MILLRACE_API in the environment.",
  };
}

function apiReport(error: MillraceApiError, apiUrl: string): FailureReport {
  const { title, detail, errors } = error.problem;
  // What stands before the API speaks, a proxy, and says that there is nothing behind it.
  if (["HTTP_502", "HTTP_503", "HTTP_504"].includes(error.code)) {
    return unreachable(apiUrl, `${error.status} ${title}`);
  }
  return {
    exitCode: EXIT.failed,
    code: error.code,
    message: printable(detail.startsWith(title) ? detail : `${title}: ${detail}`),
    details: errors?.map((each) => ({ ...each, message: printable(each.message) })),
    advice: ADVICE[error.code],
  };
}

const ADVICE: Readonly<Record<string, string | undefined>> = {
  WORKFLOW_NOT_FOUND: "Register it first: millrace apply <file>",
  INSTANCE_NOT_FOUND: "List what there is: millrace ls",
  SCHEDULE_NOT_FOUND: "List what there is: millrace schedules",
  DEAD_LETTER_NOT_FOUND: "List what there is: millrace dead-letters --all",
  STATUS_CONFLICT: "See how it stands: millrace show <id>",
  IDEMPOTENCY_CONFLICT:
    "The same key stands for one request; take another key for another request.",
  RESERVED_PATTERN: "Patterns that begin with `workflow.` are Millrace's own; choose another.",
  DATABASE_UNAVAILABLE: "The API runs, its database does not; try again when it is back.",
  ROUTE_NOT_FOUND: "This API does not know the call; is it of the same version as this command?",
};
