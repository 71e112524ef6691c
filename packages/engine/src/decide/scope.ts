import { invariant } from "../assert.ts";
import type {
  Expression,
  Json,
  Reads as ExpressionReads,
  Scope,
  Template,
} from "@millrace/expressions";
import { mapAround, pathOfStep, prefixOf, stepIdOf, takeApart } from "../definition/paths.ts";
import { laterOf } from "../state/reads.ts";
import type { ExecutionRead, ReadRequest } from "../state/reads.ts";
import type { EventFact } from "../state/signal.ts";
import type { LiveExecution, Place } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import { comesAgain } from "./execution.ts";
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
  /** The branch or item in which the expression stands: an execution is a context of its own. */
  readonly within?: Place;
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
export function scopeFor(turn: Turn, { reads }: Evaluable, context: Context = {}): Scope {
  const { state } = turn;
  const { input, variables } = state;
  const { event } = context;
  const steps = stepsFor(turn, reads, context);
  const now = reads.now ? turn.now.toISOString() : "";
  const instance = reads.instance ? instanceView(turn, steps) : undefined;
  const workflow = { input, variables, steps, instance };
  const scope = { now, workflow, input, variables, steps, event: event && eventView(event) };
  return reads.item ? { ...scope, ...itemRoots(turn, context) } : scope;
}

/** `item` and `index` are those of the innermost MAP; a name of its own shows an outer item too. */
function itemRoots(turn: Turn, { within, pinned }: Context): Readonly<Record<string, Json>> {
  const roots: Record<string, Json> = {};
  const around = pinned === undefined ? placesAround(turn, within) : placesOf(turn, pinned);
  for (const place of around) {
    const { path, at } = place;
    const current = turn.definition.steps.get(stepIdOf(path));
    if (typeof at !== "number" || current?.type !== "MAP") continue;
    const item = itemsOf(turn, place)[at] ?? null;
    for (const [name, value] of [
      ["item", item],
      ["index", at],
      [current.itemName, item],
    ] as const) {
      if (!Object.hasOwn(roots, name)) roots[name] = value;
    }
  }
  return roots;
}

/** A branch or item, or the like of one that has ended. */
type Around = Pick<Place, "path" | "iteration" | "at">;

/** From the innermost outwards. */
function placesAround({ state }: Turn, within: Place | undefined): readonly Around[] {
  const places: Around[] = [];
  for (let place = within; place !== undefined;) {
    places.push(place);
    const { path, iteration }: Place = place;
    place = state.live[executionKey(path, iteration)]?.within;
  }
  return places;
}

/** The same for an execution that has ended, and whatever was around it perhaps too. */
function placesOf(turn: Turn, { path, iteration, completion }: ExecutionRead): readonly Around[] {
  const places: Around[] = [];
  let inner = { path, iteration };
  for (let place = takeApart(path); place !== undefined; place = takeApart(place.path)) {
    const around = { path: place.path, iteration: passAround(turn, inner, place.path, completion) };
    places.push({ ...around, at: place.at });
    inner = around;
  }
  return places;
}

/**
 * Which pass of the step around it an execution was in. It has that pass's number itself, unless it
 * counts passes of its own; then it is the first pass that completed after it, else the last.
 */
function passAround(
  turn: Turn,
  { path, iteration }: Pick<ExecutionRead, "path" | "iteration">,
  outer: string,
  completion: number | null,
): number {
  const { definition } = turn;
  if (definition.steps.get(stepIdOf(path))?.repeats !== true) return iteration;
  const around = definition.steps.get(stepIdOf(outer));
  if (around === undefined || !comesAgain(definition, around)) return 1;
  const passes = everyExecution(turn)
    .filter((each) => each.path === outer)
    .toSorted((one, other) => one.iteration - other.iteration);
  const after = passes.find((each) => (each.completion ?? 0) > (completion ?? 0));
  return (after ?? passes.at(-1))?.iteration ?? 1;
}

