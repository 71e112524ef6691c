import type { ConsistencyCode } from "@millrace/contract";
import type { Json } from "@millrace/expressions";
import type { Definition } from "../definition/definition.ts";
import type { Changes, Identity } from "../state/changes.ts";
import type { StoredSignal } from "../state/stored-signal.ts";
import type {
  Command,
  ExecutionUpdate,
  Guard,
  HistoryEntry,
  ItemCounts,
  NewExecution,
} from "../state/decision.ts";
import type { Snapshot, TimerKind, WorkflowError } from "../state/snapshot.ts";
import type { InstanceStatus, StepStatus } from "../state/status.ts";

/** All that is stored of one instance, as one read saw it, for the checks to hold side by side. */
export interface Evidence {
  /** The database's clock at the read. */
  readonly now: Date;
  /** Undefined where there is none that can be trusted. */
  readonly definition: Definition | undefined;
  /** Whether the version that the instance is bound to is stored, as it was registered. */
  readonly definitionIs: "SOUND" | "MISSING" | "EDITED";
  readonly identity: Identity;
  /** What it was given when it was started, its input say, is as it was then; true where nothing says so. */
  readonly isAsGiven: boolean;
  /** When it was created, by its id. */
  readonly bornAt: Date;
  /** The version of the instance's row. */
  readonly version: number;
  /** Since when the instance has its status, and of its last commit: the row's. */
  readonly statusAt: Date;
  readonly updatedAt: Date;
  /** By which it waits for a slot; undefined where what is stored is no time that anybody can ask for. */
  readonly deadline: Date | null | undefined;
  readonly metadata: Json;
  /** Undefined where what is stored of the frontier is not one. */
  readonly snapshot: Snapshot | undefined;
  readonly steps: readonly StepEvidence[];
  readonly waits: readonly WaitEvidence[];
  readonly timers: readonly TimerEvidence[];
  /** Oldest first; undefined where there is more than one look can take in. */
  readonly history: readonly CommitEvidence[] | undefined;
  readonly children: readonly ChildEvidence[];
  /** What others have told the instance, and it has not taken note of. */
  readonly told: readonly TellingEvidence[];
  /** The step that started the instance, as its parent knows it; null for one nobody started. */
  readonly parent: ParentEvidence | null;
  /** Whether events are looked up as all start triggers of its workflow are keyed. */
  readonly hasStartShapes: boolean;
  /** Events of its own that are not matched. */
  readonly unmatchedEvents: readonly { readonly id: string; readonly receivedAt: Date }[];
  readonly deliveries: number;
  readonly openDeadLetters: number;
  /** Its place under its limits; null where it has none. */
  readonly slot: SlotEvidence | null;
  /** Limits under which it has a row, and which are not its own. */
  readonly foreignLimits: readonly string[];
  /** Hash by which the store keeps the key of a wait. */
  readonly hashOf: (key: readonly Json[]) => string | null;
}

export interface StepEvidence {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: StepStatus;
  readonly attempt: number;
  readonly fence: number;
  readonly taskId: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly compensates: string | null;
  /** Undefined: the instance's. */
  readonly input: Json | undefined;
  readonly output: Json | undefined;
  readonly error: WorkflowError | null;
  readonly completion: number | null;
  readonly entry: number | null;
  readonly timeoutMs: number | null;
  readonly heartbeatTimeoutMs: number | null;
  /** Of a MAP, as they are shown. */
  readonly items: ItemCounts | undefined;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  readonly awaited: boolean;
  readonly held: boolean;
  readonly blocked: string | null;
  /** Null: nobody looks whether its job is there. */
  readonly lookAt: Date | null;
  readonly retryAt: Date | null;
  /** The clock of a running attempt that runs out first, its name, and the end of the attempt's own. */
  readonly dueAt: Date | null;
  readonly dueClock: string | null;
  readonly timeoutAt: Date | null;
  readonly workerId: string | null;
  /** Milliseconds since its worker was heard of; null: there is no such worker. */
  readonly silentMs: number | null;
}

/** A step row as the decisions made it. */
export type ReplayedStep = NewExecution &
  Pick<ExecutionUpdate, "retryAt" | "awaited"> & {
    /** Of the decision that began it. */
    readonly insertedAt: Date;
  };

export interface WaitEvidence {
  readonly path: string;
  readonly iteration: number;
  readonly stepId: string | null;
  readonly purpose: string;
  readonly pattern: string;
  /** Joined by spaces. */
  readonly eventPaths: string;
  readonly keyHash: string | null;
  readonly deliver: string;
  readonly openedAt: Date;
  readonly lookbackFrom: Date | null;
  /** Whether events of its pattern are looked up by the paths that it is keyed by. */
  readonly hasShape: boolean;
  readonly isLookedBack: boolean;
  /** Of a paused instance: no event may take it. */
  readonly held: boolean;
  readonly matchedEventId: string | null;
  readonly matchedAt: Date | null;
  /** The event that took it is stored. */
  readonly hasEvent: boolean;
}

