import type { JsonValue } from "@millrace/sdk";

export interface HttpFailureOptions {
  readonly retryable: boolean;
  readonly details: JsonValue;
  readonly cause?: unknown;
}

/** A request that came to nothing, with what the step's policies go by. */
export class HttpFailure extends Error {
  readonly type: string;
  readonly retryable: boolean;
  readonly details: JsonValue;
  constructor(type: string, message: string, { retryable, details, cause }: HttpFailureOptions) {
    super(message, { cause });
    this.type = type;
    this.retryable = retryable;
    this.details = details;
  }
}
