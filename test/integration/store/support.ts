import { randomBytes, randomUUID } from "node:crypto";
import { createSnapshot } from "@millrace/engine";
import type {
  Command,
  Decision,
  Definition,
  ExecutionUpdate,
  LiveExecution,
  NewExecution,
  NewWait,
  Signal,
  Snapshot,
} from "@millrace/engine";
import { commitBatch, createBatch, findWaits, keyHashOf, openDatabase } from "@millrace/store";
import type {
  ClaimRequest,
  Commit,
  CommitOutcome,
  DatabaseHandle,
  Db,
  Json,
  NewEvent,
  StoredEvent,
  WaitCandidate,
  WaitSearch,
} from "@millrace/store";
import { createDatabase } from "@millrace/testkit";
import { sql } from "kysely";
import pg from "pg";

/** Commits written by hand: what the store does must not depend on what the engine decides. */

export const tenantId = "test";

export interface OpenedDatabase extends DatabaseHandle {
  drop(): Promise<void>;
}

export async function openTestDatabase(poolSize = 10): Promise<OpenedDatabase> {
  const created = await createDatabase();
  const database = await openDatabase({
    url: created.url,
    poolSize,
    applicationName: "store-test",
  });
  return {
    ...database,
    async drop() {
      await database.close();
      await created.drop();
    },
  };
}

/** A UUIDv7 of that millisecond. */
export function instanceId(at = Date.now()): string {
  const time = at.toString(16).padStart(12, "0");
  const random = randomBytes(10).toString("hex");
  return [
    time.slice(0, 8),
    time.slice(8),
    `7${random.slice(0, 3)}`,
    `8${random.slice(3, 6)}`,
    random.slice(6, 18),
  ].join("-");
}

export function blank(fields: Partial<Snapshot> = {}): Snapshot {
  const createdAt = fields.createdAt ?? new Date();
  const definition = {
    id: "wf",
    version: 1,
    priority: 0,
    variables: {},
  } as unknown as Definition;
  return {
    ...createSnapshot(definition, {
      id: instanceId(createdAt.getTime()),
      tenantId,
      input: { orderId: "o-1" },
      correlationId: null,
      userId: null,
      priority: null,
      startEventId: null,
      createdAt,
    }),
    ...fields,
  };
}

export function live(path: string, fields: Partial<LiveExecution> = {}): LiveExecution {
  return { stepId: path, path, iteration: 1, phase: "ACTIVE", attempt: 1, timers: [], ...fields };
}

export function execution(path: string, fields: Partial<NewExecution> = {}): NewExecution {
  return {
    stepId: path,
    path,
    iteration: 1,
    type: "TASK",
    status: "PENDING",
    attempt: 1,
    taskId: "noop",
    queue: "default",
    priority: 0,
    input: undefined,
    output: undefined,
    error: null,
    completion: null,
    entry: null,
    timeoutMs: null,
    heartbeatTimeoutMs: null,
    startedAt: null,
    completedAt: null,
    compensates: null,
    ...fields,
  };
}

export function decision(snapshot: Snapshot, fields: Partial<Decision> = {}): Decision {
  return {
    snapshot,
    inserts: [],
    updates: [],
    commands: [],
    guards: [],
    entries: [],
    observedRunning: [],
    ...fields,
  };
}

export function commit(
  previous: Snapshot,
  next: Partial<Snapshot>,
  fields: Partial<Decision> = {},
  rest: Partial<Commit> = {},
): Commit {
  const snapshot = { ...previous, ...next, version: previous.version + 1 };
  return {
    previous,
    decision: decision(snapshot, fields),
    signals: [{ kind: "started" }],
    at: new Date(),
    actor: "test",
    holds: [],
    carry: [],
    ...rest,
  };
}

/** A first commit: the instance runs, with one task PENDING. */
export function firstCommit(
  previous: Snapshot = blank(),
  { inserts = [execution("a")], ...fields }: Partial<Decision> = {},
  rest: Partial<Commit> = {},
): Commit {
  const running: Partial<Snapshot> = {
    status: "RUNNING",
    startedAt: previous.createdAt,
    live: Object.fromEntries(
      inserts.map((row) => [`${row.path}#${row.iteration}`, live(row.path)]),
    ),
  };
  return commit(
    previous,
    running,
    { inserts, ...fields },
    {
      create: { metadata: null, deadline: null },
      ...rest,
    },
  );
}

/** Creates an instance and answers its snapshot at version 1. */
export async function create(db: Db, first: Commit = firstCommit()): Promise<Snapshot> {
  const [outcome] = await createBatch(db, [first]);
  if (outcome instanceof Error) throw outcome;
  if (outcome?.kind !== "committed") throw new Error(`not created: ${JSON.stringify(outcome)}`);
  return first.decision.snapshot;
}

