import type { EqualityConjunct, Expression, Json, Template } from "@millrace/expressions";
import type { RetryPolicy } from "../retry.ts";
import type { Duration, WorkingDuration } from "./duration.ts";

/** The intervals of a retry policy that are expressions; each gives an ISO-8601 duration. */
export interface RetryTemplates {
  readonly initialIntervalMs?: Template;
  readonly maxIntervalMs?: Template;
}

/**
 * A workflow definition in the form that decisions work on: the graph by step id, every expression
 * parsed. It is made once per version by `compileDefinition` and never changes.
 */
export interface Definition {
  readonly id: string;
  readonly version: number;
  /** Id of the step that an instance begins with. */
  readonly start: string;
  readonly steps: ReadonlyMap<string, Step>;
  /** By their own step id. */
  readonly compensationSteps: ReadonlyMap<string, CompensationStep>;
  /** By the id of the step that they undo. */
  readonly compensationFor: ReadonlyMap<string, CompensationStep>;
  readonly compensateOnFailure: boolean;
  /** Children that are stopped by a failure undo what they did: unless the definition says otherwise. */
  readonly childrenCompensate: boolean;
  readonly cancellationTriggers: readonly CancellationTrigger[];
  readonly startTriggers: readonly StartTrigger[];
  readonly variables: { readonly [name: string]: Json };
  /** Undefined: the output of the last completed step (CONTRACT 1). */
  readonly output: Template | undefined;
  readonly timeout: DurationValue | undefined;
  readonly retry: Partial<RetryPolicy>;
  readonly retryIntervals: RetryTemplates;
  readonly priority: number;
  /**
   * Instances run only with a slot under the limit of their workflow. How many there are is said by the
   * latest version (CONTRACT 6).
   */
  readonly concurrency: Concurrency | undefined;
  /** Number of steps, for progress: those inside a MAP run once an item and are not counted. */
  readonly size: number;
}

export interface Concurrency {
  readonly limit: number;
  /** The order in which those are admitted that have not run yet. */
  readonly queue: "FIFO" | "PRIORITY" | "DEADLINE";
  /** Starts that may wait for a slot; undefined: any number. */
  readonly maxQueued: number | undefined;
}

/** A duration, or a template whose value is an ISO-8601 duration. */
export type DurationValue<D = Duration> =
  | { readonly duration: D }
  | { readonly template: Template };

export interface Transitions {
  readonly conditions: readonly { readonly when: Expression; readonly to: string }[];
  readonly default: string | undefined;
}

export interface ErrorRoute {
  /** Types or kinds of errors, or "*". */
  readonly errors: readonly string[];
  readonly to: string;
}

interface StepBase {
  readonly stepId: string;
  readonly condition: Expression | undefined;
  readonly transitions: Transitions;
  readonly onError: readonly ErrorRoute[];
  /** It can be entered again by a transition: it lies on a cycle of its own list of steps. */
  readonly repeats: boolean;
  /** The PARALLELs and MAPs that it is inside of, outermost first. */
  readonly lineage: readonly Enclosure[];
  readonly maxIterations: number;
  /**
   * Steps whose rows a decision that settles this step may read: what to load together with the
   * instance. Its own is not among them. "ALL" where an expression takes the steps as a whole.
   */
  readonly reads: readonly string[] | "ALL";
}

/** One step that another is inside of. */
export interface Enclosure {
  readonly stepId: string;
  /** The branch of a PARALLEL; undefined for a MAP. */
  readonly branch: string | undefined;
}

export interface TaskStep extends StepBase, TaskCall {
  readonly type: "TASK";
}

/**
 * How long a step may take. One that no worker runs has a single attempt, so that both clocks measure
 * the same there, and the shorter holds.
 */
export interface Clocks {
  /** Of one attempt. */
  readonly timeout: DurationValue | undefined;
  /** Of all attempts and what lies between them. */
  readonly totalTimeout: DurationValue | undefined;
}

/** What a TASK and a compensation step share. */
export interface TaskCall extends Clocks {
  /** A template gives it when the step is entered. */
  readonly taskId: string | Template;
  /** Undefined: the instance's input for a TASK; the default of CONTRACT 1 for a compensation. */
  readonly input: Template | undefined;
  /** As `taskId`. */
  readonly queue: string | Template;
  readonly priority: number | undefined;
  readonly retry: Partial<RetryPolicy>;
  readonly retryIntervals: RetryTemplates;
  readonly scheduleTimeout: DurationValue | undefined;
  readonly heartbeatTimeout: DurationValue | undefined;
}