/** @throws MissingReads */
function itemsOf(turn: Turn, { path, iteration }: Around): readonly Json[] {
  const key = executionKey(path, iteration);
  const items = turn.inserts.get(key)?.input ?? turn.reads.inputs.get(key);
  if (items === undefined) throw new MissingReads([{ kind: "input", path, iteration }]);
  return items as readonly Json[];
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
  context: Context,
): Readonly<Record<string, StepView>> {
  if (steps === "ALL") return everyStep(turn, { ...context, largeOutputs: true });
  if (steps.length === 0) return noSteps;
  const { pinned } = context;
  const from = standpoint(context);
  const missing: ReadRequest[] = [];
  const views = steps.flatMap((stepId): [string, StepView][] => {
    const read = pinned?.stepId === stepId ? pinned : latestSeen(turn, stepId, from, missing);
    if (read?.outputLeftOut === true && stepOutputs.includes(stepId)) missing.push(requestOf(read));
    return read === null ? [] : [[stepId, stepView(read)]];
  });
  if (missing.length > 0) throw new MissingReads(missing);
  return Object.fromEntries(views);
}

/** What the paths of the branch or item begin with in which an expression stands. */
function standpoint({ within, pinned }: Context): string {
  return within === undefined ? (pinned?.path ?? "") : prefixOf(within);
}

/**
 * The step of the same branch or item, then of the enclosing ones, else the latest execution
 * (CONTRACT 1.2). Adds to `missing` where it is not loaded.
 */
function latestSeen(
  turn: Turn,
  stepId: string,
  from: string,
  missing: ReadRequest[],
): ExecutionRead | null {
  const path = pathOfStep(turn.definition, stepId, from);
  if (path === undefined) return latestAnywhere(turn, stepId, from, missing);
  const read = latestExecution(turn, path);
  if (read !== "UNKNOWN") return read;
  missing.push({ kind: "latest", path });
  return null;
}

/** Of a step inside a MAP for one that looks from outside: whichever item it is of. */
function latestAnywhere(
  turn: Turn,
  stepId: string,
  from: string,
  missing: ReadRequest[],
): ExecutionRead | null {
  const touched = [...turn.inserts.values(), ...turn.updates.values()].filter(
    (row) => row.stepId === stepId,
  );
  const rows = touched.map(({ path, iteration }) =>
    executionOf(turn, executionKey(path, iteration)),
  );
  if (turn.reads.all) {
    const stored = [...turn.reads.executions.values()].filter((read) => read?.stepId === stepId);
    rows.push(...stored.flatMap((read) => (read === null ? [] : currentRow(turn, read))));
  } else {
    const read = turn.reads.anywhere.get(stepId);
    if (read === undefined) {
      const path = mapAround(turn.definition, stepId, from) ?? stepId;
      missing.push({ kind: "anywhere", path, stepId });
    } else if (read !== null) {
      rows.push(currentRow(turn, read));
    }
  }
  return rows.length === 0 ? null : rows.reduce(laterOf);
}

function currentRow(turn: Turn, read: ExecutionRead): ExecutionRead {
  const changed = changedExecution(turn, executionKey(read.path, read.iteration));
  return changed ?? withOutput(turn, read);
}

/** What was left out of one answer may have come with another. */
function withOutput(turn: Turn, read: ExecutionRead): ExecutionRead {
  return (read.outputLeftOut && storedRow(turn, read)) || read;
}

/**
 * Every step that was reached, each by the execution that an expression would see there.
 *
 * @throws MissingReads
 */
