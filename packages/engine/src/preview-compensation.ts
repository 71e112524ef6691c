import type { Json } from "@millrace/expressions";
import { defined } from "./assert.ts";
import type { Definition } from "./definition/definition.ts";
import { decide, isNeeds } from "./decide/decide.ts";
import type { Decision } from "./state/decision.ts";
import type { ExecutionRead, Needs, ReadRequest, Reads } from "./state/reads.ts";
import type { Signal } from "./state/signal.ts";
import type { Snapshot, WorkflowError } from "./state/snapshot.ts";
import { executionKey } from "./state/snapshot.ts";
import { canStillMove } from "./decide/cancel.ts";
import { cancelGraceMs } from "./decide/compensate.ts";

/**
 * What a cancel would do to an instance as it is now. It is found by cancelling it, in memory, with the
 * very decisions that a real cancel takes, so that the two cannot disagree:
 *
 *   cancel ──► let the grace of what is in flight run out ──► let each compensation step succeed
 *
 * Everything happens in one turn, of which nothing is committed.
 */
export interface CompensationPreview {
  /** In the order in which they would run. */
  readonly steps: readonly PlannedCompensation[];
  /** Completed executions whose compensation is left out, since its condition is false. */
  readonly skipped: readonly { readonly stepId: string; readonly target: string }[];
  /** Compensation steps whose condition cannot be evaluated: they would be recorded as failed. */
  readonly failed: readonly { readonly stepId: string; readonly error: WorkflowError }[];
  /** In flight: given their grace, and compensated before all others if they succeed in it. */
  readonly awaited: readonly AwaitedExecution[];
  /** Execution keys of what would be stopped at once. */
  readonly stopped: readonly string[];
}

export interface PlannedCompensation {
  readonly stepId: string;
  /** Execution key of what it undoes. */
  readonly target: string;
  /** Undefined: an expression gives it, which fails, or is not worked out, as the plan is longer than `maxInputs`. */
  readonly taskId: string | undefined;
  /** Undefined: not worked out, as the plan is longer than `maxInputs`. */
  readonly input: Json | undefined;
  /** It would fail before it runs, as its values cannot be evaluated. */
  readonly error: WorkflowError | null;
}

export interface AwaitedExecution {
  readonly stepId: string;
  /** Execution key. */
  readonly target: string;
  /** Id of the compensation step that would undo it. */
  readonly compensatedBy: string;
  /** When it is waited for no longer, at the latest. */
  readonly until: Date;
}

export interface PreviewOptions {
  readonly reason: string | null;
  readonly actor: string;
  /** Inputs that are worked out; each may be as large as the instance's state. */
  readonly maxInputs: number;
}

const nothing: CompensationPreview = {
  steps: [],
  skipped: [],
  failed: [],
  awaited: [],
  stopped: [],
};

/** @returns The preview, empty for an instance that has ended, or the rows that it needs in `reads`. */
export function previewCompensation(
  definition: Definition,
  snapshot: Snapshot,
  reads: Reads,
  now: Date,
  { reason, actor, maxInputs }: PreviewOptions,
): CompensationPreview | Needs {
  if (!canStillMove(snapshot)) return nothing;
  const after = (...signals: readonly Signal[]) =>
    decide(definition, snapshot, signals, reads, now);

  const cancel: Signal = { kind: "cancelRequested", reason, actor, shouldCompensate: true };
  const cancelled = after(cancel);
  if (isNeeds(cancelled)) return cancelled;

  const graces = gracesOf(cancelled);
  const frozen = after(cancel, ...graces);
  if (isNeeds(frozen)) return frozen;

  const { plan = [], targets = [], failed = [] } = frozen.snapshot.compensation ?? {};
  const successes = successesOf(plan.slice(0, maxInputs), snapshot);
  const undone = after(cancel, ...graces, ...successes);
  if (isNeeds(undone)) return { needs: [...undone.needs, ...leftOut(targets, undone, reads)] };

  const awaited = awaitedOf(definition, cancelled, now);
  return {
    steps: plannedOf(definition, plan, targets, undone, snapshot).map((step, index) =>
      index < maxInputs ? step : { ...step, input: undefined, error: null },
    ),
    skipped: skippedOf(definition, reads, targets, failed),
    failed: failed.map(({ stepId, error }) => ({ stepId, error })),
    awaited,
    stopped: stoppedOf(snapshot, cancelled),
  };
}

