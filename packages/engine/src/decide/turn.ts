import { invariant } from "../assert.ts";
import type { Definition } from "../definition/definition.ts";
import type { Mutable } from "../mutable.ts";
import type {
  Command,
  ExecutionUpdate,
  Guard,
  HistoryEntry,
  NewExecution,
} from "../state/decision.ts";
import type { Reads } from "../state/reads.ts";
import type { Signal, WorkingTime } from "../state/signal.ts";
import { copyOfSnapshot } from "../state/snapshot.ts";
import type {
  JsonObject,
  LiveExecution,
  Place,
  Snapshot,
  WorkflowError,
} from "../state/snapshot.ts";
import { instanceChanges } from "../state/status.ts";
import type { InstanceStatus } from "../state/status.ts";
import { isBusy } from "./live-executions.ts";

type CommandOf<K extends Command["kind"]> = Extract<Command, { kind: K }>;

type UpdatedRow = ExecutionUpdate & { readonly stepId: string };

/**
 * One decision in the making: a private copy of the snapshot, and everything that will be written
 * with it. The functions of this folder change it; nobody outside sees it. Several signals fold
 * into one turn, so whatever they do to one row, wait or timer ends as one change.
 */
export interface Turn {
  readonly definition: Definition;
  readonly reads: Reads;
  readonly now: Date;
  readonly before: Snapshot;
  readonly state: Mutable<Snapshot>;
  readonly inserts: Map<string, NewExecution>;
  readonly updates: Map<string, UpdatedRow>;
  /** By path: key of the execution that this turn made or changed last. */
  readonly touched: Map<string, string>;
  readonly waits: Map<string, CommandOf<"openWait"> | CommandOf<"closeWait">>;
  readonly rekeys: Map<string, CommandOf<"rekeyWait">>;
  readonly timers: Map<string, CommandOf<"setTimer"> | CommandOf<"clearTimer">>;
  readonly dispatches: Map<string, CommandOf<"dispatch">>;
  readonly aborts: Map<string, CommandOf<"abort">>;
  /** By their kind and the child's id. */
  readonly children: Map<string, CommandOf<"startChild"> | CommandOf<"cancelChild">>;
  readonly emitted: CommandOf<"emitEvent">[];
  readonly guards: Map<string, Guard>;
  readonly entries: HistoryEntry[];
  readonly observedRunning: Set<string>;
  /** By execution key. */
  readonly workingTimes: Map<string, WorkingTime>;
  /** Where the walk goes on: one entry for each branch that moves. */
  readonly agenda: Move[];
  /** What a pause has held, in order of time: it is applied after the signal that ends the pause. */
  readonly backlog: Held[];
  /** `state.live` is a copy of this turn's own. */
  ownsLive: boolean;
  deadLetter: CommandOf<"openDeadLetter"> | CommandOf<"resolveDeadLetter"> | undefined;
  /** Live executions that the instance does not end before: counted, as hundreds may be live. */
  busy: number;
  /** Items of MAPs that are over, and that have not settled: nobody works on them any more. */
  lostItems: number;
  /** Steps walked through without work outside. */
  walked: number;
  /** An execution has settled since the status was last told: what comes of it is being decided. */
  moving: boolean;
  /** Path of the step that was walked to last. */
  walkingAt: string | undefined;
  settled: boolean;
}

/** What comes next for a branch, an item or, without `within`, the definition's own list. */
export type Move =
  | { readonly kind: "enter"; readonly stepId: string; readonly within: Place | undefined }
  | { readonly kind: "ended"; readonly within: Place }
  | { readonly kind: "failed"; readonly within: Place; readonly error: WorkflowError };

/** A signal that was held, or an execution whose end was. */
export type Held =
  | { readonly at: string; readonly signal: Signal }
  | { readonly at: string; readonly execution: LiveExecution };

export function openTurn(definition: Definition, before: Snapshot, reads: Reads, now: Date): Turn {
  return {
    definition,
    // An instance that is not stored yet has no rows: nothing of it can be missing.
    reads: before.version === 0 && !reads.all ? { ...reads, all: true } : reads,
    now,
    before,
    state: copyOfSnapshot(before),
    inserts: new Map(),
    updates: new Map(),
    touched: new Map(),
    waits: new Map(),
    rekeys: new Map(),
    timers: new Map(),
    dispatches: new Map(),
    aborts: new Map(),
    children: new Map(),
    emitted: [],
    guards: new Map(),
    entries: [],
    observedRunning: new Set(),
    workingTimes: new Map(),
    agenda: [],
    backlog: [],
    ownsLive: false,
    deadLetter: undefined,
    busy: Object.values(before.live).filter(isBusy).length,
    lostItems: 0,
    walked: 0,
    moving: false,
    walkingAt: undefined,
    settled: false,
  };
}

/** Goes on with a branch once what is under way has been written down. */
export function move(turn: Turn, next: Move): void {
  turn.agenda.push(next);
}

/** Notes a line of the audit. */
export function note(turn: Turn, entry: HistoryEntry): void {
  turn.entries.push(entry);
}

export function noteStep(
  turn: Turn,
  type: string,
  { stepId, path, iteration, attempt }: LiveExecution,
  data?: JsonObject,
): void {
  note(turn, {
    type,
    stepId,
    ...(path !== stepId && { path }),
    ...(iteration > 1 && { iteration }),
    ...(attempt !== 1 ? { data: { attempt, ...data } } : data && { data }),
  });
}

/** @throws InvariantError where the table of allowed changes has no such change. */
export function changeStatus(turn: Turn, to: InstanceStatus): void {
  const from = turn.state.status;
  if (from === to) return;
  invariant(instanceChanges[from].includes(to), `an instance cannot go from ${from} to ${to}`);
  turn.state.status = to;
  if (from === "PAUSED") turn.state.pause = null;
  note(turn, { type: "workflow.status", data: { from, to } });
}

/** Status and compensation are final: what the instance still had waiting goes in this commit. */
export function settle(turn: Turn): void {
  turn.state.completedAt = turn.now;
  turn.settled = true;
}
