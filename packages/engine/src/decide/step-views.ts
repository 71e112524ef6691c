import type { Json, Reads as ExpressionReads } from "@millrace/expressions";
import { mapAround, pathOfStep } from "../definition/paths.ts";
import { anywhereKey, latestOf } from "../state/reads.ts";
import type { ExecutionRead, ReadRequest } from "../state/reads.ts";
import { executionKey } from "../state/snapshot.ts";
import type { StepStatus } from "../state/status.ts";
import { currentRow, executionOf, latestExecution, MissingReads, requestOf } from "./read-rows.ts";
import { standpoint } from "./standpoint.ts";
import type { Context } from "./standpoint.ts";
import type { Turn } from "./turn.ts";

/** What expressions see of steps: of each the execution that is nearest to where they stand. */

/** A step as expressions and `state.steps` show it. */
export interface StepView {
  readonly status: StepStatus;
  readonly output?: Json;
  readonly error?: Json;
  readonly attempts: number;
}

const noSteps: Readonly<Record<string, StepView>> = {};

export function stepsFor(
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
    return read === null ? [] : [[stepId, stepView(turn, read)]];
  });
  if (missing.length > 0) throw new MissingReads(missing);
  return Object.fromEntries(views);
}

/**
 * Every step that was reached, each by the execution that an expression would see there. They stand in
 * the order of the definition: rows come in another one from the store than in a replay.
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
  const views = [...turn.definition.steps.keys()].flatMap((stepId): [string, StepView][] => {
    if (!reached.has(stepId)) return [];
    const read = pinned?.stepId === stepId ? pinned : latestSeen(turn, stepId, from, missing);
    if (read === null) return [];
    if (read.outputLeftOut && largeOutputs) missing.push(requestOf(read));
    return [[stepId, stepView(turn, read)]];
  });
  if (missing.length > 0) throw new MissingReads(missing);
  return Object.fromEntries(views);
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
  const mapPath = mapAround(turn.definition, stepId, from) ?? stepId;
  const isMeant = (read: Pick<ExecutionRead, "stepId" | "path">) =>
    read.stepId === stepId && read.path.startsWith(`${mapPath}[`);
  const entered = latestOf([...turn.inserts.values()].filter(isMeant));
  if (entered !== undefined) {
    return executionOf(turn, executionKey(entered.path, entered.iteration));
  }
  const stored = turn.reads.all
    ? (latestOf(
        [...turn.reads.executions.values()].flatMap((read) =>
          read !== null && isMeant(read) ? read : [],
        ),
      ) ?? null)
    : turn.reads.anywhere.get(anywhereKey(mapPath, stepId));
  if (stored === undefined) missing.push({ kind: "anywhere", path: mapPath, stepId });
  return stored ? currentRow(turn, stored) : null;
}

function stepView(turn: Turn, read: ExecutionRead): StepView {
  const { path, iteration, output, error, attempt, queue, fence } = read;
  // One that is queued again because its worker died has begun, as for whoever stops it.
  const status = read.status === "PENDING" && fence > 0 ? "RUNNING" : read.status;
  // A claim leaves no other trace, and a replay has to see what was seen.
  if (status === "RUNNING" && queue !== null) {
    turn.observedRunning.add(executionKey(path, iteration));
  }
  return {
    status,
    ...(output !== undefined && { output }),
    ...(error !== null && { error: { ...error } }),
    attempts: attemptsBegun(status, attempt),
  };
}

/** For whoever looks at the step: one that is queued has its attempt before it. */
export function attemptsBegun(status: StepStatus, attempt: number): number {
  return status === "PENDING" ? attempt - 1 : attemptsMade(status, attempt);
}

/**
 * Those that came to an end or are under way: while a row waits for its next attempt it already carries that
 * attempt's number. A step that is skipped has none.
 */
export function attemptsMade(status: StepStatus, attempt: number): number {
  if (status === "SKIPPED") return 0;
  return status === "RETRYING" ? attempt - 1 : attempt;
}
