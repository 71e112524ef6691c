import { DatabaseUnavailableError } from "./errors.ts";

export interface Resignation {
  /**
   * As the work ends.
   *
   * @throws DatabaseUnavailableError At once where nothing is waited for any more, though the work may be done.
   */
  readonly unless: <T>(work: Promise<T>) => Promise<T>;
  readonly resign: () => void;
}

/** Lets go of whoever waits for a server that neither answers nor hangs up, as one that stands still. */
export function openResignation(): Resignation {
  const waiting = new Set<(error: unknown) => void>();
  let error: DatabaseUnavailableError | undefined;

  return {
    // Each has its own promise: a race against one that lasts would keep all that ever ran in it.
    unless: (work) =>
      new Promise((resolve, reject) => {
        waiting.add(reject);
        const settle = <Value>(tell: (value: Value) => void, value: Value) => {
          waiting.delete(reject);
          tell(value);
        };
        work.then(
          (result) => settle(resolve, result),
          (failure: unknown) => settle(reject, failure),
        );
        if (error !== undefined) reject(error);
      }),
    resign() {
      const why = "Postgres has not answered by the end of this process, and is not waited for";
      error ??= new DatabaseUnavailableError(why, undefined);
      for (const reject of waiting) reject(error);
    },
  };
}