/** A pattern with the condition on the event and what can be looked up of it. */
export interface EventMatcher {
  /** May hold expressions; evaluated when the wait opens. */
  readonly eventPattern: Template;
  readonly eventCondition: Expression | undefined;
  /** Equality conjuncts of the condition; their values are the wait's key. */
  readonly conjuncts: readonly EqualityConjunct[];
  /** The key reads nothing that can change after the wait opened. */
  readonly keyIsFixed: boolean;
}

/** One event that a step waits for. */
export interface AwaitedEvent extends EventMatcher {
  /** Under ANY: where to go when it is the first; undefined: by the step's transitions. */
  readonly to: string | undefined;
}

export interface EventWaitStep extends StepBase, Clocks {
  readonly type: "EVENT_WAIT";
  /** One, unless the step has a list. */
  readonly events: readonly AwaitedEvent[];
  /** Of a list; undefined where the step names its one event itself. */
  readonly mode: "ANY" | "ALL" | undefined;
  readonly eventTimeout:
    | { readonly duration: DurationValue; readonly timeoutHandlerStepId: string | undefined }
    | undefined;
  /** Variable name and path below the payload. */
  readonly eventPayloadMapping: readonly (readonly [string, readonly string[]])[];
  readonly lookback: DurationValue | "instance" | undefined;
  readonly deliver: "ALL" | "ONE";
}

export interface DelayStep extends StepBase, Clocks {
  readonly type: "DELAY";
  /** Without a calendar. */
  readonly duration: DurationValue | undefined;
  /** Its value is an ISO-8601 time. */
  readonly until: Template | undefined;
  /** By which it counts; the duration is undefined where the step has `until`. */
  readonly calendar:
    | {
        readonly id: string;
        readonly duration: DurationValue<WorkingDuration> | undefined;
      }
    | undefined;
}

export interface ChoiceStep extends StepBase {
  readonly type: "CHOICE";
}

export interface SetStep extends StepBase {
  readonly type: "SET";
  readonly variables: readonly (readonly [string, Template])[];
}

export interface EmitEventStep extends StepBase {
  readonly type: "EMIT_EVENT";
  /** Its value is the name that the event is published under. */
  readonly eventPattern: Template;
  readonly payload: Template;
}

export interface ParallelStep extends StepBase, Clocks {
  readonly type: "PARALLEL";
  readonly branches: readonly { readonly name: string; readonly start: string }[];
  /** Branches that must complete; "ALL" waits until every one has settled. */
  readonly join: "ALL" | number;
  /** Under "ALL": a failed branch fails the step. */
  readonly failsWithBranch: boolean;
}

export interface MapStep extends StepBase, Clocks {
  readonly type: "MAP";
  readonly items: Template;
  /** Roots under which its steps find the item, `item` apart. */
  readonly itemName: string;
  readonly start: string;
  /** Items at work at once. */
  readonly maxConcurrency: number;
  /** Failed items that do not fail the step. */
  readonly tolerate: number;
}

export interface SubWorkflowStep extends StepBase, Clocks {
  readonly type: "SUB_WORKFLOW";
  /** A template gives it when the step is entered. */
  readonly workflowId: string | Template;
  /** Undefined: the latest one when the parent began; of a detached child, when it starts. */
  readonly version: number | undefined;
  /** Undefined: the instance's input. */
  readonly input: Template | undefined;
  readonly detached: boolean;
  /** Undefined: a child that fails is not tried again. */
  readonly retry: Partial<RetryPolicy> | undefined;
  readonly retryIntervals: RetryTemplates;
}

export interface EndStep extends StepBase {
  readonly type: "END";
  readonly outcome: "COMPLETED" | "FAILED" | "CANCELLED";
  readonly output: Template | undefined;
  readonly error: Template | undefined;
  readonly reason: Template | undefined;
}

export type Step =
  | TaskStep
  | EventWaitStep
  | DelayStep
  | ChoiceStep
  | SetStep
  | EmitEventStep
  | ParallelStep
  | MapStep
  | SubWorkflowStep
  | EndStep;
export type StepType = Step["type"];

export interface CompensationStep extends TaskCall {
  readonly stepId: string;
  readonly compensationFor: string;
  readonly condition: Expression | undefined;
  readonly reads: readonly string[] | "ALL";
}

/** Evaluated before there is an instance: its expressions read the event alone. */
export interface StartTrigger {
  readonly eventPattern: string;
  readonly eventCondition: Expression | undefined;
  /** Equality conjuncts of the condition, with values that are known beforehand. */
  readonly conjuncts: readonly EqualityConjunct[];
  /** Undefined: the event's payload. */
  readonly input: Template | undefined;
  readonly correlationId: Template | undefined;
}

export interface CancellationTrigger extends EventMatcher {
  readonly reason: Template;
  readonly shouldCompensate: boolean;
}
