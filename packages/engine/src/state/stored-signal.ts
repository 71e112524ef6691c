import type { Json } from "@millrace/expressions";
import type { Decision } from "./decision.ts";
import type { Signal, WorkingTime } from "./signal.ts";
import { executionKey } from "./snapshot.ts";

/** A signal as the history keeps it: the output of a step is in its row. */
export type StoredSignal =
  | Exclude<Signal, { kind: "stepSucceeded" } | { kind: "childEnded" } | { kind: "scheduled" }>
  | Omit<Extract<Signal, { kind: "stepSucceeded" }>, "output">
  | Omit<Extract<Signal, { kind: "childEnded" }>, "output">
  | { readonly kind: "scheduled"; readonly startAt: string };

export function storedSignal(signal: Signal): StoredSignal {
  switch (signal.kind) {
    case "stepSucceeded": {
      const { kind, path, iteration, attempt } = signal;
      return { kind, path, iteration, attempt };
    }
    case "childEnded": {
      const { output: _inItsRow, ...rest } = signal;
      return rest;
    }
    case "scheduled":
      return { kind: "scheduled", startAt: signal.startAt.toISOString() };
    default:
      return signal;
  }
}

/**
 * @param outputOf The stored output of an execution, by its key.
 * @returns The signal as it was decided upon.
 */
export function restoredSignal(
  stored: StoredSignal,
  outputOf: (executionKey: string) => Json,
): Signal {
  switch (stored.kind) {
    case "stepSucceeded":
      return { ...stored, output: outputOf(executionKey(stored.path, stored.iteration)) };
    case "childEnded": {
      const isCompleted = stored.status === "COMPLETED";
      const output = isCompleted ? outputOf(executionKey(stored.path, stored.iteration)) : null;
      return { ...stored, output };
    }
    case "scheduled":
      return { kind: "scheduled", startAt: new Date(stored.startAt) };
    default:
      return stored;
  }
}

/** The signals of a commit as the history keeps them: what the decision relied on comes before them. */
export function signalsToKeep(
  { observedRunning: executions, workingTimes }: Decision,
  signals: readonly Signal[],
): readonly Signal[] {
  if (executions.length === 0 && workingTimes === undefined) return signals;
  return [
    ...(executions.length === 0 ? [] : [{ kind: "observedRunning", executions } as const]),
    ...(workingTimes === undefined ? [] : [{ kind: "calendarsAsked", workingTimes } as const]),
    ...signals,
  ];
}

/** What the calendars had said to a decision that is taken again. */
export function workingTimesOf(signals: readonly Signal[]): ReadonlyMap<string, WorkingTime> {
  return new Map(
    signals.flatMap((signal) =>
      signal.kind === "calendarsAsked" ? Object.entries(signal.workingTimes) : [],
    ),
  );
}