export async function commitOne(db: Db, one: Commit): Promise<CommitOutcome> {
  const [outcome] = await commitBatch(db, [one]);
  if (outcome === undefined || outcome instanceof Error) throw outcome;
  return outcome;
}

export function claimRequest(
  snapshot: Snapshot,
  worker: string,
  fields: Partial<ClaimRequest> = {},
): ClaimRequest {
  return {
    tenantId: snapshot.tenantId,
    instanceId: snapshot.id,
    path: "a",
    iteration: 1,
    attempt: 1,
    fence: 0,
    workerId: worker,
    carrier: "job-1",
    timeoutMs: null,
    heartbeatTimeoutMs: null,
    retry: null,
    ...fields,
  };
}

/** The result of the held step `path`, and the step that follows it, if any. */
export function result(
  previous: Snapshot,
  {
    path = "a",
    fence = 1,
    workerId: worker,
    output = { ok: true } as never,
  }: {
    readonly path?: string;
    readonly fence?: number;
    readonly workerId: string;
    readonly output?: never;
  },
  next?: string,
  rest: Partial<Commit> = {},
): Commit {
  const completion = previous.completions + 1;
  const at = new Date();
  const { [`${path}#1`]: _done, ...others } = previous.live;
  const signal: Signal = { kind: "stepSucceeded", path, iteration: 1, attempt: 1, output };
  return commit(
    previous,
    {
      completions: completion,
      completedSteps: completion,
      lastOutput: `${path}#1`,
      live: next === undefined ? others : { ...others, [`${next}#1`]: live(next) },
      ...(next === undefined && { status: "COMPLETED", completedAt: at, output }),
    },
    {
      updates: [
        {
          path,
          iteration: 1,
          status: "COMPLETED",
          attempt: 1,
          output,
          error: null,
          completion,
          completedAt: at,
          retryAt: null,
          awaited: false,
        },
      ],
      inserts: next === undefined ? [] : [execution(next)],
      commands: next === undefined ? [{ kind: "settle" }] : [],
      entries: [{ type: "workflow.step.completed", stepId: path }],
    },
    {
      signals: [signal],
      at,
      holds: [{ path, iteration: 1, fence, workerId: worker }],
      ...rest,
    },
  );
}

export function workerId(): string {
  return randomUUID();
}

export function stepUpdate(path: string, fields: Partial<ExecutionUpdate> = {}): ExecutionUpdate {
  return {
    path,
    iteration: 1,
    status: "COMPLETED",
    attempt: 1,
    output: undefined,
    error: null,
    completion: null,
    completedAt: null,
    retryAt: null,
    awaited: false,
    ...fields,
  };
}

export function openWait(path: string, pattern: string, fields: Partial<NewWait> = {}): Command {
  return {
    kind: "openWait",
    wait: {
      path,
      iteration: 1,
      stepId: path,
      purpose: "STEP",
      pattern,
      eventPaths: [],
      key: [],
      deliver: "ALL",
      lookbackFrom: null,
      ...fields,
    },
  };
}

export function newEvent(fields: Partial<NewEvent> = {}): NewEvent {
  return {
    tenantId,
    id: randomUUID(),
    pattern: "thing.happened",
    payload: {},
    occurredAt: new Date(),
    actor: "test",
    ...fields,
  };
}

/** Candidates among waits that are not keyed, or that are keyed by `values`. */
export async function waitsOf(
  db: Db,
  event: StoredEvent,
  probe: { readonly eventPaths: string; readonly values: readonly Json[] } = {
    eventPaths: "",
    values: [],
  },
  fields: Partial<WaitSearch> = {},
): Promise<readonly WaitCandidate[]> {
  return findWaits(db, {
    event,
    probes: [
      {
        pattern: event.pattern,
        eventPaths: probe.eventPaths,
        keyHash: keyHashOf(probe.values) ?? "0",
      },
    ],
    purpose: "STEP",
    limit: 100,
    ...fields,
  });
}

/** A transaction on a connection of its own, to be in the way of others. */
export function openTransaction(url: string) {
  const client = new pg.Client({ connectionString: url });
  const begun = client.connect().then(() => client.query("begin"));
  return {
    async run(text: string): Promise<void> {
      await begun;
      await client.query(text);
    },
    async commit(): Promise<void> {
      await client.query("commit");
      await client.end();
    },
  };
}

/** Whether some statement waits for a lock. */
export async function isWaiting(db: Db): Promise<boolean> {
  const { rows } = await sql<{ n: number }>`
    select count(*)::integer as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return (rows[0]?.n ?? 0) > 0;
}

/** How many statements this process sends while `act` runs, on whatever connection. */
export async function statementsOf(act: () => Promise<unknown>): Promise<number> {
  const original = pg.Client.prototype.query;
  let count = 0;
  pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]) {
    count += 1;
    return Reflect.apply(original, this, args) as unknown;
  } as typeof original;
  try {
    await act();
  } finally {
    pg.Client.prototype.query = original;
  }
  return count;
}
