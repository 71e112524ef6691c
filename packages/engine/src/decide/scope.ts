import type { Expression, Json, Reads as ExpressionReads, Scope, Template } from "@millrace/expressions";
import type { EventFact } from "../state/signal.ts";
import type { ExecutionRead, ReadRequest } from "../state/reads.ts";
import { executionKey } from "../state/snapshot.ts";
import type { Turn } from "./turn.ts";

/**
 * What expressions see. Only the steps that an expression names are looked up; where their rows have
 * not been loaded, the decision stops and says so.
 */

/** Unwinds a decision that lacks rows; `decide` turns it into `Needs`. Never leaves the engine. */
export class MissingReads extends Error {
  readonly requests: readonly ReadRequest[];
  constructor(requests: readonly ReadRequest[]) {
    super("rows are missing");
    this.requests = requests;
  }
}

export interface Context {
  /** The event at hand, in event conditions and payload mappings. */
  readonly event?: EventFact;
  /** `steps.<id>` is this execution, and not the latest one: what a compensation step undoes. */
  readonly pinned?: ExecutionRead;
}

interface Evaluable {
  readonly reads: ExpressionReads;
  evaluate(scope: Scope): unknown;
}

export function evaluateCondition(turn: Turn, condition: Expression, context?: Context): boolean {
  return Boolean(condition.evaluate(scopeFor(turn, condition, context)));
}

/** Undefined where the template's value is. */
export function evaluateTemplate(
  turn: Turn,
  template: Template,
  context?: Context,
): Json | undefined {
  return template.evaluate(scopeFor(turn, template, context)) as Json | undefined;
}

/** @throws MissingReads */
export function scopeFor(turn: Turn, { reads }: Evaluable, context: Context = {}): Scope {
  const { state } = turn;
  const steps = stepsFor(turn, reads, context.pinned);
  const { input, variables } = state;
  return {
    now: turn.now.toISOString(),
    workflow: {
      input,
      variables,
      steps,
      instance: reads.instance
        ? {
            id: state.id,
            status: state.status,
            workflowId: state.workflowId,
            workflowVersion: state.workflowVersion,
            input,
            correlationId: state.correlationId,
            tenantId: state.tenantId,
            userId: state.userId,
            createdAt: state.createdAt.toISOString(),
            startedAt: state.startedAt?.toISOString() ?? null,
            cancellation: state.cancellation,
            state: { input, variables, steps },
          }
        : { state: { input, variables, steps } },
    },
    input,
    variables,
    steps,
    ...(context.event && { event: context.event }),
  };
}

/** A step as expressions and `state.steps` show it. */
export interface StepView {
  readonly status: string;
  readonly output?: Json;
  readonly error?: Json;
  readonly attempts: number;
}

function stepsFor(
  turn: Turn,
  reads: ExpressionReads,
  pinned: ExecutionRead | undefined,
): Readonly<Record<string, StepView>> {
  if (reads.steps === "ALL") return everyStep(turn, pinned);
  if (reads.steps.length === 0) return {};
  const views: Record<string, StepView> = {};
  const missing: ReadRequest[] = [];
  for (const stepId of reads.steps) {
    const read =
      pinned?.stepId === stepId
        ? pinned
        : latestExecution(turn, stepId, reads.stepOutputs.includes(stepId));
    if (read === "unknown") missing.push({ kind: "latest", path: stepId });
    else if (read !== null) views[stepId] = stepView(read);
  }
  if (missing.length > 0) throw new MissingReads(missing);
  return views;
}

/** Every step that was reached, each by its latest execution. @throws MissingReads */
export function everyStep(turn: Turn, pinned?: ExecutionRead): Record<string, StepView> {
  if (!turn.reads.all) throw new MissingReads([{ kind: "all" }]);
  const views: Record<string, StepView> = {};
  for (const path of new Set([...turn.reads.latest.keys(), ...turn.touched.keys()])) {
    if (turn.definition.compensationSteps.has(path)) continue;
    const read = pinned?.path === path ? pinned : latestExecution(turn, path, false);
    if (read !== "unknown" && read !== null) views[path] = stepView(read);
  }
  return views;
}

function stepView({ status, output, error, attempt }: ExecutionRead): StepView {
  return {
    status,
    ...(output !== undefined && { output }),
    ...(error !== null && { error: error as unknown as Json }),
    attempts: attempt,
  };
}

/** The latest execution at a path; null where there is none, "unknown" where it was not loaded. */
function latestExecution(
  turn: Turn,
  path: string,
  withOutput: boolean,
): ExecutionRead | null | "unknown" {
  const touched = turn.touched.get(path);
  if (touched !== undefined) {
    const read = touchedExecution(turn, touched);
    if (read !== undefined) return read;
  }
  const read = turn.reads.latest.get(path);
  if (read === undefined) return turn.reads.all ? null : "unknown";
  if (read?.outputLeftOut === true && withOutput) return "unknown";
  return read;
}

/** An execution as it will be after this turn, if the turn made or changed it. */
export function touchedExecution(turn: Turn, key: string): ExecutionRead | undefined {
  const inserted = turn.inserts.get(key);
  if (inserted !== undefined) return { ...inserted, fence: 0, outputLeftOut: false };
  const updated = turn.updates.get(key);
  if (updated === undefined) return undefined;
  // Top-level paths are step ids.
  return { ...updated, stepId: updated.path, fence: 0, outputLeftOut: false, queue: null };
}

/** One execution's row as stored, whatever this turn does to it. @throws MissingReads */
export function storedExecution(turn: Turn, path: string, iteration: number): ExecutionRead {
  const read = turn.reads.executions.get(executionKey(path, iteration));
  if (!read) throw new MissingReads([{ kind: "execution", path, iteration }]);
  return read;
}
