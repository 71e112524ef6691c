import type { RetryPolicy } from "../retry.ts";
import type { Json } from "@millrace/expressions";
import type { TerminalStatus } from "./status.ts";
import type { JsonObject, TimerKind, WorkflowError } from "./snapshot.ts";

/** An event as waits and conditions see it. Times are ISO 8601. */
export interface EventFact {
  readonly id: string;
  readonly pattern: string;
  readonly payload: Json;
  readonly occurredAt: string;
  readonly receivedAt: string;
}

/** One execution and the attempt that a signal speaks of. */
export interface ExecutionRef {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
}

/** A child as its parent knows it, and the execution that started it. */
export interface ChildRef extends ExecutionRef {
  readonly childId: string;
}

/** How a child settled. */
export interface ChildEnd {
  readonly status: TerminalStatus;
  readonly output: Json;
  readonly error: WorkflowError | null;
  /** Of its cancellation. */
  readonly reason: string | null;
  /** The error is of no SUB_WORKFLOW step of the child: it began there, whatever its details look like. */
  readonly isOwn?: true;
}

/** Why a child could not be started. */
export type ChildRefusal = Pick<WorkflowError, "kind" | "type" | "message" | "details">;

/** A failure as a task, or the worker on its behalf, reports it. */
export interface TaskFailure {
  readonly type: string;
  readonly message: string;
  readonly details: Json;
  /** False where the error itself says that another try is pointless. */
  readonly retryable: boolean;
}

/** When something is over by a calendar's working time, ISO 8601, or why that is not to be said. */
export type WorkingTime = { readonly calendarId: string } & (
  | { readonly calendarVersion: number; readonly until: string }
  | { readonly problem: string }
);

/**
 * What happened to an instance. Each is idempotent: late or repeated, it changes nothing.
 *
 * `retry` is the policy as the worker resolved it (the step's fields, then the task's own, then the
 * definition's), so that replay needs no task code. `actor` is who asked.
 */
export type Signal =
  | { readonly kind: "started" }
  | { readonly kind: "scheduled"; readonly startAt: Date }
  /** It has a slot under each of its limits, for which it has asked by this number. */
  | { readonly kind: "admitted"; readonly request: number }
  /**
   * Which limits concern it from now on (`Snapshot.limits`), since some were set or deleted that are not of
   * its definition.
   */
  | { readonly kind: "limitsNoted"; readonly limits: string | null }
  /**
   * Written into the history before the signals of a decision that relied on these rows being
   * RUNNING, since claims leave no other trace. Execution keys. Decides nothing by itself.
   */
  | { readonly kind: "observedRunning"; readonly executions: readonly string[] }
  /**
   * Written into the history in the same way: what calendars said when they were asked, by execution
   * key. What the calendar, or the rules of its time zone, have become since is nothing to a replay.
   */
  | {
      readonly kind: "calendarsAsked";
      readonly workingTimes: { readonly [executionKey: string]: WorkingTime };
    }
  | ({ readonly kind: "stepSucceeded"; readonly output: Json } & ExecutionRef)
  | ({
      readonly kind: "stepFailed";
      readonly failure: TaskFailure;
      readonly retry: RetryPolicy;
    } & ExecutionRef)
  | ({
      readonly kind: "attemptTimedOut";
      readonly clock: "timeout" | "heartbeat";
      readonly retry: RetryPolicy;
    } & ExecutionRef)
  | ({ readonly kind: "poisoned"; readonly deliveries: number } & ExecutionRef)
  | {
      readonly kind: "deadLetterDiscarded";
      readonly reason: string | null;
      readonly actor: string;
      /** The definition is not stored any more: of a compensation nothing that was to follow can run. */
      readonly withoutDefinition?: true;
    }
  /** Of a compensation step; that of any other step is retried with its instance. */
  | { readonly kind: "deadLetterRetried"; readonly reason: string | null; readonly actor: string }
  | {
      readonly kind: "timerFired";
      readonly timer: TimerKind;
      /** Empty path for the instance's own timers. */
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
    }
  | {
      readonly kind: "eventMatched";
      readonly path: string;
      readonly iteration: number;
      readonly event: EventFact;
    }
  | { readonly kind: "cancelTriggered"; readonly trigger: number; readonly event: EventFact }
  | {
      readonly kind: "cancelRequested";
      readonly reason: string | null;
      readonly actor: string;
      readonly shouldCompensate: boolean;
      /** Default: API. */
      readonly source?: "PARENT";
    }
  | ({ readonly kind: "childEnded" } & ChildRef & ChildEnd)
  /** There is no such child: what it was to be started with does not hold. */
  | ({ readonly kind: "childRefused"; readonly error: ChildRefusal } & ChildRef)
  /**
   * What was stored of the instance has been mended: rows beside it, by the same commit. It decides
   * nothing, and is kept for the audit.
   */
  | { readonly kind: "repaired"; readonly actor: string; readonly findings: readonly string[] }
  | ({
      readonly kind: "pauseRequested";
      /** ISO 8601; null: until somebody resumes it. */
      readonly until: string | null;
    } & Intervention)
  | ({
      readonly kind: "variablesPatched";
      /** Of the variables (RFC 7396); null: they stay. */
      readonly patch: JsonObject | null;
      readonly priority: number | null;
      /** What is changed beside the snapshot, for the history. */
      readonly others: JsonObject;
    } & Intervention)
  /** To the head of the queues for slots in which it waits. */
  | ({ readonly kind: "promoteRequested" } & Intervention)
  | ({
      readonly kind: "retryRequested";
      /** Of the definition's own list; null: where it failed. */
      readonly fromStepId: string | null;
      /** As of `resumeRequested`, of one that is paused. */
      readonly held?: readonly HeldSignal[];
    } & Intervention)
  | ({
      readonly kind: "resumeRequested";
      /** What waits and timers have held, each with the time at which it would have counted. */
      readonly held: readonly HeldSignal[];
    } & Intervention);

/** What an operator does. */
export interface Intervention {
  /** Which one it is of this instance, from 1: any other than the next is void. */
  readonly intervention: number;
  readonly actor: string;
  readonly reason: string | null;
}

/** An event that a wait has taken, or a timer that has come due, while the instance was paused. */
export interface HeldSignal {
  readonly at: string;
  readonly signal: Extract<Signal, { readonly kind: "eventMatched" | "timerFired" }>;
}

export type SignalKind = Signal["kind"];

/** The error of a step from what its task reported. */
export function taskError(
  failure: TaskFailure,
  stepId: string,
  attempt: number,
  kind: WorkflowError["kind"] = "TASK",
): WorkflowError {
  return {
    kind,
    type: failure.type,
    message: failure.message,
    stepId,
    attempt,
    details: failure.details,
  };
}
