import type { Json } from "@millrace/expressions";
import type { Mutable } from "../mutable.ts";
import type { CompensationStatus, InstanceStatus } from "./status.ts";
import { isTerminal } from "./status.ts";

export type JsonObject = { readonly [key: string]: Json };

/** What went wrong with an instance or a step (CONTRACT 2). `attempt` counts from 1. */
export interface WorkflowError {
  readonly kind: "TASK" | "TIMEOUT" | "END" | "EXPRESSION" | "LIMIT" | "DEFINITION" | "POISONED";
  readonly type: string;
  readonly message: string;
  readonly stepId: string | null;
  readonly attempt: number | null;
  readonly details: Json;
}

/** Who asked for a cancel, why, and whether what was done is to be undone. Times are ISO 8601. */
export interface Cancellation {
  readonly reason: string | null;
  readonly requestedBy: string;
  readonly requestedAt: string;
  readonly source: "API" | "EVENT" | "PARENT" | "END";
  readonly eventId?: string;
  readonly shouldCompensate: boolean;
}

/**
 * The saga's progress. `plan` lists compensation step ids in the order in which they run; `targets`
 * names, index by index, the execution that each one undoes. While steps in flight are still awaited
 * the plan is not frozen and empty.
 */
export interface Compensation {
  readonly status: CompensationStatus;
  readonly frozen: boolean;
  readonly plan: readonly string[];
  readonly targets: readonly string[];
  /** Index in the plan of the one that runs, or runs next. */
  readonly next: number;
  readonly completed: readonly string[];
  readonly failed: readonly {
    readonly stepId: string;
    readonly error: WorkflowError;
    readonly timestamp: string;
  }[];
  readonly uncertain: readonly string[];
  /** Execution keys that it has undone, index by index those of `completed`. */
  readonly undone: readonly string[];
  readonly startedAt: string;
  readonly completedAt: string | null;
  /** It stands still: the step that is next has killed its workers, and its dead letter is open. */
  readonly poisoned?: WorkflowError;
}

/** The step execution that started this instance as its child. */
export interface ParentLink {
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  /** False: detached, so that nobody hears of its end. */
  readonly awaited: boolean;
  /** Levels below the instance that nobody started as a child, from 1. */
  readonly depth: number;
}

/** Why nothing of an instance begins for now, and what it goes back to (CONTRACT 2). */
export interface Pause {
  readonly from: InstanceStatus;
  readonly at: string;
  readonly by: string;
  readonly reason: string | null;
  /** When it resumes by itself; null: not before somebody asks. */
  readonly until: string | null;
  /** EXHAUSTED: the retries of a step are spent, and `onExhausted` is PAUSE (CONTRACT 1.3). */
  readonly cause: "REQUEST" | "EXHAUSTED";
}

/** The timers that one execution, or the instance itself, can have running. */
export type TimerKind =
  | "wait"
  | "delay"
  | "total"
  | "schedule"
  | "grace"
  | "continue"
  | "attempt"
  | "retry"
  | "start"
  | "timeout"
  | "resume";

/** The branch or item that an execution belongs to. */
export interface Place {
  /** Of the PARALLEL or MAP. */
  readonly path: string;
  readonly iteration: number;
  /** Name of the branch, index of the item. */
  readonly at: string | number;
  /** Execution key whose output is that of the branch or item, should it end now. */
  readonly last: string | null;
}

/** What has come of the branches of a PARALLEL so far. */
export interface OpenBranches {
  /** By the name of a completed branch the execution key of its output; null where it has none. */
  readonly completed: { readonly [branch: string]: string | null };
  readonly failed: number;
}

/**
 * What has come of the items of a MAP so far. They begin in order, so that those before `next` that are
 * not live have settled: which of them failed is all that has to be kept item by item.
 */
export interface OpenItems {
  readonly count: number;
  /** Index of the item that begins next. */
  readonly next: number;
  readonly completed: number;
  readonly failed: number;
  /** The items that failed, as hexadecimal digits of four items each, lowest bit first. */
  readonly failedItems: string;
  /** The last completion number given before it began. */
  readonly after: number;
}

