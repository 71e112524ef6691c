/**
 * A value that an expression gave at run time is not what its place needs: not a duration, not a
 * time, not an event pattern. It becomes an error of kind EXPRESSION (CONTRACT 2).
 */
export class BadValueError extends Error {
  override readonly name: string = "BadValueError";
  readonly code: string = "BAD_VALUE";
}

/** A step would go beyond one of Millrace's own bounds. It becomes an error of kind LIMIT. */
export class LimitError extends BadValueError {
  override readonly name = "LimitError";
  override readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * A document that does not hold together reached a place that takes only validated ones. Registration
 * validates every document, so this is a fault of the caller or of the store.
 */
export class DefinitionError extends Error {
  override readonly name = "DefinitionError";
  readonly code = "BAD_DEFINITION";
}
