import type {
  ChildEvidence,
  CommitEvidence,
  Evidence,
  Identity,
  InstanceStatus,
  ParentLink,
  SlotEvidence,
  Snapshot,
  StepEvidence,
  StepStatus,
  TellingEvidence,
  TimerEvidence,
  TimerKind,
  WaitEvidence,
  WorkflowError,
} from "@millrace/engine";
import type { Key } from "./commit.ts";
import { givenHash } from "./given.ts";
import { instanceColumns, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { keyHashOf, parseJson } from "./json.ts";
import { ownSet } from "./limit-key.ts";
import { prepared, run, type Db } from "./statement.ts";
import { isForeignTime, reckonable } from "./stored-time.ts";
import { sharedTenant } from "./tenants.ts";
import { receivedOf, toldBodyOf } from "./told-body.ts";
import type { ToldRow } from "./told-body.ts";

/** All that is stored of one instance, for the consistency checker. */

/** What one look takes in at most: beyond it a part of the evidence is left out. */
export interface EvidenceLimits {
  readonly commits: number;
  /** Of all outputs together, and of all that the history keeps. */
  readonly bytes: number;
}

/** Undefined history or steps: there is more of it than a look takes in. */
export interface StoredEvidence extends Omit<Evidence, "definition" | "definitionIs"> {
  readonly isWhole: boolean;
}

/**
 * Reads it as of one moment: REPEATABLE READ, so that rows which one commit has written are seen
 * together, however many commits come in between.
 */
export async function readEvidence(
  db: Db,
  key: Key,
  limits: EvidenceLimits,
): Promise<StoredEvidence | undefined> {
  return db
    .transaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute((trx) => readAll(trx, key, limits));
}

async function readAll(
  db: Db,
  key: Key,
  limits: EvidenceLimits,
): Promise<StoredEvidence | undefined> {
  const values = [key.tenantId, key.instanceId];
  const [row] = await run<InstanceFacts>(db, instance, values);
  if (row === undefined) return undefined;
  const [size] = await run<Size>(db, sizes, values);
  const isWhole =
    size !== undefined && size.commits <= limits.commits && size.bytes <= limits.bytes;
  const steps = (await run<StepRow>(db, isWhole ? stepsWithOutputs : stepsAlone, values)).map(
    stepOf,
  );
  const history = isWhole ? (await run<CommitRow>(db, commits, values)).map(commitOf) : undefined;
  const waits = (await run<WaitRow>(db, waitsOf, values)).map(waitOf);
  const timers = (await run<TimerRow>(db, timersOf, values)).map(timerOf);
  const children = (await run<ChildRow>(db, childrenOf, values)).map(childOf);
  const told = (await run<ToldAtRow>(db, toldTo, values)).map(tellingOf);
  const events = await run<{ id: string; received_at: Date }>(db, unmatched, [
    key.tenantId,
    `${key.instanceId}:`,
    `${key.instanceId};`,
  ]);
  return {
    now: row.now,
    isWhole,
    identity: identityOf(row),
    isAsGiven: row.is_as_given,
    bornAt: bornAtOf(row),
    version: row.i_version,
    statusAt: row.status_at,
    updatedAt: row.updated_at,
    deadline: row.is_deadline_foreign ? undefined : row.deadline,
    metadata: parseJson(row.metadata) ?? null,
    snapshot: readableSnapshot(row),
    steps,
    waits,
    timers,
    history,
    children,
    told,
    parent: row.i_parent === null ? null : { exists: row.has_parent, isLinked: row.is_linked },
    unmatchedEvents: events.map(({ id, received_at }) => ({ id, receivedAt: received_at })),
    hasStartShapes: row.has_start_shapes,
    deliveries: row.deliveries,
    openDeadLetters: row.dead_letters,
    slot: slotOf(row),
    foreignLimits: row.foreign_limits ?? [],
    hashOf: keyHashOf,
  };
}

interface InstanceFacts extends InstanceRow {
  readonly now: Date;
  readonly has_parent: boolean;
  readonly is_linked: boolean;
  readonly has_start_shapes: boolean;
  readonly deliveries: number;
  readonly dead_letters: number;
  readonly status_at: Date;
  readonly updated_at: Date;
  readonly deadline: Date | null;
  readonly is_deadline_foreign: boolean;
  readonly metadata: string | null;
  readonly slot_status: SlotEvidence["status"] | null;
  readonly slot_request: number | null;
  readonly slot_priority: number | null;
  readonly slot_deadline: Date | null;
  readonly slot_wanted_at: Date | null;
  readonly slot_promoted_at: Date | null;
  readonly slot_has_run: boolean | null;
  readonly slot_look_at: Date | null;
  readonly foreign_limits: readonly string[] | null;
  readonly is_as_given: boolean;
}

function slotOf(row: InstanceFacts): SlotEvidence | null {
  const { slot_status: status, slot_request: request, slot_priority: priority } = row;
  const { slot_deadline: deadline, slot_wanted_at: wantedAt } = row;
  if (status === null || request === null || priority === null || wantedAt === null) return null;
  const { slot_has_run: hasRun, slot_look_at: lookAt, slot_promoted_at: promotedAt } = row;
  return {
    status,
    request,
    priority,
    deadline,
    wantedAt,
    promotedAt,
    hasRun: hasRun === true,
    lookAt,
  };
}

/** Plan: one descent of the primary key for each set of limits in the tenant, however many wait there. */
const foreignLimits = `with recursive limits as (
      (select l.limit_key from limit_slots l where l.tenant_id = i.tenant_id
        order by l.limit_key limit 1)
      union all
      select (select min(l.limit_key) from limit_slots l
        where l.tenant_id = i.tenant_id and l.limit_key > k.limit_key)
      from limits k where k.limit_key is not null)
    select array_agg(l.limit_key order by l.limit_key) from limits k
    join limit_slots l on l.tenant_id = i.tenant_id and l.limit_key = k.limit_key
      and l.instance_id = i.id
    where k.limit_key <> ${ownSet("i")}`;

/** Deliveries that have just been written may belong to a match under way. */
const instance = prepared(
  "evidence_instance",
  `select ${instanceColumns}, clock_timestamp() as now,
    exists (select from workflow_instances p where p.tenant_id = i.tenant_id
      and p.id = (i.parent->>'instanceId')::uuid) as has_parent,
    exists (select from children c where c.tenant_id = i.tenant_id
      and c.instance_id = (i.parent->>'instanceId')::uuid and c.path = i.parent->>'path'
      and c.iteration = (i.parent->>'iteration')::integer
      and c.attempt = (i.parent->>'attempt')::integer and c.child_id = i.id) as is_linked,
    not exists (select from start_triggers g
      where g.tenant_id in (i.tenant_id, '${sharedTenant}') and g.workflow_id = i.workflow_id
        and not exists (select from start_shapes h where h.tenant_id = g.tenant_id
          and h.pattern = g.pattern and h.event_paths = g.event_paths)) as has_start_shapes,
    (select count(*) from event_deliveries e where e.tenant_id = i.tenant_id
      and e.instance_id = i.id
      and e.delivered_at < clock_timestamp() - interval '1 min')::integer as deliveries,
    (select count(*) from dead_letters l where l.tenant_id = i.tenant_id and l.instance_id = i.id
      and l.status = 'OPEN')::integer as dead_letters,
    i.status_at, i.updated_at, i.deadline, ${isForeignTime("i.deadline")} as is_deadline_foreign,
    i.metadata, t.status as slot_status, t.request as slot_request,
    t.priority as slot_priority, t.deadline as slot_deadline, t.wanted_at as slot_wanted_at,
    nullif(t.promoted_at, '-infinity') as slot_promoted_at,
    t.has_run as slot_has_run, t.look_at as slot_look_at,
    (${foreignLimits}) as foreign_limits,
    coalesce(i.given = ${givenHash("i", "i.parent is not null")}, true) as is_as_given
  from workflow_instances i
  left join limit_slots t on t.tenant_id = i.tenant_id
    and t.limit_key = ${ownSet("i")} and t.instance_id = i.id
  where i.tenant_id = $1 and i.id = $2`,
);

interface Size {
  readonly commits: number;
  readonly bytes: number;
}

const sizes = prepared(
  "evidence_sizes",
  `select h.commits, h.bytes + s.bytes as bytes from
    (select count(*)::integer as commits, coalesce(sum(
        octet_length(signals::text) + octet_length(changes::text)
          + octet_length(entries::text)), 0)::bigint as bytes
      from history where tenant_id = $1 and instance_id = $2) h,
    (select coalesce(sum(coalesce(octet_length(output::text), 0)
        + coalesce(octet_length(input::text), 0)), 0)::bigint as bytes
      from step_executions where tenant_id = $1 and instance_id = $2) s`,
);

function identityOf(row: InstanceRow): Identity {
  return {
    id: row.i_id,
    tenantId: row.i_tenant_id,
    workflowId: row.i_workflow_id,
    workflowVersion: row.i_workflow_version,
    correlationId: row.i_correlation_id,
    userId: row.i_user_id,
    startEventId: row.i_start_event_id,
    createdAt: row.i_created_at,
    input: parseJson(row.i_input) ?? null,
    parent: (parseJson(row.i_parent) ?? null) as ParentLink | null,
  };
}

/** An id of version 7 begins with the milliseconds of the instance's creation (CONTRACT 3). */
function bornAtOf({ i_id: id, i_created_at: createdAt }: InstanceRow): Date {
  const digits = /^([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(id);
  return digits === null ? createdAt : new Date(Number.parseInt(`${digits[1]}${digits[2]}`, 16));
}

/** Undefined where the stored frontier has not the form of one. */
function readableSnapshot(row: InstanceRow): Snapshot | undefined {
  const frontier = parseJson(row.i_snapshot);
  if (typeof frontier !== "object" || frontier === null || !("format" in frontier))
    return undefined;
  try {
    return snapshotOf(row);
  } catch {
    return undefined;
  }
}

interface StepRow {
  readonly step_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: string;
  readonly attempt: number;
  readonly fence: number;
  readonly task_id: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly compensates: string | null;
  readonly input: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly completion: number | null;
  readonly entry: number | null;
  readonly timeout_ms: number | null;
  readonly heartbeat_timeout_ms: number | null;
  readonly items: string | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly completed_at: Date | null;
  readonly awaited: boolean;
  readonly held: boolean;
  readonly blocked: string | null;
  readonly look_at: Date | null;
  readonly retry_at: Date | null;
  readonly due_at: Date | null;
  readonly due_clock: string | null;
  readonly timeout_at: Date | null;
  readonly worker_id: string | null;
  readonly silent_ms: number | null;
}

const stepColumns = `s.step_id, s.path, s.iteration, s.type, s.status, s.attempt, s.fence, s.task_id,
    s.queue, s.priority, s.compensates, s.error, s.completion, s.entry, s.timeout_ms,
    s.heartbeat_timeout_ms, s.items, s.created_at, s.started_at, s.completed_at,
    s.awaited, s.held, s.blocked, s.look_at, s.retry_at, s.due_at, s.due_clock, s.timeout_at,
    s.worker_id,
    (extract(epoch from clock_timestamp() - ${reckonable("w.beat_at")}) * 1000)::bigint as silent_ms`;

const fromSteps = `from step_executions s left join workers w
    on w.id = s.worker_id and s.status = 'RUNNING'
  where s.tenant_id = $1 and s.instance_id = $2
  order by s.created_at, s.path, s.iteration`;

const stepsWithOutputs = prepared(
  "evidence_steps",
  `select ${stepColumns}, s.input, s.output ${fromSteps}`,
);

const stepsAlone = prepared(
  "evidence_steps_alone",
  `select ${stepColumns}, null::json as input, null::json as output ${fromSteps}`,
);

function stepOf(row: StepRow): StepEvidence {
  return {
    stepId: row.step_id,
    path: row.path,
    iteration: row.iteration,
    type: row.type,
    status: row.status as StepStatus,
    attempt: row.attempt,
    fence: row.fence,
    taskId: row.task_id,
    queue: row.queue,
    priority: row.priority,
    compensates: row.compensates,
    input: parseJson(row.input),
    output: parseJson(row.output),
    error: (parseJson(row.error) ?? null) as WorkflowError | null,
    completion: row.completion,
    entry: row.entry,
    timeoutMs: row.timeout_ms,
    heartbeatTimeoutMs: row.heartbeat_timeout_ms,
    items: parseJson(row.items) as StepEvidence["items"],
    createdAt: row.created_at,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    awaited: row.awaited,
    held: row.held,
    blocked: row.blocked,
    lookAt: row.look_at,
    retryAt: row.retry_at,
    dueAt: row.due_at,
    dueClock: row.due_clock,
    timeoutAt: row.timeout_at,
    workerId: row.worker_id,
    silentMs: row.silent_ms,
  };
}

interface CommitRow {
  readonly version: number;
  readonly at: Date;
  readonly engine_rev: number;
  readonly actor: string;
  readonly signals: string;
  readonly changes: string;
  readonly entries: string;
}

const commits = prepared(
  "evidence_history",
  `select version, at, engine_rev, actor, signals, changes, entries from history
  where tenant_id = $1 and instance_id = $2
  order by version`,
);

function commitOf({
  version,
  at,
  engine_rev,
  actor,
  signals,
  changes,
  entries,
}: CommitRow): CommitEvidence {
  return {
    version,
    at,
    engineRev: engine_rev,
    actor,
    signals: JSON.parse(signals) as CommitEvidence["signals"],
    changes: JSON.parse(changes) as CommitEvidence["changes"],
    entries: JSON.parse(entries) as CommitEvidence["entries"],
  };
}

interface WaitRow {
  readonly path: string;
  readonly iteration: number;
  readonly step_id: string | null;
  readonly purpose: string;
  readonly pattern: string;
  readonly event_paths: string;
  readonly key_hash: string | null;
  readonly deliver: string;
  readonly opened_at: Date;
  readonly lookback_from: Date | null;
  readonly has_shape: boolean;
  readonly looked_back: boolean;
  readonly held: boolean;
  readonly matched_event_id: string | null;
  readonly matched_at: Date | null;
  readonly has_event: boolean;
}

const waitsOf = prepared(
  "evidence_waits",
  `select w.path, w.iteration, w.step_id, w.purpose, w.pattern, w.event_paths,
    w.key_hash::text as key_hash, w.deliver, w.opened_at, w.lookback_from, w.looked_back, w.held,
    w.matched_event_id, w.matched_at, exists (select from wait_shapes h
      where h.tenant_id = w.tenant_id and h.pattern = w.pattern
        and h.event_paths = w.event_paths) as has_shape, exists (select from events e
      where e.tenant_id = w.tenant_id and e.id = w.matched_event_id) as has_event
  from waits w
  where w.tenant_id = $1 and w.instance_id = $2
  order by w.path, w.iteration`,
);

function waitOf(row: WaitRow): WaitEvidence {
  return {
    path: row.path,
    iteration: row.iteration,
    stepId: row.step_id,
    purpose: row.purpose,
    pattern: row.pattern,
    eventPaths: row.event_paths,
    keyHash: row.key_hash,
    deliver: row.deliver,
    openedAt: row.opened_at,
    lookbackFrom: row.lookback_from,
    hasShape: row.has_shape,
    isLookedBack: row.looked_back,
    held: row.held,
    matchedEventId: row.matched_event_id,
    matchedAt: row.matched_at,
    hasEvent: row.has_event,
  };
}

interface TimerRow {
  readonly path: string;
  readonly iteration: number;
  readonly kind: string;
  readonly attempt: number;
  readonly due_at: Date;
  readonly look_at: Date | null;
  readonly held: boolean;
}

const timersOf = prepared(
  "evidence_timers",
  `select path, iteration, kind, attempt, due_at, nullif(look_at, 'infinity') as look_at,
    look_at = 'infinity' as held from timers
  where tenant_id = $1 and instance_id = $2
  order by path, iteration, kind`,
);

function timerOf({ due_at, look_at, kind, ...row }: TimerRow): TimerEvidence {
  return { ...row, kind: kind as TimerKind, dueAt: due_at, lookAt: look_at };
}

interface ChildRow {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly child_id: string;
  readonly workflow_id: string;
  readonly workflow_version: number | null;
  readonly detached: boolean;
  readonly requested_at: Date;
  readonly started_at: Date | null;
  readonly status: string | null;
  readonly created_at: Date | null;
  readonly compensating: boolean;
  readonly reported: boolean;
  readonly linked: boolean;
}

const childrenOf = prepared(
  "evidence_children",
  `select c.path, c.iteration, c.attempt, c.child_id, c.workflow_id, c.workflow_version, c.detached,
    c.requested_at, c.started_at, i.status, i.created_at, coalesce(i.compensation->>'status' = 'IN_PROGRESS', false) as compensating,
    exists (select from child_signals k where k.tenant_id = c.tenant_id
      and k.instance_id = c.instance_id and k.kind = 'END' and k.child_id = c.child_id) as reported,
    coalesce(i.parent->>'instanceId' = c.instance_id::text and i.parent->>'path' = c.path
      and (i.parent->>'iteration')::integer = c.iteration
      and (i.parent->>'attempt')::integer = c.attempt, false) as linked
  from children c
  left join workflow_instances i on i.tenant_id = c.tenant_id and i.id = c.child_id
  where c.tenant_id = $1 and c.instance_id = $2
  order by c.path, c.iteration, c.attempt`,
);

const terminal: readonly string[] = ["COMPLETED", "FAILED", "CANCELLED"];

function childOf(row: ChildRow): ChildEvidence {
  const { status } = row;
  return {
    path: row.path,
    iteration: row.iteration,
    attempt: row.attempt,
    childId: row.child_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    detached: row.detached,
    requestedAt: row.requested_at,
    startedAt: row.started_at,
    status: status as InstanceStatus | null,
    createdAt: row.created_at,
    isSettled: status !== null && terminal.includes(status) && !row.compensating,
    isReported: row.reported,
    isLinked: row.linked,
  };
}

interface ToldAtRow extends ToldRow {
  readonly sent_at: Date;
}

const toldTo = prepared(
  "evidence_told",
  `select kind, child_id, sent_version, sent_at, body from child_signals
  where tenant_id = $1 and instance_id = $2
  order by sent_at
  limit 1000`,
);

function tellingOf(row: ToldAtRow): TellingEvidence {
  return { ...receivedOf(row), sentAt: row.sent_at, isReadable: toldBodyOf(row) !== undefined };
}

/** The ids of events that an instance emits begin with its own; `;` comes after `:`. */
const unmatched = prepared(
  "evidence_events",
  `select id, received_at from events
  where tenant_id = $1 and id > $2 and id < $3 and matched_at is null
  order by id
  limit 100`,
);