/**
 * An execution that has not settled.
 *
 * ACTIVE: its row is PENDING, RUNNING or RETRYING; which of them, only the row says, since a claim
 * does not change the snapshot. WAITING: an event wait, a delay, or a child that runs or is to be tried
 * again. AWAITED: it was running when the instance was cancelled or failed, and is given its grace.
 * READY: it is entered by the next decision (a walk that was cut short), without a timer by the one
 * that has a slot. OPEN: a PARALLEL or MAP, whose branches or items are live
 * beside it. HELD: it has settled while the instance was paused, and is left when that ends.
 */
export interface LiveExecution {
  /** As in the snapshot: what a later release has written. */
  readonly others?: JsonObject;
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly phase: "ACTIVE" | "WAITING" | "AWAITED" | "READY" | "OPEN" | "HELD";
  /** User-visible try, from 1. */
  readonly attempt: number;
  /** Timers now set for it. */
  readonly timers: readonly TimerKind[];
  /** Key values of an open wait that read more than the input, so that a change can be noticed. */
  readonly waitKey?: readonly Json[] | "NEVER";
  /**
   * Of a wait for several events those that have not come, by their place: key values where they read
   * more than the input, else null.
   */
  readonly awaiting?: { readonly [place: string]: readonly Json[] | "NEVER" | null };
  /** Execution key of what a compensation step undoes. */
  readonly compensates?: string;
  /** Absent for a step of the definition's own list. */
  readonly within?: Place;
  readonly branches?: OpenBranches;
  readonly items?: OpenItems;
  /** What its step calls, of that which is an expression: what it came to when it was entered. */
  readonly called?: {
    readonly taskId?: string;
    readonly queue?: string;
    readonly workflowId?: string;
  };
  /** Id of the child whose end it waits for. */
  readonly child?: string;
  /** Attempts made before the present round of them: an operator has granted another one. */
  readonly round?: number;
  /** HELD: when it settled. */
  readonly heldAt?: string;
  /** HELD: what it failed with; absent where it completed. */
  readonly error?: WorkflowError;
}

/**
 * Everything that one instance is, step outputs excepted: those stay in the step rows and come to a
 * decision as `Reads`. Only what is live is kept, so that a commit costs the same after ten thousand
 * steps as after one.
 */
export interface Snapshot {
  readonly id: string;
  readonly tenantId: string;
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly correlationId: string | null;
  readonly userId: string | null;
  readonly startEventId: string | null;
  readonly priority: number;
  readonly createdAt: Date;
  /** Null for an instance that was started from outside. */
  readonly parent: ParentLink | null;

  /** Conflict counter: 0 before the first commit, then one more at each. */
  readonly version: number;
  readonly status: InstanceStatus;
  readonly startedAt: Date | null;
  /** When the instance settled. */
  readonly completedAt: Date | null;

  readonly input: Json;
  readonly variables: JsonObject;
  readonly output: Json;
  readonly error: WorkflowError | null;
  readonly cancellation: Cancellation | null;
  readonly compensation: Compensation | null;
  /** Of a PAUSED instance. */
  readonly pause: Pause | null;
  /** Pauses, resumes, retries and patches so far: each names its number, so that it counts once. */
  readonly interventions: number;
  /** How often it has left FAILED by a retry: its own timers name the number at which they were set. */
  readonly reopened: number;
  /**
   * Keys of the limits that concern it, the widest first, joined by spaces; null: that of its workflow
   * alone, where its definition has a `concurrency`, else none.
   */
  readonly limits: string | null;
  /**
   * Of an instance that has a limit: whether it has a slot under it, waits for one, or needs
   * none as long as nothing of it can run.
   */
  readonly slot: "WANTED" | "HELD" | null;
  /** How often it has asked for one: an admission names the number, so that a stale one is void. */
  readonly slotRequests: number;
  /**
   * Since when it has been waiting for the slot, ISO 8601. A pause keeps it, so that the instance comes
   * back to its place in the queue.
   */
  readonly slotWantedAt: string | null;
  /** When it was last put at the head of the queue, ISO 8601; kept as long as `slotWantedAt`. */
  readonly slotPromotedAt: string | null;
  /** Of a FAILED instance, the execution of the definition's own list at which it stood. */
  readonly failedAt: string | null;
  /** What a later release has written and this one does not know: kept as it is. */
  readonly others?: JsonObject;

