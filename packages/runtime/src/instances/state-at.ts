import { applyChanges, attemptsMade, blankSnapshot, executionKey } from "@millrace/engine";
import type {
  Changes,
  Definition,
  ExecutionRead,
  HistoryEntry,
  Snapshot,
  StepStatus,
  WorkflowError,
} from "@millrace/engine";
import { loadInstance, loadReads, readHistory } from "@millrace/store";
import type { HistoryRow, Key } from "@millrace/store";
import { InstanceNotFoundError, VersionNotFoundError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";

/** An instance as it was at one of its versions, built again from its history (DESIGN, History). */
export interface StateAt {
  readonly snapshot: Snapshot;
  readonly definition: Definition;
  /** When the version was committed. */
  readonly at: Date;
  readonly latestVersion: number;
  /** Of each step in the order in which they were entered; compensation steps are among them. */
  readonly executions: readonly ExecutionAt[];
}

/**
 * An execution as far as the history tells. Workers take and leave rows without a new version, so that
 * a task reads PENDING from the moment it was handed out until it ends, or is RETRYING.
 */
export interface ExecutionAt {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly status: StepStatus;
  readonly attempts: number;
  readonly error: WorkflowError | null;
  /** Undefined while there is none, or where it is too large to come along. */
  readonly output: unknown;
  readonly since: Date;
  readonly completedAt: Date | null;
  /** Of a wait: those of the events that have not come at this version. */
  readonly patterns: readonly string[];
  /** Of a delay: its end. */
  readonly until: string | null;
}

/** Commits read per statement. */
const pageSize = 500;

/**
 * @param version Default: the latest.
 * @throws InstanceNotFoundError, VersionNotFoundError
 */
export async function stateAt(
  services: Services,
  { tenantId }: Caller,
  instanceId: string,
  version?: number,
): Promise<StateAt> {
  const { db } = services.database;
  const key = { tenantId, instanceId };
  const current = await loadInstance(db, key);
  if (current === undefined) throw new InstanceNotFoundError(instanceId);
  const wanted = version ?? current.version;
  if (wanted > current.version) throw new VersionNotFoundError(instanceId, wanted, current.version);

  let snapshot = blankSnapshot(current);
  let at = current.createdAt;
  const told: Tellings = new Map();
  for await (const row of commitsOf(services, key, wanted)) {
    snapshot = applyChanges(snapshot, row.changes);
    at = row.at;
    for (const entry of row.entries) tell(told, entry, row.at);
    tellOpened(told, row.changes, snapshot, row.at);
  }
  if (snapshot.version !== wanted) throw new VersionNotFoundError(instanceId, wanted);

  const { workflowId, workflowVersion } = current;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  const { executions: rows } = await loadReads(db, key, [{ kind: "all" }]);
  const rowOf = ({ path, iteration }: Telling) => rows.get(executionKey(path, iteration));
  const entryOf = (each: Telling) => rowOf(each)?.entry ?? 0;
  const executions = [...told.values()]
    .toSorted((one, other) => entryOf(one) - entryOf(other))
    .map((each) => withRow({ ...each, patterns: openPatterns(each, snapshot) }, rowOf(each)));
  return { snapshot, definition, at, latestVersion: current.version, executions };
}

async function* commitsOf(
  { database: { db } }: Services,
  key: Key,
  upTo: number,
): AsyncGenerator<HistoryRow, void, undefined> {
  for (let version = 0; version < upTo;) {
    const rows = await readHistory(db, key, version, Math.min(pageSize, upTo - version));
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined) return;
    ({ version } = last);
  }
}

/** By execution key, what the audit has said of it last. */
type Tellings = Map<string, Telling>;

type Telling = Omit<ExecutionAt, "output">;

const statuses: Readonly<Record<string, StepStatus>> = {
  "workflow.step.scheduled": "PENDING",
  "workflow.step.waiting": "WAITING",
  "workflow.step.retrying": "RETRYING",
  "workflow.step.awaited": "RUNNING",
  "workflow.step.completed": "COMPLETED",
  "workflow.step.failed": "FAILED",
  "workflow.step.skipped": "SKIPPED",
  "workflow.step.cancelled": "CANCELLED",
  "workflow.compensation.step.completed": "COMPLETED",
  "workflow.compensation.step.failed": "FAILED",
};

const settled: readonly StepStatus[] = ["COMPLETED", "FAILED", "SKIPPED", "CANCELLED"];

/** What only the row knows, and does not change once it is settled. */
function withRow(told: Telling, row: ExecutionRead | null | undefined): ExecutionAt {
  const attempts = row && isSettled(told) ? attemptsMade(row.status, row.attempt) : told.attempts;
  // An output is written once, by the commit that completes the execution. It may fail in being left.
  const isOver = told.status === "COMPLETED" || told.status === "FAILED";
  return { ...told, attempts, output: isOver ? row?.output : undefined };
}

function openPatterns({ path, iteration, patterns }: Telling, { live }: Snapshot) {
  const { awaiting } = live[executionKey(path, iteration)] ?? {};
  return awaiting === undefined ? patterns : patterns.filter((_, place) => place in awaiting);
}

function isSettled({ status }: Telling): boolean {
  return settled.includes(status);
}

/** The audit has no entry for a PARALLEL or MAP that opens. */
function tellOpened(told: Tellings, { live }: Changes, snapshot: Snapshot, at: Date): void {
  for (const key of Object.keys(live?.set ?? {})) {
    const execution = snapshot.live[key];
    if (execution?.phase !== "OPEN" || told.has(key)) continue;
    const { stepId, path, iteration } = execution;
    const nothing = { error: null, completedAt: null, patterns: [], until: null };
    told.set(key, {
      stepId,
      path,
      iteration,
      status: "RUNNING",
      attempts: 1,
      since: at,
      ...nothing,
    });
  }
}

function tell(told: Tellings, entry: HistoryEntry, at: Date): void {
  const { type, stepId, path = stepId, iteration = 1 } = entry;
  const status = statuses[type];
  if (stepId === undefined || path === undefined || status === undefined) return;
  const key = executionKey(path, iteration);
  const data = entry.data as EntryData;
  const before = told.get(key);
  told.set(key, {
    stepId,
    path,
    iteration,
    status,
    // Of a retry the entry names the attempt that failed, of a task that is handed out the next one.
    attempts: (data?.attempt ?? 1) - (status === "PENDING" ? 1 : 0),
    error: data?.error ?? null,
    since: before?.since ?? at,
    completedAt: settled.includes(status) ? at : null,
    patterns: patternsOf(data) ?? before?.patterns ?? [],
    until: data?.until ?? before?.until ?? null,
  });
}

/** What the engine's own entries about steps hold. */
type EntryData =
  | {
      readonly attempt?: number;
      readonly error?: WorkflowError;
      readonly pattern?: string;
      readonly patterns?: readonly string[];
      readonly until?: string;
    }
  | null
  | undefined;

function patternsOf(data: EntryData): readonly string[] | undefined {
  return data?.patterns ?? (data?.pattern === undefined ? undefined : [data.pattern]);
}
