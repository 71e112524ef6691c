import type { Json } from "@millrace/store";

/** A task's input, or what it has returned, is not what it may be. */
export class BadTaskValueError extends Error {
  readonly type: string;
  readonly details: Json;
  readonly retryable: boolean;
  constructor(type: string, message: string, details: Json, retryable: boolean) {
    super(message);
    this.type = type;
    this.details = details;
    this.retryable = retryable;
  }
}
