/**
 * A value that an expression gave at run time is not what its place needs: not a duration, not a
 * time, not an event pattern. It becomes an error of kind EXPRESSION (CONTRACT 2).
 */
export class BadValueError extends Error {
  override readonly name = "BadValueError";
  readonly code = "BAD_VALUE";
}

/**
 * A document that does not hold together reached a place that takes only validated ones. Registration
 * validates every document, so this is a fault of the caller or of the store.
 */
export class DefinitionError extends Error {
  override readonly name = "DefinitionError";
  readonly code = "BAD_DEFINITION";
}
