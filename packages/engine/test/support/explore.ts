import type { Definition } from "../../src/definition/definition.ts";
import type { Signal } from "../../src/state/signal.ts";
import { executionKey, isSettled } from "../../src/state/snapshot.ts";
import type { Stored } from "./laws.ts";
import { claimed, commit, created, noon } from "./simulation.ts";

/** Every order in which the given signals, each as often as it likes, can reach an instance. */
export interface Exploration {
  /** Every state that can be reached, by what tells it from the others. */
  readonly states: ReadonlyMap<string, Stored>;
  readonly settled: readonly Stored[];
  /** Signals that changed something, per state that they led out of. */
  readonly moves: readonly {
    readonly from: Stored;
    readonly signal: Signal;
    readonly to: Stored;
  }[];
}

/**
 * Begins an instance, then tries every signal and every claim in every state. The clock stands still, so that states that were
 * reached in different ways are one; that a signal is late or repeated is just another try.
 */
export function explore(definition: Definition, signals: readonly Signal[]): Exploration {
  const start = commit(definition, created(definition), [{ kind: "started" }], noon).stored;
  const states = new Map([[nameOf(start), start]]);
  const moves: Exploration["moves"][number][] = [];
  // A map hands out what is added while it is walked.
  for (const from of states.values()) {
    for (const key of from.instance.executions.keys()) add(states, claimed(from, key));
    for (const signal of signals) {
      if (!canCome(from, signal)) continue;
      const { stored: to } = commit(definition, from, [signal], noon);
      if (to === from) continue;
      moves.push({ from, signal, to });
      add(states, to);
    }
  }
  const settled = [...states.values()].filter(({ instance }) => isSettled(instance.snapshot));
  return { states, settled, moves };
}

/** Nobody reports on an attempt that no worker has taken: the commit checks who holds the row. */
function canCome({ instance }: Stored, signal: Signal): boolean {
  if (!("attempt" in signal) || signal.kind === "timerFired") return true;
  const row = instance.executions.get(executionKey(signal.path, signal.iteration));
  return (
    row?.attempt !== signal.attempt || row.status !== (row.attempt > 1 ? "RETRYING" : "PENDING")
  );
}

function add(states: Map<string, Stored>, stored: Stored): void {
  const name = nameOf(stored);
  if (!states.has(name)) states.set(name, stored);
}

/** What the future depends on: all but the number of commits and of claims. */
function nameOf({ instance }: Stored): string {
  const { version: _version, ...snapshot } = instance.snapshot;
  const rows = [...instance.executions.values()].map(({ fence: _fence, ...row }) => row);
  return JSON.stringify([snapshot, rows]);
}