  /** By execution key. */
  readonly live: { readonly [executionKey: string]: LiveExecution };
  /** Executions so far of steps that can be entered more than once, by path; absent means none. */
  readonly iterations: { readonly [path: string]: number };
  /** The last completion number given. */
  readonly completions: number;
  /** The last entry number given: executions so far inside items of MAPs. */
  readonly entered: number;
  /**
   * What has completed, for progress: steps that are in no MAP, each once however often it is passed,
   * and settled items of MAPs that are in none.
   */
  readonly completedSteps: number;
  /** Paths of those counted steps that can be passed again. */
  readonly countedSteps: readonly string[];
  /** Items of the MAPs that have begun and are in none. */
  readonly begunItems: number;
  /** Execution key whose output is the instance's, should it complete now (CONTRACT 1, `output`). */
  readonly lastOutput: string | null;
  /** Paths of steps of lost branches whose outcome nobody knows, for a compensation to name. */
  readonly uncertain: readonly string[];
  /** Timers of the instance itself that are now set. */
  readonly timers: readonly TimerKind[];
  /** Cancellation triggers now listening: key values by index where they read more than the input. */
  readonly triggerKeys: { readonly [index: string]: readonly Json[] | "NEVER" };
}

/** Field by field: to spread one costs V8 five times as much, where snapshots have come from several places. */
export function copyOfSnapshot(snapshot: Snapshot): Mutable<Snapshot> {
  const copy: Mutable<Snapshot> = {
    id: snapshot.id,
    tenantId: snapshot.tenantId,
    workflowId: snapshot.workflowId,
    workflowVersion: snapshot.workflowVersion,
    correlationId: snapshot.correlationId,
    userId: snapshot.userId,
    startEventId: snapshot.startEventId,
    createdAt: snapshot.createdAt,
    input: snapshot.input,
    parent: snapshot.parent,
    priority: snapshot.priority,
    version: snapshot.version,
    status: snapshot.status,
    startedAt: snapshot.startedAt,
    completedAt: snapshot.completedAt,
    variables: snapshot.variables,
    output: snapshot.output,
    error: snapshot.error,
    cancellation: snapshot.cancellation,
    compensation: snapshot.compensation,
    live: snapshot.live,
    iterations: snapshot.iterations,
    completions: snapshot.completions,
    entered: snapshot.entered,
    completedSteps: snapshot.completedSteps,
    countedSteps: snapshot.countedSteps,
    begunItems: snapshot.begunItems,
    lastOutput: snapshot.lastOutput,
    uncertain: snapshot.uncertain,
    timers: snapshot.timers,
    triggerKeys: snapshot.triggerKeys,
    pause: snapshot.pause,
    interventions: snapshot.interventions,
    reopened: snapshot.reopened,
    limits: snapshot.limits,
    slot: snapshot.slot,
    slotRequests: snapshot.slotRequests,
    slotWantedAt: snapshot.slotWantedAt,
    slotPromotedAt: snapshot.slotPromotedAt,
    failedAt: snapshot.failedAt,
  };
  if (snapshot.others !== undefined) copy.others = snapshot.others;
  return copy;
}

/** `path#iteration`: names one execution within its instance. Iterations count from 1. */
export function executionKey(path: string, iteration: number): string {
  return `${path}#${iteration}`;
}

/** Nothing but an explicit retry or abandon changes a settled instance (CONTRACT 2). */
export function isSettled(snapshot: Snapshot): boolean {
  return isTerminal(snapshot.status) && snapshot.compensation?.status !== "IN_PROGRESS";
}
