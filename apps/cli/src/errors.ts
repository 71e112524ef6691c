/** The command line is wrong. The message says what, and what would be right. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command could not do what it was asked for; `advice` is what to try next. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly code: string;
  readonly advice: string | undefined;

  constructor(code: string, message: string, options: { advice?: string; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.advice = options.advice;
  }
}

export function messageOf(error: unknown): string {
  if (error instanceof Error && "code" in error && "syscall" in error) {
    if (error.code === "EISDIR") return "is a folder, not a file";
    // The system's own words, as "ENOENT: no such file or directory, open '/a'", say it twice.
    return /^E[A-Z]+: ([^,]+),/.exec(error.message)?.[1] ?? error.message;
  }
  return error instanceof Error ? error.message : String(error);
}
