import { executionKey, isInItem, waitPathsOf } from "@millrace/engine";
import type { Definition, LiveExecution, StepStatus } from "@millrace/engine";
import type { InstanceRead, StepRead } from "@millrace/store";
import type { MissingPart, Reason } from "./reason.ts";

/** What is marked as started a moment ago may still be under way. */
const underWayMs = 10_000;
const mostShown = 20;

/**
 * What an instance waits for by its snapshot, and no row says, so that nothing would ever wake it: somebody has
 * written past Millrace, or rows were lost. A look at what `read` has anyway; the consistency check says
 * more, and takes longer.
 */
export function missingParts(
  definition: Definition | undefined,
  read: InstanceRead,
  at: Date,
): readonly Reason[] {
  const { snapshot, timers } = read;
  const stored = new Set(timers.map((timer) => timerName(timer.kind, timer)));
  const own = snapshot.timers.flatMap((kind) =>
    stored.has(timerName(kind, { path: "", iteration: 0 })) ? [] : [damaged("TIMER", null)],
  );
  const ofSteps = Object.values(snapshot.live).flatMap((execution) => {
    const missing = new Set(partsOf(definition, read, execution, at));
    if (execution.timers.some((kind) => !stored.has(timerName(kind, execution)))) {
      missing.add("TIMER");
    }
    const key = executionKey(execution.path, execution.iteration);
    return [...missing].map((part) => damaged(part, key));
  });
  return [...own, ...ofSteps].slice(0, mostShown);
}

export function damaged(missing: MissingPart, executionId: string | null): Reason {
  return { kind: "DAMAGED", missing, executionId };
}

function timerName(kind: string, { path, iteration }: Place): string {
  return `${kind} ${executionKey(path, iteration)}`;
}

interface Place {
  readonly path: string;
  readonly iteration: number;
}

function partsOf(
  definition: Definition | undefined,
  { steps, waits }: InstanceRead,
  execution: LiveExecution,
  at: Date,
): readonly MissingPart[] {
  const { stepId, path, iteration, phase } = execution;
  const step = steps.find((each) => each.path === path && each.iteration === iteration);
  // Of the items of a MAP not all have been read.
  if (step === undefined) return phase === "READY" || isInItem(path) ? [] : ["STEP"];
  if (phase === "ACTIVE") return isUnsettled.has(step.status) ? [] : ["STEP"];
  if (phase !== "WAITING") return [];
  if (definition?.steps.get(stepId)?.type === "EVENT_WAIT") {
    const open = new Set(waits.map((wait) => executionKey(wait.path, wait.iteration)));
    const paths = waitPathsOf(execution);
    return paths.every((each) => open.has(executionKey(each, iteration))) ? [] : ["WAIT"];
  }
  return execution.child === undefined || hasChild(step, execution.child, at) ? [] : ["CHILD"];
}

const isUnsettled: ReadonlySet<StepStatus> = new Set(["PENDING", "RUNNING", "RETRYING"]);

function hasChild({ child }: StepRead, childId: string, at: Date): boolean {
  if (child === undefined || child.childId !== childId) return false;
  const { status, startedAt } = child;
  return status !== null || startedAt === null || at.getTime() - startedAt.getTime() < underWayMs;
}
