import type { JsonValue } from "@millrace/contract";

/** In the global registry, so that the error of a second copy of the SDK is recognised too. */
const BRAND: unique symbol = Symbol.for("millrace.TaskError");

export interface TaskErrorOptions {
  /** Default true: tried again as the step's retry policy says. */
  readonly retryable?: boolean | undefined;
  /** Shown with the step and readable as `steps.<id>.error.details`. */
  readonly details?: JsonValue | undefined;
  readonly cause?: unknown;
}

/** A failure with a name that `onError` and `nonRetryableErrors` can go by. */
export class TaskError extends Error {
  override readonly name = "TaskError";
  readonly [BRAND] = true;
  readonly type: string;
  readonly retryable: boolean;
  readonly details: JsonValue | undefined;

  constructor(type: string, message: string, options: TaskErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.type = type;
    this.retryable = options.retryable ?? true;
    this.details = options.details;
  }
}

/** Whether this is a `TaskError` of any copy of the SDK. */
export function isTaskError(error: unknown): error is TaskError {
  return memberOf(error, BRAND) === true;
}

/** The name that policies go by: `error.type ?? error.name`; `Error` for what is no error at all. */
export function errorNameOf(error: unknown): string {
  for (const name of [memberOf(error, "type"), memberOf(error, "name")]) {
    if (typeof name === "string" && name !== "") return name;
  }
  return "Error";
}

/** False only where the thrown object says so. */
export function retryableOf(error: unknown): boolean {
  return memberOf(error, "retryable") !== false;
}

export function errorMessageOf(error: unknown): string {
  const message = memberOf(error, "message");
  if (typeof message === "string") return message;
  try {
    return typeof error === "string" ? error : (JSON.stringify(error) ?? String(error));
  } catch {
    return "an error that cannot be shown";
  }
}

/** Whatever the thrown object has as `details`. Not known to be JSON. */
export function errorDetailsOf(error: unknown): unknown {
  return memberOf(error, "details");
}

/** A task may throw anything, objects whose members throw included. */
function memberOf(value: unknown, key: PropertyKey): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    return undefined;
  }
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}
