import { encodeFrontier, isSettled, isTerminal } from "@millrace/engine";
import type {
  ChildEnd,
  ChildEvidence,
  CommitEvidence,
  MadeCommit,
  ParentLink,
  ReplayedStep,
  Snapshot,
} from "@millrace/engine";
import { commitStatement } from "./commit/commit-statement.ts";
import type { Commit, Key, ReceivedSignal, Written } from "./commit.ts";
import { dueColumns, dueStepOf } from "./due-step.ts";
import type { DueRow, DueStep } from "./due-step.ts";
import { draftOf } from "./commit/draft.ts";
import { nobody } from "./due.ts";
import { instanceColumns, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { jsonText } from "./json.ts";
import type { Json } from "./json.ts";
import { patchColumns } from "./patch.ts";
import { prepared, run, type Db } from "./statement.ts";
import { sharedTenant } from "./tenants.ts";
import { receivedOf, toldBodyOf } from "./told-body.ts";
import type { ToldRow } from "./told-body.ts";
import { rowSource } from "./unnest.ts";

/** What mends damage that commits do not know of: each is one guarded statement, or one transaction. */

/**
 * Puts the instance's row back to what `commit.previous` says, and commits on top of it, in one
 * transaction: the audit says so from the same moment.
 *
 * @param storedVersion Of the damaged row.
 * @returns False where somebody has committed meanwhile: nothing was written.
 */
export async function rebuildInstance(
  db: Db,
  storedVersion: number,
  commit: Commit,
): Promise<boolean> {
  const { previous } = commit;
  return db.transaction().execute(async (trx) => {
    const rebuilt = await run<{ version: number }>(trx, rebuild, [
      previous.tenantId,
      previous.id,
      storedVersion,
      ...columnsOf(previous),
    ]);
    if (rebuilt.length === 0) return false;
    const { text, values } = commitStatement([draftOf(commit)], "wait", undefined);
    const [answer] = await run<Written>(trx, text, values);
    if (answer?.written.length !== 1) throw new Error(`instance ${previous.id}: not rebuilt`);
    return true;
  });
}

const rebuild = prepared(
  "rebuild_instance",
  `update workflow_instances
  set version = $4, status = $5, priority = $6, variables = $7, snapshot = $8, output = $9,
    error = $10, cancellation = $11, compensation = $12, started_at = $13, completed_at = $14,
    created_at = $15
  where tenant_id = $1 and id = $2 and version = $3
  returning version`,
);

function columnsOf(snapshot: Snapshot): readonly unknown[] {
  const { version, status, priority, variables, startedAt, completedAt, createdAt } = snapshot;
  const { output, error, cancellation, compensation } = snapshot;
  const values = [output, error, cancellation, compensation];
  return [
    version,
    status,
    priority,
    jsonText(variables),
    jsonText(encodeFrontier(snapshot)),
    ...values.map((value) => (value === null ? null : jsonText(value))),
    startedAt,
    completedAt,
    createdAt,
  ];
}

/** Takes the instance's row where it still is at the version at which the damage was found. */
const atVersion = `with i as materialized (
    select tenant_id, id from workflow_instances
    where tenant_id = $1 and id = $2::uuid and version = $3
    for update)`;

/** Writes what commits never change of a step's row, and when it was begun and ended. */
export async function restoreStep(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  { step, createdAt }: { readonly step: ReplayedStep; readonly createdAt?: Date },
): Promise<void> {
  const values = [step.stepId, step.type, step.taskId, step.queue, step.priority, step.compensates];
  await run(db, stepColumns, [
    tenantId,
    instanceId,
    version,
    step.path,
    step.iteration,
    ...values,
    step.timeoutMs,
    step.heartbeatTimeoutMs,
    step.error && jsonText(step.error),
    step.awaited,
    createdAt ?? null,
    step.startedAt,
    step.completedAt,
    step.completion,
    step.entry,
    step.items && jsonText(step.items),
  ]);
}

const stepColumns = prepared(
  "restore_step",
  `${atVersion}
  update step_executions s
  set step_id = $6, type = $7, task_id = $8, queue = $9, priority = $10, compensates = $11,
    timeout_ms = $12, heartbeat_timeout_ms = $13, error = $14::json, awaited = $15,
    created_at = coalesce($16::timestamptz, s.created_at),
    started_at = case when $9::text is null then $17::timestamptz else s.started_at end,
    completed_at = $18, completion = $19, entry = $20, items = $21::json
  from i
  where s.tenant_id = i.tenant_id and s.instance_id = i.id and s.path = $4 and s.iteration = $5`,
);

/** Writes what follows from the signals of versions beside them again. */
export async function restoreHistory(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  made: readonly MadeCommit[],
): Promise<void> {
  await run(db, madeCommits, [tenantId, instanceId, version, ...commitSource.values(made)]);
}

const commitSource = rowSource<MadeCommit>({
  version: { type: "integer", of: ({ version }) => version },
  changes: { type: "json", of: ({ changes }) => jsonText(changes) },
  entries: { type: "json", of: ({ entries }) => jsonText(entries) },
});

const madeCommits = prepared(
  "restore_history",
  `${atVersion}
  update history h set changes = x.changes, entries = x.entries
  from i, ${commitSource.from("x", 4)}
  where h.tenant_id = i.tenant_id and h.instance_id = i.id and h.version = x.version`,
);

/** Writes who has asked for versions beside them again. */
export async function restoreActors(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  made: readonly Pick<CommitEvidence, "version" | "actor">[],
): Promise<void> {
  await run(db, actors, [tenantId, instanceId, version, ...actorSource.values(made)]);
}

const actorSource = rowSource<Pick<CommitEvidence, "version" | "actor">>({
  version: { type: "integer", of: ({ version }) => version },
  actor: { type: "text", of: ({ actor }) => actor },
});

const actors = prepared(
  "restore_actors",
  `${atVersion}
  update history h set actor = x.actor
  from i, ${actorSource.from("x", 4)}
  where h.tenant_id = i.tenant_id and h.instance_id = i.id and h.version = x.version`,
);

const lockedAtVersion = prepared("locked_at_version", `${atVersion} select id from i`);

/** Of the instance's row, and of its place in a queue. */
export async function restorePatched(
  db: Db,
  key: Key,
  version: number,
  {
    deadline,
    metadata,
  }: { readonly deadline?: Date | null | undefined; readonly metadata?: Json | undefined },
): Promise<void> {
  const { tenantId, instanceId } = key;
  await db.transaction().execute(async (trx) => {
    const found = await run(trx, lockedAtVersion, [tenantId, instanceId, version]);
    if (found.length === 0) return;
    await patchColumns(trx, key, {
      deadline,
      metadata: metadata === undefined ? undefined : () => metadata,
    });
  });
}

/** Of the instance's row. */
export async function restoreTimes(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  { statusAt, updatedAt }: { readonly statusAt: Date; readonly updatedAt: Date },
): Promise<void> {
  await run(db, times, [tenantId, instanceId, version, statusAt, updatedAt]);
}

const times = prepared(
  "restore_times",
  `update workflow_instances set status_at = $4, updated_at = $5
  where tenant_id = $1 and id = $2 and version = $3`,
);

export async function restoreChild(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  child: ChildEvidence,
): Promise<void> {
  const { childId, workflowId, workflowVersion, detached, startedAt } = child;
  const { path, iteration, attempt, requestedAt } = child;
  const row = [childId, workflowId, workflowVersion, detached, startedAt];
  const values = [...row, path, iteration, attempt, requestedAt];
  await run(db, childColumns, [tenantId, instanceId, version, ...values]);
}

const childColumns = prepared(
  "restore_child",
  `${atVersion}
  update children c
  set workflow_id = $5, workflow_version = $6, detached = $7, started_at = $8,
    path = $9, iteration = $10, attempt = $11, requested_at = $12
  from i
  where c.tenant_id = i.tenant_id and c.instance_id = i.id and c.child_id = $4`,
);

/** A row that no decision has made, and with it whatever somebody makes of it. */
export async function removeStep(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  { path, iteration }: { readonly path: string; readonly iteration: number },
): Promise<void> {
  await run(db, noStep, [tenantId, instanceId, version, path, iteration]);
}

const noStep = prepared(
  "remove_step",
  `${atVersion}
  delete from step_executions s using i
  where s.tenant_id = i.tenant_id and s.instance_id = i.id and s.path = $4 and s.iteration = $5`,
);

/** The same of a child, unless it knows the instance as its parent. */
export async function removeChild(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  childId: string,
): Promise<void> {
  await run(db, noChild, [tenantId, instanceId, version, childId]);
}

const noChild = prepared(
  "remove_child",
  `${atVersion}
  delete from children c using i
  where c.tenant_id = i.tenant_id and c.instance_id = i.id and c.child_id = $4
    and not exists (select from workflow_instances k where k.tenant_id = c.tenant_id
      and k.id = c.child_id and k.parent->>'instanceId' = c.instance_id::text)`,
);

/** Of a step that nobody holds. */
export async function restoreFence(
  db: Db,
  { tenantId, instanceId }: Key,
  version: number,
  { path, iteration, fence }: Pick<SeenStep, "path" | "iteration" | "fence">,
): Promise<void> {
  await run(db, noFence, [tenantId, instanceId, version, path, iteration, fence]);
}

const noFence = prepared(
  "restore_fence",
  `${atVersion}
  update step_executions s
  set fence = 0, look_at = case when not s.held then greatest(s.retry_at, statement_timestamp()) end
  from i
  where s.tenant_id = i.tenant_id and s.instance_id = i.id and s.path = $4 and s.iteration = $5
    and s.fence = $6 and s.status in ('PENDING', 'RETRYING')`,
);

/**
 * Starts the clock of a running attempt anew, by the limits that its step sets. Where the task sets
 * them, nothing stored says so: its worker keeps time, and writes the clock with the next progress.
 */
export async function restartClock(
  db: Db,
  { tenantId, instanceId, path, iteration, fence }: Omit<SeenStep, "workerId">,
): Promise<void> {
  await run(db, restart, [tenantId, instanceId, path, iteration, fence]);
}

const fromNow = (ms: string) => `statement_timestamp() + ${ms} * interval '1 ms'`;
const newEnd = `case when timeout_ms is null then timeout_at else ${fromNow("timeout_ms")} end`;
const newBeat = fromNow("heartbeat_timeout_ms");

const restart = prepared(
  "restart_clock",
  `update step_executions
  set started_at = coalesce(started_at, statement_timestamp()),
    timeout_at = ${newEnd},
    due_at = least(${newEnd}, ${newBeat}),
    due_clock = case
      when ${newBeat} < coalesce(${newEnd}, 'infinity') then 'heartbeat'
      when ${newEnd} is not null then 'timeout' end
  where tenant_id = $1 and instance_id = $2 and path = $3 and iteration = $4
    and fence = $5 and status = 'RUNNING'`,
);

/** Has steps looked for at once. @returns Those that a worker may take now, for a job each. */
export async function lookForSteps(
  db: Db,
  { tenantId, instanceId }: Key,
  places: readonly { readonly path: string; readonly iteration: number }[],
): Promise<readonly DueStep[]> {
  if (places.length === 0) return [];
  const values = [tenantId, instanceId, ...placeSource.values(places)];
  const rows = await run<DueRow & { readonly is_due: boolean }>(db, lookFor, values);
  return rows.filter(({ is_due }) => is_due).map(dueStepOf);
}

const placeSource = rowSource<{ readonly path: string; readonly iteration: number }>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

const lookFor = prepared(
  "look_for_steps",
  `update step_executions s
  set look_at = greatest(s.retry_at, statement_timestamp()), looks = 0
  from ${placeSource.from("x", 3)}
  where s.tenant_id = $1 and s.instance_id = $2 and s.path = x.path and s.iteration = x.iteration
    and s.status in ('PENDING', 'RETRYING') and s.queue is not null and not s.held
  returning ${dueColumns}, s.look_at <= statement_timestamp() as is_due`,
);

/** A step as it was seen, and whose it was then. */
export interface SeenStep extends Key {
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
  readonly workerId: string | null;
}

/**
 * Gives a RUNNING step to a worker that does not exist, where its own is silent still: whoever looks
 * for lapsed holders hands it on.
 */
export async function releaseLostStep(db: Db, step: SeenStep, silentMs: number): Promise<boolean> {
  const { tenantId, instanceId, path, iteration, fence, workerId } = step;
  const values = [tenantId, instanceId, path, iteration, fence, workerId, silentMs];
  return (await run(db, release, values)).length > 0;
}

const release = prepared(
  "release_lost_step",
  `update step_executions s set worker_id = '${nobody}'
  where s.tenant_id = $1 and s.instance_id = $2 and s.path = $3 and s.iteration = $4
    and s.fence = $5 and s.worker_id is not distinct from $6::uuid
    and s.status = 'RUNNING' and not s.awaited
    and not exists (select from workers w where w.id = s.worker_id
      and w.beat_at > clock_timestamp() - $7::bigint * interval '1 ms')
  returning true as ok`,
);

/**
 * Leaves word of a child's end for its parent, as the child's own commit should have.
 *
 * @returns False where the child has not settled, or word is there.
 */
export async function reportChildEnd(db: Db, tenantId: string, childId: string): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const end = await endOfChild(trx, tenantId, childId);
    if (end === undefined) return false;
    const { instanceId, path, iteration, attempt } = end.parent;
    const place = [path, iteration, attempt];
    const values = [tenantId, instanceId, childId, end.version, ...place, end.body];
    return (await run(trx, report, values)).length > 0;
  });
}