export function everyStep(
  turn: Turn,
  { largeOutputs, ...context }: Context & { readonly largeOutputs: boolean },
): Readonly<Record<string, StepView>> {
  if (!turn.reads.all) throw new MissingReads([{ kind: "all" }]);
  const { pinned } = context;
  const from = standpoint(context);
  const missing: ReadRequest[] = [];
  const rows = [...turn.reads.latest.values(), ...turn.inserts.values()];
  const reached = new Set(rows.flatMap((row) => row?.stepId ?? []));
  const views = [...reached].flatMap((stepId): [string, StepView][] => {
    if (turn.definition.compensationSteps.has(stepId)) return [];
    const read = pinned?.stepId === stepId ? pinned : latestSeen(turn, stepId, from, missing);
    if (read === null) return [];
    if (read.outputLeftOut && largeOutputs) missing.push(requestOf(read));
    return [[stepId, stepView(read)]];
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
  return read && withOutput(turn, read);
}

function storedRow(turn: Turn, { path, iteration }: ExecutionRead) {
  return turn.reads.executions.get(executionKey(path, iteration));
}

/** One execution. @throws MissingReads for it and for those that are asked for `along` with it. */
function executionOf(
  turn: Turn,
  key: string,
  along: () => readonly string[] = () => [],
): ExecutionRead {
  const changed = changedExecution(turn, key);
  if (changed !== undefined) return changed;
  const read = turn.reads.executions.get(key);
  invariant(read !== null, `execution ${key} is not stored`);
  if (read !== undefined) return read;
  const missing = along().filter((other) => other !== key && !turn.reads.executions.has(other));
  throw new MissingReads(
    [key, ...missing].map((each) => ({ kind: "execution", ...parseKey(each) }) as const),
  );
}

/** One execution with its output, however large. @throws MissingReads */
export function wholeExecutionOf(turn: Turn, key: string): ExecutionRead {
  const read = executionOf(turn, key);
  if (read.outputLeftOut) throw new MissingReads([requestOf(read)]);
  return read;
}

/** The outputs of executions, by key; whatever has to be loaded is asked for at once. @throws MissingReads */
export function outputsOf(
  turn: Turn,
  keys: readonly string[],
): ReadonlyMap<string, Json | undefined> {
  const missing: ReadRequest[] = [];
  const outputs = keys.map((key) => {
    const read = changedExecution(turn, key) ?? turn.reads.executions.get(key);
    if (read === undefined || read?.outputLeftOut === true) {
      missing.push({ kind: "execution", ...parseKey(key) });
    }
    return [key, read?.output] as const;
  });
  if (missing.length > 0) throw new MissingReads(missing);
  return new Map(outputs);
}

/**
 * Of each completed item of a MAP the row whose output is the item's: of its own steps in `stepIds`
 * the one completed last, since the MAP began.
 *
 * @throws MissingReads
 */
export function itemRows(
  turn: Turn,
  { path, iteration }: LiveExecution,
  after: number,
  stepIds: readonly string[],
): ReadonlyMap<number, ExecutionRead> {
  const stored = turn.reads.all
    ? [...turn.reads.executions.values()].flatMap((read) => read ?? [])
    : turn.reads.items.get(executionKey(path, iteration));
  if (stored === undefined) {
    throw new MissingReads([{ kind: "items", path, iteration, after, stepIds }]);
  }
  const changed = [...turn.inserts.keys(), ...turn.updates.keys()];
  const rows = new Map<number, ExecutionRead>();
  for (const read of [
    ...stored.map((each) => currentRow(turn, each)),
    ...changed.map((key) => executionOf(turn, key)),
  ]) {
    if (!stepIds.includes(read.stepId) || (read.completion ?? 0) <= after) continue;
    const place = takeApart(read.path);
    if (place?.path !== path || typeof place.at !== "number") continue;
    const known = rows.get(place.at);
    if ((known?.completion ?? 0) < (read.completion ?? 0)) rows.set(place.at, read);
  }
  const missing: ReadRequest[] = [];
  for (const [at, read] of rows) {
    if (!read.outputLeftOut) continue;
    const whole = storedRow(turn, read);
    if (whole === undefined || whole === null || whole.outputLeftOut) missing.push(requestOf(read));
    else rows.set(at, whole);
  }
  if (missing.length > 0) throw new MissingReads(missing);
  return rows;
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
  // Whoever stops one of many stops the others next: their rows come in one go.
  const { status, fence } = executionOf(turn, key, () => activeKeys(turn));
  if (turn.inserts.has(key) || turn.updates.has(key)) return status;
  const begun = status === "RUNNING" || (status === "PENDING" && fence > 0);
  if (begun) turn.observedRunning.add(key);
  else turn.guards.set(key, { kind: "execution", path, iteration, status, fence });
  return begun ? "RUNNING" : status;
}

function activeKeys(turn: Turn): readonly string[] {
  return Object.entries(turn.before.live).flatMap(([key, { phase }]) =>
    phase === "ACTIVE" ? [key] : [],
  );
}
