/** A rule that the engine itself must keep is broken: a fault of the engine, never of its input. */
export class InvariantError extends Error {
  readonly code = "INVARIANT";
  constructor(message: string) {
    super(`the engine broke a rule of its own: ${message}`);
    this.name = "InvariantError";
  }
}

export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

export function defined<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new InvariantError(`${what} is missing`);
  return value;
}
