/** Redis (or the Postgres that stands in for it) could not take or answer a command in time. Safe to retry. */
export class QueueUnavailableError extends Error {
  override readonly name = "QueueUnavailableError";
  readonly code = "QUEUE_UNAVAILABLE";
  readonly retryable = true;
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: stripped(options.cause) });
  }
}

/** What an error says in one line: some connection errors carry a code and an empty message. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return error.message || code || error.name;
}

/** A reply error of ioredis carries the command it answers, and that of AUTH is the password. */
function stripped(error: unknown): unknown {
  if (error instanceof Error) Reflect.deleteProperty(error, "command");
  return error;
}