/** What a child has to tell its parent, by its own row; undefined where it has not settled, or has none. */
async function endOfChild(
  trx: Db,
  tenantId: string,
  childId: string,
): Promise<
  { readonly parent: ParentLink; readonly version: number; readonly body: string } | undefined
> {
  const [row] = await run<InstanceRow>(trx, child, [tenantId, childId]);
  const snapshot = row && snapshotOf(row);
  if (snapshot === undefined || !isSettled(snapshot)) return undefined;
  const { parent, status, version, error, cancellation } = snapshot;
  if (parent === null || !isTerminal(status)) return undefined;
  const steps = await run(trx, subWorkflow, [tenantId, childId, error?.stepId ?? ""]);
  const body: Omit<ChildEnd, "output"> = {
    status,
    error,
    reason: cancellation?.reason ?? null,
    ...(error !== null && steps.length === 0 && { isOwn: true }),
  };
  return { parent, version, body: jsonText(body) };
}

/**
 * Writes again what was told to an instance and cannot be read, from the rows of those who told it. What nobody
 * can say again is looked at less and less often.
 *
 * @returns What could not be written again: the end of a child that was refused, or is gone, say.
 */
export async function mendTold(
  db: Db,
  { tenantId, instanceId }: Key,
): Promise<readonly ReceivedSignal[]> {
  const rows = await run<ToldRow>(db, toldTo, [tenantId, instanceId]);
  const left: ReceivedSignal[] = [];
  for (const row of rows.filter((each) => toldBodyOf(each) === undefined)) {
    const body = await toldAgain(db, tenantId, instanceId, row);
    const { kind, child_id: childId, sent_version: sentVersion } = row;
    await run(db, tell, [tenantId, instanceId, kind, childId, sentVersion, body ?? null]);
    if (body === undefined) left.push(receivedOf(row));
  }
  return left;
}

