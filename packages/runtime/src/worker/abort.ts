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
  return new LazyAbort();
}

/** A class, so that its getters are not made anew for each attempt. */
class LazyAbort implements Abort {
  private controller: AbortController | undefined;
  private aborted: Error | undefined;
  private readonly listeners: (() => void)[] = [];

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.aborted !== undefined) this.controller.abort(this.aborted);
    }
    return this.controller.signal;
  }

  get reason(): Error | undefined {
    return this.aborted;
  }

  abort(reason: Error): void {
    if (this.aborted !== undefined) return;
    this.aborted = reason;
    this.controller?.abort(reason);
    for (const listener of this.listeners) listener();
  }

  onAbort(listener: () => void): void {
    if (this.aborted === undefined) this.listeners.push(listener);
    else listener();
  }
}
