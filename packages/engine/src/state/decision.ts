import type { Json } from "@millrace/expressions";
import type { ChildEnd, WorkingTime } from "./signal.ts";
import type { ParentLink, Snapshot, TimerKind, WorkflowError } from "./snapshot.ts";
import type { StepStatus } from "./status.ts";

/** What has come of the items of a MAP. */
export interface ItemCounts {
  readonly count: number;
  readonly completed: number;
  readonly failed: number;
}

/** A step row to be written for the first time. */
export interface NewExecution {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: StepStatus;
  readonly attempt: number;
  /** TASK only; null otherwise. */
  readonly taskId: string | null;
  readonly queue: string | null;
  readonly priority: number;
  /** Undefined: the instance's input. */
  readonly input: Json | undefined;
  readonly output: Json | undefined;
  readonly error: WorkflowError | null;
  readonly completion: number | null;
  /** Of one inside an item of a MAP its number among all such of the instance, as they were entered; else null. */
  readonly entry: number | null;
  /** MAP only. */
  readonly items?: ItemCounts | undefined;
  /** Milliseconds that one attempt may run; null for the task's own limit or none. */
  readonly timeoutMs: number | null;
  readonly heartbeatTimeoutMs: number | null;
  /** Null until a worker takes it; set at once for steps that no worker runs. */
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  /** Execution key of what a compensation step undoes. */
  readonly compensates: string | null;
}

/** What a step row that exists becomes. Null takes the place of what was there. */
export interface ExecutionUpdate {
  readonly path: string;
  readonly iteration: number;
  readonly status: StepStatus;
  readonly attempt: number;
  /** Undefined: as it was. */
  readonly output: Json | undefined;
  /** Of a FAILED step, or of the last attempt while RETRYING; null once it has gone well. */
  readonly error: WorkflowError | null;
  readonly completion: number | null;
  readonly items?: ItemCounts | undefined;
  readonly completedAt: Date | null;
  /** RETRYING: when the next attempt may start. */
  readonly retryAt: Date | null;
  /** It was in flight at a cancel and is given its grace: nobody may take it over. */
  readonly awaited: boolean;
}

/**
 * An open wait, or a cancellation trigger (`purpose` CANCEL, `path` "$cancel", `iteration` its index).
 *
 * `eventPaths` and `key` are the equality conjuncts of the condition: paths below `event`, joined by
 * dots, and the instance's values for them, side by side. "NEVER": a side is missing or is no scalar,
 * so that no event can match until it changes. Empty paths: every event of the pattern is a candidate.
 */
export interface NewWait {
  readonly path: string;
  readonly iteration: number;
  readonly stepId: string | null;
  readonly purpose: "STEP" | "CANCEL";
  readonly pattern: string;
  readonly eventPaths: readonly string[];
  readonly key: readonly Json[] | "NEVER";
  readonly deliver: "ALL" | "ONE";
  /** Events received from then on, before the wait opened, also satisfy it; null: none. */
  readonly lookbackFrom: Date | null;
  /** Events that the same decision emits before: it opens after them, and does not hear them. */
  readonly emittedBefore?: number;
}

/** An event that the instance emits. The id says which execution it is of, so that it comes once. */
export interface EmittedEvent {
  readonly id: string;
  readonly pattern: string;
  readonly payload: Json;
}

/**
 * What the commit must find true of rows that the version does not guard, else it writes nothing:
 * a step row that still has this status and fence, or a wait that no event has taken.
 */
export type Guard =
  | {
      readonly kind: "execution";
      readonly path: string;
      readonly iteration: number;
      readonly status: StepStatus;
      readonly fence: number;
    }
  | { readonly kind: "waitUnmatched"; readonly path: string; readonly iteration: number };