async function toldAgain(
  db: Db,
  tenantId: string,
  instanceId: string,
  { kind, child_id: childId }: ToldRow,
): Promise<string | undefined> {
  if (kind === "CANCEL") {
    const [cancel] = await run<{ body: string }>(db, cancelOfParent, [tenantId, instanceId]);
    return cancel?.body;
  }
  const end = await db.transaction().execute((trx) => endOfChild(trx, tenantId, childId));
  return end?.parent.instanceId === instanceId ? end.body : undefined;
}

const toldTo = prepared(
  "told_to",
  `select kind, child_id, sent_version, body from child_signals
  where tenant_id = $1 and instance_id = $2
  order by sent_at
  limit 1000`,
);

const tell = prepared(
  "tell_again",
  `update child_signals
  set body = coalesce($6::json, body),
    look_at = case when $6::json is not null then look_at else statement_timestamp() +
      least(greatest(statement_timestamp() - sent_at, interval '10 s'), interval '10 min') end
  where tenant_id = $1 and instance_id = $2 and kind = $3 and child_id = $4 and sent_version = $5`,
);

/** A parent that was not cancelled itself stops a child as its definition has it. */
const cancelOfParent = prepared(
  "cancel_of_parent",
  `select json_build_object('parentId', p.id, 'reason', p.cancellation->>'reason',
    'shouldCompensate', coalesce((p.cancellation->>'shouldCompensate')::boolean,
      (select (d.document->>'compensateOnFailure')::boolean from workflow_definitions d
        where d.tenant_id in (p.tenant_id, '${sharedTenant}') and d.id = p.workflow_id
          and d.version = p.workflow_version
        order by d.tenant_id = p.tenant_id desc limit 1), true))::text as body
  from workflow_instances i
  join workflow_instances p on p.tenant_id = i.tenant_id
    and p.id = (i.parent->>'instanceId')::uuid
  where i.tenant_id = $1 and i.id = $2`,
);

