/**
 * Tells a handler to stop. The `AbortSignal` is made when somebody asks for it: most handlers never
 * do, and making one and listening to it costs some 7 µs, more than a decision.
 */
export interface Abort {
  readonly signal: AbortSignal;
  /** Undefined until it is aborted. */
  readonly reason: Error | undefined;
  abort(reason: Error): void;
  /** Calls back when it is aborted, at once where that has happened. */
  onAbort(listener: () => void): void;
}

export function openAbort(): Abort {
  let controller: AbortController | undefined;
  let aborted: Error | undefined;
  const listeners: (() => void)[] = [];
  return {
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        if (aborted !== undefined) controller.abort(aborted);
      }
      return controller.signal;
    },
    get reason() {
      return aborted;
    },
    abort(reason) {
      if (aborted !== undefined) return;
      aborted = reason;
      controller?.abort(reason);
      for (const listener of listeners) listener();
    },
    onAbort(listener) {
      if (aborted === undefined) listeners.push(listener);
      else listener();
    },
  };
}