export interface TimerEvidence {
  readonly path: string;
  readonly iteration: number;
  readonly kind: TimerKind;
  readonly attempt: number;
  readonly dueAt: Date;
  /** When a scheduler looks at it next; null: never, since it is held. */
  readonly lookAt: Date | null;
  readonly held: boolean;
}

export interface CommitEvidence {
  readonly version: number;
  readonly at: Date;
  readonly engineRev: number;
  /** Who asked for it, or what it followed from. */
  readonly actor: string;
  readonly signals: readonly StoredSignal[];
  readonly changes: Changes;
  readonly entries: readonly HistoryEntry[];
}

/** What follows from the signals of a version. */
export type MadeCommit = Pick<CommitEvidence, "version" | "changes" | "entries">;

export interface ChildEvidence {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly childId: string;
  readonly workflowId: string;
  readonly workflowVersion: number | null;
  readonly detached: boolean;
  readonly requestedAt: Date;
  readonly startedAt: Date | null;
  /** Null: there is no such instance. */
  readonly status: InstanceStatus | null;
  readonly createdAt: Date | null;
  readonly isSettled: boolean;
  /** Whether its end is under way to the parent. */
  readonly isReported: boolean;
  /** Whether the child knows this instance as its parent. */
  readonly isLinked: boolean;
}

export interface TellingEvidence {
  readonly kind: "CANCEL" | "END";
  readonly childId: string;
  readonly sentVersion: number;
  readonly sentAt: Date;
  /** It says what it has to say. */
  readonly isReadable: boolean;
}

export interface ParentEvidence {
  readonly exists: boolean;
  /** The parent's row of this child. */
  readonly isLinked: boolean;
}

export interface SlotEvidence {
  /** GRANTED: the instance has not taken note of it yet. */
  readonly status: "WANTED" | "GRANTED" | "HELD";
  readonly request: number;
  readonly priority: number;
  readonly deadline: Date | null;
  readonly wantedAt: Date;
  /** Null: nobody has put it at the head. */
  readonly promotedAt: Date | null;
  /** Those that have run before come first. */
  readonly hasRun: boolean;
  /** Of one that is granted: when it is looked at whether its instance knows; null: never. */
  readonly lookAt: Date | null;
}

/** Where in the instance something is wrong. */
export interface Where {
  readonly path?: string;
  readonly iteration?: number;
  readonly timer?: string;
  readonly version?: number;
  readonly childId?: string;
  readonly eventId?: string;
}

export interface Finding {
  readonly code: ConsistencyCode;
  /** What is stored, and what should be. */
  readonly message: string;
  readonly where: Where;
  /** Absent: an operator is to decide. */
  readonly repair?: Repair;
}

/** What makes a finding good, for the shell to carry out. */
export type Repair =
  /** Rows to be written by a commit of the instance. */
  | {
      readonly kind: "commit";
      readonly commands?: readonly Command[];
      readonly inserts?: readonly NewExecution[];
      readonly updates?: readonly ExecutionUpdate[];
      readonly guards?: readonly Guard[];
    }
  /** The instance's row becomes what its history says. */
  | { readonly kind: "rebuild"; readonly snapshot: Snapshot }
  /** A step that nobody holds: whoever looks for lapsed holders takes it over. */
  | {
      readonly kind: "release" | "look";
      readonly path: string;
      readonly iteration: number;
      readonly attempt: number;
      readonly fence: number;
      readonly workerId: string | null;
    }
  /** The row of a step becomes what the history made of it. */
  | { readonly kind: "restoreStep"; readonly step: ReplayedStep; readonly createdAt?: Date }
  | { readonly kind: "restoreHistory"; readonly commits: readonly MadeCommit[] }
  | { readonly kind: "restoreTimes"; readonly statusAt: Date; readonly updatedAt: Date }
  | {
      readonly kind: "restoreActors";
      readonly commits: readonly Pick<CommitEvidence, "version" | "actor">[];
    }
  /** What operators have changed of the instance's row beside its state; absent: it stays. */
  | { readonly kind: "restorePatched"; readonly deadline?: Date | null; readonly metadata?: Json }
  | { readonly kind: "restoreChild"; readonly child: ChildEvidence }
  /** Rows that no decision has made: they go. */
  | { readonly kind: "removeStep"; readonly path: string; readonly iteration: number }
  | { readonly kind: "removeChild"; readonly childId: string }
  /** Nobody has ever taken it by such a number: it counts from 0 again. */
  | {
      readonly kind: "restoreFence";
      readonly path: string;
      readonly iteration: number;
      readonly fence: number;
    }
  /** The clock of a running attempt begins anew. */
  | {
      readonly kind: "restartClock";
      readonly path: string;
      readonly iteration: number;
      readonly fence: number;
    }
  /** A half of a protocol that somebody did not come to. */
  | { readonly kind: "applyMatches" | "lookBack" | "forgetDeliveries" | "listen" | "leaveLimits" }
  | { readonly kind: "matchEvent"; readonly eventId: string }
  | { readonly kind: "deliver"; readonly telling: TellingEvidence }
  | { readonly kind: "adopt" | "reportEnd"; readonly child: ChildEvidence };