const child = prepared(
  "settled_child",
  `select ${instanceColumns} from workflow_instances i
  where i.tenant_id = $1 and i.id = $2 for share`,
);

const subWorkflow = prepared(
  "sub_workflow_step",
  `select from step_executions s
  where s.tenant_id = $1 and s.instance_id = $2 and s.step_id = $3 and s.type = 'SUB_WORKFLOW'
  limit 1`,
);

const report = prepared(
  "report_child_end",
  `insert into child_signals (
    tenant_id, instance_id, kind, child_id, sent_version, path, iteration, attempt, body, sent_at,
    look_at)
  select $1, $2::uuid, 'END', $3::uuid, $4, $5, $6, $7, $8::json, statement_timestamp(),
    statement_timestamp()
  where not exists (select from child_signals k where k.tenant_id = $1
    and k.instance_id = $2::uuid and k.kind = 'END' and k.child_id = $3::uuid)
  on conflict do nothing
  returning true as ok`,
);

/**
 * Has events looked up again as the waits of the instance, and the start triggers of its workflow, are
 * keyed. All waits that are keyed so look for what they have missed: a scheduler or `lookBack` does it.
 */
export async function listenAgain(db: Db, { tenantId, instanceId }: Key): Promise<void> {
  await run(db, listen, [tenantId, instanceId]);
}

