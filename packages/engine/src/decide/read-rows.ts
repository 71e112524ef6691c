import type { Json } from "@millrace/expressions";
import { invariant } from "../assert.ts";
import { takeApart } from "../definition/paths.ts";
import type { ExecutionRead, ReadRequest } from "../state/reads.ts";
import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import type { Turn } from "./turn.ts";

/** The rows of steps as this turn has left them so far. Those that were not loaded are asked for. */

/** Unwinds a decision that lacks rows; `decide` turns it into `Needs`. Never leaves the engine. */
export class MissingReads extends Error {
  readonly requests: readonly ReadRequest[];
  constructor(requests: readonly ReadRequest[]) {
    super("rows are missing");
    this.requests = requests;
  }
}

/** One execution. @throws MissingReads for it and for those that are asked for `along` with it. */
export function executionOf(
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

/** Every execution of the instance, in one order wherever the rows come from. @throws MissingReads */
export function everyExecution(turn: Turn): readonly ExecutionRead[] {
  if (!turn.reads.all) throw new MissingReads([{ kind: "all" }]);
  const stored = [...turn.reads.executions].flatMap(([key, read]) => (read === null ? [] : [key]));
  return [...new Set([...stored, ...turn.inserts.keys()])]
    .map((key) => executionOf(turn, key))
    .toSorted(byPath);
}

/** As the store gives them. */
function byPath(one: ExecutionRead, other: ExecutionRead): number {
  if (one.path !== other.path) return one.path < other.path ? -1 : 1;
  return one.iteration - other.iteration;
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

/** Null where there is none, "UNKNOWN" where it was not loaded. */
export function latestExecution(turn: Turn, path: string): ExecutionRead | null | "UNKNOWN" {
  const touched = turn.touched.get(path);
  if (touched !== undefined) return executionOf(turn, touched);
  const read = turn.reads.latest.get(path);
  if (read === undefined) return turn.reads.all ? null : "UNKNOWN";
  return read && withOutput(turn, read);
}

function storedRow(turn: Turn, { path, iteration }: ExecutionRead) {
  return turn.reads.executions.get(executionKey(path, iteration));
}

export function currentRow(turn: Turn, read: ExecutionRead): ExecutionRead {
  const changed = changedExecution(turn, executionKey(read.path, read.iteration));
  return changed ?? withOutput(turn, read);
}

/** What was left out of one answer may have come with another. */
function withOutput(turn: Turn, read: ExecutionRead): ExecutionRead {
  return (read.outputLeftOut && storedRow(turn, read)) || read;
}

function changedExecution(turn: Turn, key: string): ExecutionRead | undefined {
  const inserted = turn.inserts.get(key);
  if (inserted !== undefined) return readOf(inserted, inserted);
  const updated = turn.updates.get(key);
  return updated && readOf(updated, { queue: null, entry: null });
}

function readOf(
  row: Omit<ExecutionRead, "fence" | "outputLeftOut" | "queue" | "entry">,
  { queue, entry }: Pick<ExecutionRead, "queue" | "entry">,
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
    entry,
    queue,
  };
}

export function requestOf({ path, iteration }: ExecutionRead): ReadRequest {
  return { kind: "execution", path, iteration };
}

function parseKey(key: string): { readonly path: string; readonly iteration: number } {
  const hash = key.lastIndexOf("#");
  return { path: key.slice(0, hash), iteration: Number(key.slice(hash + 1)) };
}
