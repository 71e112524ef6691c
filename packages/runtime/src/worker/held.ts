import type { Definition, Reads, Snapshot, TaskCall } from "@millrace/engine";
import type { ClaimedStep, HeldStep } from "@millrace/store";
import type { TaskContext } from "@millrace/sdk";
import type { Abort } from "./abort.ts";
import type { KnownTask } from "./task-registry.ts";

/** A step execution that this worker holds, and all that running it takes. */
export interface Held {
  /** Under which id this worker took it: what the row says while it is still ours. */
  readonly workerId: string;
  /** When it was asked for, by `performance.now()`. */
  readonly since: number;
  readonly snapshot: Snapshot;
  readonly definition: Definition;
  readonly step: ClaimedStep;
  readonly call: TaskCall;
  readonly known: KnownTask;
  /** Aborted when the result no longer counts, or only counts for the compensation. */
  readonly abort: Abort;
  /** Made when it is asked for. */
  readonly log: () => TaskContext["logger"];
  /** Rows of this instance that the chain has met, valid at the snapshot's version. */
  readonly reads: Reads;
  reportProgress(progress: unknown): void;
  /** Ends this process, in which nothing can be relied on any more, before it stores what is wrong. */
  mistrust(why: string): Promise<never>;
}

/** As its row says who holds it. */
export function heldStepOf({ snapshot, step }: Pick<Held, "snapshot" | "step">): HeldStep {
  const { path, iteration, fence } = step;
  return { tenantId: snapshot.tenantId, instanceId: snapshot.id, path, iteration, fence };
}
