import type { Definition, Reads, Snapshot, TaskCall } from "@millrace/engine";
import type { ClaimedStep, Commit, CommitOutcome } from "@millrace/store";
import type { Services } from "../services.ts";
import type { Beat } from "./beat.ts";
import type { Held } from "./held.ts";
import type { Holdings } from "./holdings.ts";
import type { KnownTask, TaskRegistry } from "./task-registry.ts";

/** What the parts of one worker share. `id` changes when its beat was found stale. */
export interface WorkerState {
  id: string;
  /** Until it beats under its new id: it takes no steps meanwhile. */
  renewal: Promise<unknown> | undefined;
  closing: boolean;
  readonly services: Services;
  readonly registry: TaskRegistry;
  readonly queues: readonly string[];
  /** Steps that it runs alone at a time for each of them. */
  readonly cells: number;
  /** Other steps that it runs at a time. */
  readonly concurrency: number;
  readonly holdings: Holdings;
  /** Puts a commit through, waiting out a database that is away. */
  submit(commit: Commit, attempt: number): Promise<CommitOutcome>;
  /** Whether fewer steps run than may. */
  hasFreeSlot(): boolean;
  /** @param reads As in `Held`; none when absent. */
  hold(step: StepToHold, reads?: Reads): Held;
  /** A handler begins, for whoever must know of it while it keeps the event loop. */
  readonly shows: Beat["shows"];
  /** One at a time for an instance; those that come meanwhile share the next one. */
  takeEnds(instance: string, act: () => Promise<void>): Promise<void>;
}

export interface StepToHold {
  /** When it was asked for, by `performance.now()`: its row has been ours since then, or less long. */
  readonly since: number;
  readonly snapshot: Snapshot;
  readonly definition: Definition;
  readonly step: ClaimedStep;
  readonly call: TaskCall;
  readonly known: KnownTask;
}
