/** Wakes one who looks again and again. */
export interface Bell {
  ring(): void;
  /**
   * Until it rings, or has rung since the last time, or the time is up, or `signal` is aborted.
   *
   * @returns Whether it rang.
   */
  next(ms: number, signal?: AbortSignal): Promise<boolean>;
}

/** Remembers a ring that comes while nobody waits, so that none falls between two looks. */
export function openBell(): Bell {
  let hasRung = false;
  let wake: (() => void) | undefined;
  return {
    ring() {
      hasRung = true;
      wake?.();
    },
    next: (ms, signal) =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", done);
          wake = undefined;
          resolve(hasRung);
          hasRung = false;
        };
        const timer = setTimeout(done, ms);
        wake = done;
        signal?.addEventListener("abort", done);
        if (hasRung || signal?.aborted === true) done();
      }),
  };
}
