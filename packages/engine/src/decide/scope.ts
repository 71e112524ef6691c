import { invariant } from "../assert.ts";
import type {
  Expression,
  Json,
  Reads as ExpressionReads,
  Scope,
  Template,
} from "@millrace/expressions";
import type { ExecutionRead, ReadRequest } from "../state/reads.ts";
import type { EventFact } from "../state/signal.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import type { Turn } from "./turn.ts";

/**
 * What expressions see, and what decisions read of step rows. Only the steps that an expression
 * names are looked up; where their rows have not been loaded, the decision stops and says so.
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
  /** The event at hand, in event conditions and the reasons of triggers. */
  readonly event?: EventFact;
  /** `steps.<id>` is this execution, and not the latest one: what a compensation step undoes. */
  readonly pinned?: ExecutionRead;
}

interface Evaluable {
  readonly reads: ExpressionReads;
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
export function scopeFor(turn: Turn, { reads }: Evaluable, { event, pinned }: Context = {}): Scope {
  const { state } = turn;
  const { input, variables } = state;
  const steps = stepsFor(turn, reads, pinned);
  const now = reads.now ? turn.now.toISOString() : "";
  const instance = reads.instance ? instanceView(turn, steps) : undefined;
  const workflow = { input, variables, steps, instance };
  return { now, workflow, input, variables, steps, event: event && eventView(event) };
}

function instanceView({ state }: Turn, steps: Readonly<Record<string, StepView>>) {
  const { id, status, workflowId, workflowVersion, input, variables, cancellation } = state;
  const { correlationId, tenantId, userId } = state;
  return {
    id,
    status,
    workflowId,
    workflowVersion,
    input,
    correlationId,
    tenantId,
    userId,
    createdAt: state.createdAt.toISOString(),
    startedAt: state.startedAt?.toISOString() ?? null,
    cancellation,
    state: { input, variables, steps },
  };
}

/** The event as the outside knows it (CONTRACT 1.2). */
export function eventView({ id, pattern, payload, occurredAt }: EventFact) {
  return { id, pattern, payload, occurredAt };
}

/** A step as expressions and `state.steps` show it. */
export interface StepView {
  readonly status: StepStatus;
  readonly output?: Json;
  readonly error?: Json;
  readonly attempts: number;
}

const noSteps: Readonly<Record<string, StepView>> = {};

function stepsFor(
  turn: Turn,
  { steps, stepOutputs }: ExpressionReads,
  pinned: ExecutionRead | undefined,
): Readonly<Record<string, StepView>> {
  if (steps === "ALL") return everyStep(turn, { pinned, largeOutputs: true });
  if (steps.length === 0) return noSteps;
  const missing: ReadRequest[] = [];
  const views = steps.flatMap((stepId): [string, StepView][] => {
    const read = pinned?.stepId === stepId ? pinned : latestExecution(turn, stepId);
    if (read === "UNKNOWN") missing.push({ kind: "latest", path: stepId });
    else if (read?.outputLeftOut === true && stepOutputs.includes(stepId)) {
      missing.push(requestOf(read));
    }
    return read === "UNKNOWN" || read === null ? [] : [[stepId, stepView(read)]];
  });
  if (missing.length > 0) throw new MissingReads(missing);
  return Object.fromEntries(views);
}

/** Every step that was reached, each by its latest execution. @throws MissingReads */
export function everyStep(
  turn: Turn,
  { pinned, largeOutputs }: { pinned: ExecutionRead | undefined; largeOutputs: boolean },
): Readonly<Record<string, StepView>> {
  if (!turn.reads.all) throw new MissingReads([{ kind: "all" }]);
  const missing: ReadRequest[] = [];
  const paths = new Set([...turn.reads.latest.keys(), ...turn.touched.keys()]);
  const views = [...paths].flatMap((path): [string, StepView][] => {
    if (turn.definition.compensationSteps.has(path)) return [];
    const read = pinned?.path === path ? pinned : latestExecution(turn, path);
    if (read === "UNKNOWN" || read === null) return [];
    if (read.outputLeftOut && largeOutputs) missing.push(requestOf(read));
    return [[path, stepView(read)]];
  });
  if (missing.length > 0) throw new MissingReads(missing);
  return Object.fromEntries(views);
}

function stepView({ status, output, error, attempt }: ExecutionRead): StepView {
  return {
    status,
    ...(output !== undefined && { output }),
    ...(error !== null && { error: { ...error } }),
    attempts: attemptsMade(status, attempt),
  };
}

/** While it waits for its next attempt, a row already carries that attempt's number. */
export function attemptsMade(status: StepStatus, attempt: number): number {
  return status === "RETRYING" ? attempt - 1 : attempt;
}

// Rows, as this turn has left them so far

/** Null where there is none, "UNKNOWN" where it was not loaded. */
function latestExecution(turn: Turn, path: string): ExecutionRead | null | "UNKNOWN" {
  const touched = turn.touched.get(path);
  if (touched !== undefined) return executionOf(turn, touched);
  const read = turn.reads.latest.get(path);
  if (read === undefined) return turn.reads.all ? null : "UNKNOWN";
  // What was left out of one answer may have come with another.
  return (read?.outputLeftOut === true && storedRow(turn, read)) || read;
}

function storedRow(turn: Turn, { path, iteration }: ExecutionRead) {
  return turn.reads.executions.get(executionKey(path, iteration));
}

/** One execution. @throws MissingReads */
function executionOf(turn: Turn, key: string): ExecutionRead {
  const changed = changedExecution(turn, key);
  if (changed !== undefined) return changed;
  const read = turn.reads.executions.get(key);
  invariant(read !== null, `execution ${key} is not stored`);
  if (read === undefined) throw new MissingReads([{ kind: "execution", ...parseKey(key) }]);
  return read;
}

/** One execution with its output, however large. @throws MissingReads */
export function wholeExecutionOf(turn: Turn, key: string): ExecutionRead {
  const read = executionOf(turn, key);
  if (read.outputLeftOut) throw new MissingReads([requestOf(read)]);
  return read;
}

/** Every execution of the instance. @throws MissingReads */
export function everyExecution(turn: Turn): readonly ExecutionRead[] {
  if (!turn.reads.all) throw new MissingReads([{ kind: "all" }]);
  const stored = [...turn.reads.executions].flatMap(([key, read]) => (read === null ? [] : [key]));
  return [...new Set([...stored, ...turn.inserts.keys()])].map((key) => executionOf(turn, key));
}

function changedExecution(turn: Turn, key: string): ExecutionRead | undefined {
  const inserted = turn.inserts.get(key);
  if (inserted !== undefined) return readOf(inserted, inserted.queue);
  const updated = turn.updates.get(key);
  return updated && readOf(updated, null);
}

function readOf(
  row: Omit<ExecutionRead, "fence" | "outputLeftOut" | "queue">,
  queue: string | null,
): ExecutionRead {
  const { stepId, path, iteration, status, attempt, output, error, completion } = row;
  return {
    stepId,
    path,
    iteration,
    status,
    attempt,
    fence: 0,
    output,
    outputLeftOut: false,
    error,
    completion,
    queue,
  };
}

function requestOf({ path, iteration }: ExecutionRead): ReadRequest {
  return { kind: "execution", path, iteration };
}

function parseKey(key: string): { readonly path: string; readonly iteration: number } {
  const hash = key.lastIndexOf("#");
  return { path: key.slice(0, hash), iteration: Number(key.slice(hash + 1)) };
}

/**
 * The status of a row that workers may move without the snapshot's version. Whatever is decided by
 * it must still be so at the commit: RUNNING is kept for the replay, anything else is guarded.
 *
 * A row that is PENDING again because its worker died counts as RUNNING: nobody knows what was done.
 *
 * @throws MissingReads
 */
export function observeStatus(turn: Turn, { path, iteration }: LiveExecution): StepStatus {
  const key = executionKey(path, iteration);
  const { status, fence } = executionOf(turn, key);
  if (turn.inserts.has(key) || turn.updates.has(key)) return status;
  const begun = status === "RUNNING" || (status === "PENDING" && fence > 0);
  if (begun) turn.observedRunning.add(key);
  else turn.guards.set(key, { kind: "execution", path, iteration, status, fence });
  return begun ? "RUNNING" : status;
}
