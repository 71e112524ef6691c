import type { EventFact, ExecutionRef, Signal } from "../state/signal.ts";

/** What is still to happen, in order of time; of what is due at one moment, what was added first. */
export interface Agenda {
  /** @param at Milliseconds on the virtual clock. */
  add(at: number, happening: Happening): void;
  /** Takes the place of what has that key already. */
  setTimer(key: string, at: number, happening: Happening): void;
  clearTimer(key: string): void;
  /** Leaves what the scenario or the instance has sent: nothing else comes of one that has settled. */
  settle(): void;
  /** The next one, which stays. */
  peek(): Due | undefined;
  remove(due: Due): void;
}

export interface Due {
  readonly at: number;
  readonly happening: Happening;
}

export type Happening =
  | ({ readonly kind: "signal" } & Told)
  /** The cancel of the scenario. */
  | { readonly kind: "cancel" }
  /** A worker takes a step. */
  | { readonly kind: "take"; readonly ref: ExecutionRef }
  /** An event of the scenario arrives. */
  | { readonly kind: "event"; readonly index: number }
  /** An event that the instance has emitted arrives; waits in `deaf` do not hear it. */
  | { readonly kind: "emitted"; readonly event: EventFact; readonly deaf: ReadonlySet<string> };

/** Signals for one decision, and what the transcript says of it. */
export interface Told {
  readonly what: string;
  readonly signals: readonly Signal[];
}

export function openAgenda(): Agenda {
  const all = new Set<Due>();
  const timers = new Map<string, Due>();

  const add = (at: number, happening: Happening): Due => {
    const due = { at, happening };
    all.add(due);
    return due;
  };
  const clearTimer = (key: string): void => {
    const due = timers.get(key);
    if (due !== undefined) all.delete(due);
    timers.delete(key);
  };
  return {
    add: (at, happening) => void add(at, happening),
    setTimer(key, at, happening) {
      clearTimer(key);
      timers.set(key, add(at, happening));
    },
    clearTimer,
    settle() {
      for (const due of all) if (!isSent(due.happening)) all.delete(due);
      timers.clear();
    },
    peek() {
      let first: Due | undefined;
      for (const due of all) if (first === undefined || due.at < first.at) first = due;
      return first;
    },
    remove: (due) => void all.delete(due),
  };
}

function isSent({ kind }: Happening): boolean {
  return kind === "cancel" || kind === "event" || kind === "emitted";
}