/** One effect of a decision beside the snapshot and the step rows. */
export type Command =
  | {
      /** After the commit: a job for this attempt, delayed for a retry. */
      readonly kind: "dispatch";
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly taskId: string;
      readonly queue: string;
      readonly priority: number;
      readonly delayMs: number;
    }
  | { readonly kind: "openWait"; readonly wait: NewWait }
  | {
      readonly kind: "rekeyWait";
      readonly path: string;
      readonly iteration: number;
      readonly key: readonly Json[] | "NEVER";
    }
  | {
      readonly kind: "closeWait";
      readonly path: string;
      readonly iteration: number;
      /** Of `deliver: ONE`: an event that has taken it was not applied, and is for another wait. */
      readonly handsOn?: true;
    }
  | {
      readonly kind: "setTimer";
      readonly timer: TimerKind;
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly dueAt: Date;
      /** The instance is paused: not before it resumes. */
      readonly held?: true;
    }
  | {
      readonly kind: "clearTimer";
      readonly timer: TimerKind;
      readonly path: string;
      readonly iteration: number;
    }
  | {
      /**
       * After the commit: this attempt gets its AbortSignal where it runs, and its job is removed where
       * it does not. The next attempt may have begun by then, or have a job already: it is not meant.
       */
      readonly kind: "abort";
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly reason: string;
    }
  | {
      /** A row of its own, which the first commit of the child clears. Its input is the step's. */
      readonly kind: "startChild";
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly childId: string;
      readonly workflowId: string;
      /** Null: not named by the step. */
      readonly workflowVersion: number | null;
      readonly detached: boolean;
    }
  | {
      /** A row for the child, which the commit that cancels it clears. */
      readonly kind: "cancelChild";
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly childId: string;
      readonly reason: string | null;
      readonly shouldCompensate: boolean;
    }
  | ({
      /** A row for the parent, which the commit that takes note of it clears. */
      readonly kind: "reportEnd";
      readonly parent: ParentLink;
    } & Omit<ChildEnd, "output">)
  | {
      /**
       * A pause begins or ends: nobody takes these executions, nobody fires these timers, and an event
       * takes these waits only where no timer that would take them is due, until they are let go again.
       * What the same decision writes is not among them.
       */
      readonly kind: "hold" | "letGo";
      readonly executions: readonly { readonly path: string; readonly iteration: number }[];
      readonly timers: readonly {
        readonly timer: TimerKind;
        readonly path: string;
        readonly iteration: number;
      }[];
      readonly waits: readonly { readonly path: string; readonly iteration: number }[];
    }
  | {
      /** A step killed its workers: for an operator, with what is known of them. */
      readonly kind: "openDeadLetter";
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly error: WorkflowError;
    }
  | {
      readonly kind: "resolveDeadLetter";
      readonly outcome: "RETRIED" | "DISCARDED";
      readonly actor: string;
      readonly reason: string | null;
    }
  /** Of a repair: its place under the limit is written as the snapshot has it. */
  | { readonly kind: "placeSlot" }
  /** Stored in this commit, in the order in which they are emitted; matched after it. */
  | { readonly kind: "emitEvent"; readonly event: EmittedEvent }
  /** The instance settled: whatever waits and timers it still has go in the same commit. */
  | { readonly kind: "settle" };

export type CommandKind = Command["kind"];

/** One line of the audit: `GET …/history` and the lifecycle stream show these. */
export interface HistoryEntry {
  /** `workflow.started`, `workflow.step.completed`, … (CONTRACT 3), or a finer one of our own. */
  readonly type: string;
  readonly stepId?: string;
  readonly path?: string;
  readonly iteration?: number;
  readonly actor?: string;
  readonly data?: Json;
}

/**
 * What follows from one or more signals. `snapshot` is the given one, by identity, when nothing does.
 * No row is named twice in `inserts` and `updates`, no wait or timer in two commands of a kind.
 */
export interface Decision {
  readonly snapshot: Snapshot;
  readonly inserts: readonly NewExecution[];
  readonly updates: readonly ExecutionUpdate[];
  readonly commands: readonly Command[];
  readonly guards: readonly Guard[];
  readonly entries: readonly HistoryEntry[];
  /** Execution keys whose rows were RUNNING, where that made a difference: kept for the replay. */
  readonly observedRunning: readonly string[];
  /** What calendars have said, by execution key: kept for the replay. Absent where none was asked. */
  readonly workingTimes?: { readonly [executionKey: string]: WorkingTime };
}
