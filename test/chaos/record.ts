import type {
  HistoryEntry,
  InstanceView,
  PublishEventAnswer,
  ScheduleRunView,
  ScheduleView,
} from "@millrace/contract";
import type { LedgerEntry } from "@millrace/testkit";
import type { CasePlan } from "./load-plan.ts";
import type { ScheduledPlan } from "./schedules.ts";

/**
 * All that is known of a run from outside the product: what was asked of it and answered, what its
 * tasks told the ledger, what was done to its processes and servers, and what the API says at the end.
 * The oracle judges this and nothing else. Times are milliseconds since the epoch, on one clock.
 */
export interface RunRecord {
  readonly cases: readonly CasePlan[];
  /** In the order in which they were sent. */
  readonly requests: readonly RequestRecord[];
  readonly entries: readonly LedgerEntry[];
  readonly faults: readonly FaultRecord[];
  /** When the load had come to rest. */
  readonly instances: readonly InstanceRecord[];
  readonly schedules: readonly ScheduleRecord[];
  /** What somebody was told who followed all instances, in its order; undefined: nobody did. */
  readonly streamed?: readonly StreamedRecord[] | undefined;
}

/** A change, as a stream told it. */
export interface StreamedRecord {
  readonly instanceId: string;
  readonly version: number;
  readonly type: string;
}

export interface ScheduleRecord {
  readonly plan: ScheduledPlan;
  readonly view: ScheduleView;
  readonly runs: readonly ScheduleRunView[];
}

export type Operation =
  | "start"
  | "publish"
  | "cancel"
  | "pause"
  | "resume"
  | "retry"
  | "patch"
  | "look"
  | "register"
  | "watch"
  | "limit"
  | "pause queue"
  | "resume queue"
  | "schedule"
  | `schedule ${"edit" | "pause" | "resume" | "trigger" | "backfill" | "look"}`;

/** One request, as the client saw it. */
export interface RequestRecord {
  /** Of the plan; undefined where it belongs to no case. */
  readonly caseNumber: number | undefined;
  readonly operation: Operation;
  /** What a repetition has in common: idempotency key, event id, instance id or schedule id. */
  readonly subject: string;
  readonly sentAt: number;
  readonly answeredAt: number;
  /** Undefined: the connection broke or nothing came in time, so the outcome is unknown. */
  readonly status: number | undefined;
  readonly problem?: string;
  /** With a 2xx that shows instances. */
  readonly seen?: readonly Seen[];
  /** With a 2xx of an event. */
  readonly published?: PublishEventAnswer;
  /** With a 2xx of a run that was asked for: its instance. */
  readonly triggered?: string;
}

/** An instance as one answer showed it. */
export interface Seen {
  readonly id: string;
  readonly status: InstanceView["status"];
  readonly version: number;
  readonly isSettled: boolean;
  /** Steps with an open wait. */
  readonly waiting: readonly string[];
  readonly running: readonly string[];
}

export interface FaultRecord {
  readonly kind: string;
  readonly at: number;
  /** When it was over: the server is up, the process goes on. */
  readonly healedAt: number;
  /** Of the process that was killed or stopped. */
  readonly pid?: number;
  readonly about: string;
}

export interface InstanceRecord {
  readonly view: InstanceView;
  /** Read again, later. */
  readonly viewAgain: InstanceView | undefined;
  readonly history: readonly HistoryEntry[];
  /** Why it does not move, where it has not settled. */
  readonly why?: unknown;
}
