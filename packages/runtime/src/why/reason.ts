import type { EventFact, InstanceStatus, WorkflowError } from "@millrace/engine";

export interface AtStep {
  readonly stepId: string;
  readonly executionId: string;
  /** It undoes another one. */
  readonly isCompensation: boolean;
}

export type Reason =
  | { readonly kind: "ENDED"; readonly since: Date | null }
  | {
      /** It failed, and an operator is to say what becomes of it. */
      readonly kind: "DEAD_LETTER";
      readonly deadLetterId: string | null;
      readonly stepId: string;
      readonly isCompensation: boolean;
      readonly since: Date | null;
      readonly error: WorkflowError | null;
    }
  | { readonly kind: "STARTS_LATER"; readonly until: Date }
  | {
      /** No job can be added, so that nothing moves that waits for a worker. */
      readonly kind: "QUEUE_AWAY";
      readonly backend: "redis" | "postgres";
      readonly problem: string;
    }
  | {
      /** Nothing can be decided without the version that it is bound to. */
      readonly kind: "DEFINITION_MISSING";
      readonly workflowId: string;
      readonly workflowVersion: number;
      /** What it has done is being undone. */
      readonly isUndoing: boolean;
    }
  | {
      /** What it waits for is not stored, so that nothing would wake it. */
      readonly kind: "DAMAGED";
      readonly missing: MissingPart;
      /** Null: it is the instance's own. */
      readonly executionId: string | null;
    }
  | {
      /** It can run, and waits for a slot under this limit, and perhaps others. */
      readonly kind: "LIMIT";
      readonly limitKey: string;
      readonly limit: number;
      /** Slots that are taken. */
      readonly taken: number;
      /** From 1; null: it has been given its slot just now. */
      readonly position: number | null;
      /** How many wait, this one among them. */
      readonly queued: number;
      readonly since: Date;
    }
  | {
      readonly kind: "PAUSED";
      readonly by: string;
      readonly reason: string | null;
      readonly since: string;
      readonly until: string | null;
      /** Of a step whose retries are spent. */
      readonly error: WorkflowError | null;
      /** What is applied when it resumes. */
      readonly held: {
        readonly steps: number;
        readonly results: number;
        readonly events: number;
        readonly timers: number;
      };
    }
  | ({
      readonly kind: "NO_WORKER_KNOWS_TASK" | "NO_WORKER_FOR_QUEUE" | "QUEUED";
      readonly taskId: string;
      readonly queue: string;
      /** When it, or the attempt that is due, came to be. */
      readonly since: Date;
      /** Runs of this attempt, each of which was cut short. */
      readonly deliveries: number;
      /** Live workers that could take it. */
      readonly workers: readonly string[];
      /** Steps that these run now. */
      readonly taken: number;
      /** Those that they run at a time; null: not all of them say. */
      readonly limit: number | null;
      /** Whether a worker has had it that does not know its task. */
      readonly isBlocked: boolean;
      /** Of what the run before came to nothing; null: it did not, or nobody knows. */
      readonly failure: string | null;
      /** When its job is looked for, should that be lost or blocked. */
      readonly until: Date | null;
    } & AtStep)
  | ({
      /** No worker takes a step of its queue. */
      readonly kind: "QUEUE_PAUSED";
      readonly taskId: string;
      readonly queue: string;
      /** When the queue was paused. */
      readonly since: Date;
      readonly by: string;
      readonly reason: string | null;
    } & AtStep)
  | ({
      /** Workers have died or ended under it, or its task is isolated, so that it waits for a process of its own. */
      readonly kind: "QUEUED_ALONE";
      readonly taskId: string;
      readonly queue: string;
      readonly since: Date;
      readonly deliveries: number;
      /** How many have died. */
      readonly deaths: number;
      /** How often in a row one was asked to end soon after it had begun. */
      readonly handOvers: number;
      /** Of what the last try came to nothing; null: it was not tried, or nobody knows. */
      readonly failure: string | null;
      /** Live workers that could take it. */
      readonly workers: readonly string[];
      /** Such processes that these have for its queue, at most. */
      readonly cells: number;
      /** Steps that run in them. */
      readonly taken: number;
      /** Those of them that are of its own tenant: the first few. */
      readonly running: readonly { readonly instanceId: string; readonly stepId: string }[];
    } & AtStep)
  | ({
      readonly kind: "RUNNING" | "WORKER_LOST" | "AWAITED";
      readonly taskId: string;
      readonly workerId: string | null;
      readonly host: string | null;
      /** When the worker was last heard of; null: nobody knows it. */
      readonly beatAt: Date | null;
      readonly attempt: number;
      /** Runs of this attempt, this one included. */
      readonly deliveries: number;
      /** When the step first began, in whichever attempt. */
      readonly since: Date | null;
      /** When the clock of its attempt is over, if it has one; AWAITED: the end of its grace. */
      readonly until: Date | null;
    } & AtStep)
  | ({
      readonly kind: "RETRYING";
      /** Null: another child is started. */
      readonly taskId: string | null;
      /** The next one. */
      readonly attempt: number;
      readonly until: Date | null;
      readonly error: WorkflowError | null;
    } & AtStep)
  | ({ readonly kind: "DELAY"; readonly since: Date; readonly until: Date | null } & AtStep)
  /** A walk over many steps was cut short, so that others have their turn. */
  | ({ readonly kind: "CONTINUES"; readonly until: Date | null } & AtStep)
  | ({
      /** Items of a MAP that have not begun, since so many others are under way. */
      readonly kind: "ITEMS";
      readonly queued: number;
      readonly taken: number;
      readonly limit: number;
    } & AtStep)
  | ({
      /** It waits for a child to settle. */
      readonly kind: "CHILD_WORKFLOW";
      readonly childId: string;
      readonly childWorkflowId: string;
      /** Null: it is about to be started. */
      readonly childStatus: InstanceStatus | null;
      readonly since: Date;
      /** The end of its grace, where the step is only awaited. */
      readonly until: Date | null;
    } & AtStep)
  | ({
      /** EVENT_TAKEN: an event has satisfied the wait, and is about to be applied. */
      readonly kind: "EVENT_WAIT" | "EVENT_TAKEN";
      readonly pattern: string;
      readonly condition: string | null;
      readonly filledIn: string | null;
      readonly since: Date;
      readonly until: Date | null;
      readonly nearMisses: readonly NearMiss[];
      /** EVENT_TAKEN: live workers, any of which applies it. */
      readonly workers: readonly string[];
    } & AtStep);

/** What an instance waits for by its own account, and no row says. ANY: nothing that is known. */
export type MissingPart = "STEP" | "WAIT" | "TIMER" | "CHILD" | "SLOT" | "ANY";

/** A past event of the wait's pattern that did not satisfy it. */
export interface NearMiss {
  readonly event: EventFact;
  /** CONDITION: some parts of it are false. BEFORE_WAIT: it came before the wait was open. */
  readonly because: "CONDITION" | "BEFORE_WAIT";
  readonly failed: readonly {
    readonly source: string;
    readonly filledIn: string;
    readonly problem?: string;
  }[];
}
