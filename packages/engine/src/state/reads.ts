import type { Json } from "@millrace/expressions";
import type { Calendar } from "../calendar/calendar.ts";
import type { WorkingTime } from "./signal.ts";
import type { WorkflowError } from "./snapshot.ts";
import type { StepStatus } from "./status.ts";

/** One stored execution, as a decision may read it. */
export interface ExecutionRead {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly status: StepStatus;
  readonly attempt: number;
  readonly fence: number;
  /** Undefined while there is none, or where it was left out. */
  readonly output: Json | undefined;
  /** There is an output, too large to come along unasked. */
  readonly outputLeftOut: boolean;
  readonly error: WorkflowError | null;
  /** Completion number within the instance; null unless COMPLETED, or FAILED in being left after that. */
  readonly completion: number | null;
  /** As in `NewExecution`. */
  readonly entry: number | null;
  /** Of a task's row: the queue that its jobs travel in. */
  readonly queue: string | null;
}

/** Rows that were loaded for a decision. What was asked for and does not exist is null. */
export interface Reads {
  readonly latest: ReadonlyMap<string, ExecutionRead | null>;
  readonly executions: ReadonlyMap<string, ExecutionRead | null>;
  /** By the execution key of a MAP, the row whose output is that of each completed item, in full. */
  readonly items: ReadonlyMap<string, readonly ExecutionRead[]>;
  /** By the execution key of a MAP, its items. */
  readonly inputs: ReadonlyMap<string, Json>;
  /** By `anywhereKey`, the latest execution of a step inside a MAP, whichever item it is of. */
  readonly anywhere: ReadonlyMap<string, ExecutionRead | null>;
  /** By their ids, as they are now. */
  readonly calendars: ReadonlyMap<string, Calendar | null>;
  /** Of a replay: what calendars said when the decision was taken, by execution key. */
  readonly workingTimes: ReadonlyMap<string, WorkingTime>;
  /** Every execution of the instance is in both maps; outputs over 64 KB may be left out. */
  readonly all: boolean;
}

export type ReadRequest =
  | { readonly kind: "latest"; readonly path: string }
  | { readonly kind: "execution"; readonly path: string; readonly iteration: number }
  /** Of the completed items of a MAP the rows of `stepIds` that were completed last, after `after`. */
  | {
      readonly kind: "items";
      readonly path: string;
      readonly iteration: number;
      readonly after: number;
      readonly stepIds: readonly string[];
    }
  | { readonly kind: "input"; readonly path: string; readonly iteration: number }
  /** Below the path of a MAP the latest execution of a step: `latestOf` all of them. */
  | { readonly kind: "anywhere"; readonly path: string; readonly stepId: string }
  | { readonly kind: "calendar"; readonly calendarId: string }
  | { readonly kind: "all" };

/** The decision cannot be taken without these rows: load them and decide again. */
export interface Needs {
  readonly needs: readonly ReadRequest[];
}

export const noReads: Reads = {
  latest: new Map(),
  executions: new Map(),
  items: new Map(),
  inputs: new Map(),
  anywhere: new Map(),
  calendars: new Map(),
  workingTimes: new Map(),
  all: false,
};

/** Both sets of rows; the second wins where they differ, but for an output that it has left out. */
export function mergeReads(first: Reads, second: Reads): Reads {
  return {
    latest: new Map([...first.latest, ...second.latest]),
    executions: new Map([
      ...first.executions,
      ...[...second.executions].filter(
        ([key, read]) =>
          read?.outputLeftOut !== true || first.executions.get(key)?.outputLeftOut !== false,
      ),
    ]),
    items: new Map([...first.items, ...second.items]),
    inputs: new Map([...first.inputs, ...second.inputs]),
    anywhere: new Map([...first.anywhere, ...second.anywhere]),
    calendars: new Map([...first.calendars, ...second.calendars]),
    workingTimes: new Map([...first.workingTimes, ...second.workingTimes]),
    all: first.all || second.all,
  };
}

export function anywhereKey(mapPath: string, stepId: string): string {
  return `${mapPath}[].${stepId}`;
}

/**
 * The latest of the executions of one step in items of MAPs: the one entered last (CONTRACT 1.2). Those of
 * before entries were numbered come first, in the order in which they completed.
 */
export function latestOf<T extends Entered>(executions: readonly T[]): T | undefined {
  return executions.length === 0 ? undefined : executions.reduce(laterOf);
}

/** Of several steps the latest of each, by their ids. */
export function latestById<T extends Entered & Pick<ExecutionRead, "stepId">>(
  executions: readonly T[],
): ReadonlyMap<string, T> {
  const latest = new Map<string, T>();
  for (const each of executions) {
    const other = latest.get(each.stepId);
    latest.set(each.stepId, other === undefined ? each : laterOf(other, each));
  }
  return latest;
}

type Entered = Pick<ExecutionRead, "entry" | "completion" | "iteration" | "path">;

function laterOf<T extends Entered>(one: T, other: T): T {
  const difference =
    (one.entry ?? 0) - (other.entry ?? 0) ||
    (one.completion ?? 0) - (other.completion ?? 0) ||
    one.iteration - other.iteration ||
    (one.path < other.path ? -1 : 1);
  return difference < 0 ? other : one;
}