const listen = prepared(
  "listen_again",
  `with shaped as (
    insert into wait_shapes (tenant_id, pattern, event_paths)
    select distinct w.tenant_id, w.pattern, w.event_paths from waits w
    where w.tenant_id = $1 and w.instance_id = $2
    order by 1, 2, 3
    on conflict do nothing
    returning tenant_id, pattern, event_paths),
  started as (
    insert into start_shapes (tenant_id, pattern, event_paths)
    select distinct g.tenant_id, g.pattern, g.event_paths from start_triggers g
    join workflow_instances i on i.tenant_id = $1 and i.id = $2 and i.workflow_id = g.workflow_id
    where g.tenant_id in ($1, '${sharedTenant}')
    order by 1, 2, 3
    on conflict do nothing)
  update waits w
  set looked_back = false, lookback_from = least(w.lookback_from, w.opened_at)
  from shaped x
  where w.tenant_id = x.tenant_id and w.pattern = x.pattern and w.event_paths = x.event_paths
    and w.matched_event_id is null`,
);

/** Writes into a child's row what its parent knows of it. */
export async function adoptChild(
  db: Db,
  { tenantId, instanceId }: Key,
  childId: string,
): Promise<void> {
  await run(db, adopt, [tenantId, instanceId, childId]);
}

const adopt = prepared(
  "adopt_child",
  `update workflow_instances i
  set parent = json_build_object('instanceId', c.instance_id, 'path', c.path,
    'iteration', c.iteration, 'attempt', c.attempt, 'awaited', not c.detached,
    'depth', coalesce((p.parent->>'depth')::integer, 0) + 1)
  from children c
  join workflow_instances p on p.tenant_id = c.tenant_id and p.id = c.instance_id
  where c.tenant_id = $1 and c.instance_id = $2 and c.child_id = $3
    and i.tenant_id = c.tenant_id and i.id = c.child_id`,
);
