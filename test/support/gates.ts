import type { Ledger } from "@millrace/testkit";

/** Holds the tasks `gate` at the ledger until their gates are opened one by one. */
export interface Gates {
  isWaiting(instanceId: string): boolean;
  /** From here the task's result takes a few milliseconds to its commit. */
  open(instanceId: string): void;
}

export function openGates(ledger: Ledger): Gates {
  const waiting = new Map<string, () => void>();
  ledger.answer({
    when: { step: "gate" },
    until: ({ instance }) => new Promise<void>((resolve) => waiting.set(instance, resolve)),
  });
  return {
    isWaiting: (instanceId) => waiting.has(instanceId),
    open: (instanceId) => waiting.get(instanceId)?.(),
  };
}
