import type { Json } from "@millrace/expressions";
import type { WorkflowError } from "./snapshot.ts";
import type { StepStatus } from "./status.ts";

/** One stored execution, as a decision may read it. */
export interface ExecutionRead {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly status: StepStatus;
  readonly attempt: number;
  readonly fence: number;
  /** Undefined while there is none, or where it was left out. */
  readonly output: Json | undefined;
  /** There is an output, too large to come along unasked. */
  readonly outputLeftOut: boolean;
  readonly error: WorkflowError | null;
  /** Completion number within the instance, null unless COMPLETED. */
  readonly completion: number | null;
  /** Of a task's row: the queue that its jobs travel in. */
  readonly queue: string | null;
}

/** Rows that were loaded for a decision. What was asked for and does not exist is null. */
export interface Reads {
  readonly latest: ReadonlyMap<string, ExecutionRead | null>;
  readonly executions: ReadonlyMap<string, ExecutionRead | null>;
  /** Every execution of the instance is in both maps; outputs over 64 KB may be left out. */
  readonly all: boolean;
}

export type ReadRequest =
  | { readonly kind: "latest"; readonly path: string }
  | { readonly kind: "execution"; readonly path: string; readonly iteration: number }
  | { readonly kind: "all" };

/** The decision cannot be taken without these rows: load them and decide again. */
export interface Needs {
  readonly needs: readonly ReadRequest[];
}

export const noReads: Reads = { latest: new Map(), executions: new Map(), all: false };

/** Both sets of rows; the second wins where they differ. */
export function mergeReads(first: Reads, second: Reads): Reads {
  return {
    latest: new Map([...first.latest, ...second.latest]),
    executions: new Map([...first.executions, ...second.executions]),
    all: first.all || second.all,
  };
}