/** Each input may need the output in full of what it undoes: they are asked for together. */
function leftOut(targets: readonly string[], { needs }: Needs, { executions }: Reads) {
  const missing = new Set(
    needs.flatMap((each) =>
      each.kind === "execution" ? [executionKey(each.path, each.iteration)] : [],
    ),
  );
  return targets.flatMap((key): ReadRequest[] => {
    const read = executions.get(key);
    if (read?.outputLeftOut !== true || missing.has(key)) return [];
    return [{ kind: "execution", path: read.path, iteration: read.iteration }];
  });
}

function gracesOf({ snapshot }: Decision): readonly Signal[] {
  return Object.values(snapshot.live)
    .filter(({ phase }) => phase === "AWAITED")
    .map(({ path, iteration, attempt }) => ({
      kind: "timerFired",
      timer: "grace",
      path,
      iteration,
      attempt,
    }));
}

/** Each entry of the plan is an execution of its step, after those that were: the first, the second, … */
function executionsOf(
  plan: readonly string[],
  { iterations }: Snapshot,
): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  return plan.map((stepId) => {
    const iteration = (counts.get(stepId) ?? iterations[stepId] ?? 0) + 1;
    counts.set(stepId, iteration);
    return [stepId, iteration];
  });
}

function successesOf(plan: readonly string[], before: Snapshot): readonly Signal[] {
  return executionsOf(plan, before).map(([path, iteration]) => ({
    kind: "stepSucceeded",
    path,
    iteration,
    attempt: 1,
    output: null,
  }));
}

function plannedOf(
  { compensationSteps }: Definition,
  plan: readonly string[],
  targets: readonly string[],
  { inserts }: Decision,
  before: Snapshot,
): readonly PlannedCompensation[] {
  const rows = new Map(inserts.map((row) => [executionKey(row.path, row.iteration), row]));
  return executionsOf(plan, before).map(([stepId, iteration], index) => {
    const row = rows.get(executionKey(stepId, iteration));
    const target = targets[index] ?? "";
    const { taskId } = defined(compensationSteps.get(stepId), stepId);
    return {
      stepId,
      target,
      taskId: typeof taskId === "string" ? taskId : (row?.taskId ?? undefined),
      input: row?.input,
      error: row?.error ?? null,
    };
  });
}

function skippedOf(
  { compensationFor }: Definition,
  { executions }: Reads,
  targets: readonly string[],
  failed: readonly { readonly stepId: string }[],
): CompensationPreview["skipped"] {
  const planned = new Set(targets);
  const broken = new Set(failed.map(({ stepId }) => stepId));
  return [...executions.values()]
    .filter((read): read is ExecutionRead => read !== null && read.completion !== null)
    .toSorted((a, b) => (b.completion ?? 0) - (a.completion ?? 0))
    .flatMap(({ stepId: done, path, iteration }) => {
      const target = executionKey(path, iteration);
      const stepId = compensationFor.get(done)?.stepId;
      if (stepId === undefined || planned.has(target) || broken.has(stepId)) return [];
      return [{ stepId, target }];
    });
}

/** One whose branch was lost earlier has begun its grace already: it ends after a full one at the latest. */
function awaitedOf(
  { compensationFor }: Definition,
  { snapshot, commands }: Decision,
  now: Date,
): readonly AwaitedExecution[] {
  const latest = new Date(now.getTime() + cancelGraceMs);
  return Object.values(snapshot.live).flatMap(({ phase, stepId, path, iteration }) => {
    const compensatedBy = compensationFor.get(stepId)?.stepId;
    if (phase !== "AWAITED" || compensatedBy === undefined) return [];
    const grace = commands.find(
      (command) =>
        command.kind === "setTimer" &&
        command.timer === "grace" &&
        command.path === path &&
        command.iteration === iteration,
    );
    const until = grace?.kind === "setTimer" ? grace.dueAt : latest;
    return [{ stepId, target: executionKey(path, iteration), compensatedBy, until }];
  });
}

/** What was live and is not any more, but for what was only about to be entered. */
function stoppedOf(before: Snapshot, { snapshot }: Decision): readonly string[] {
  return Object.entries(before.live).flatMap(([key, { phase }]) =>
    phase === "READY" || Object.hasOwn(snapshot.live, key) ? [] : [key],
  );
}
