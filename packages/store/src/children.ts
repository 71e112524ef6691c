import type {
  ChildRefusal,
  InstanceStatus,
  ParentLink,
  TerminalStatus,
  WorkflowError,
} from "@millrace/engine";
import type { Key, ReceivedSignal } from "./commit.ts";
import { jsonText, parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/**
 * Children that are to be started, and what parents and children have told each other. All of these
 * rows are short-lived but the links of children that have started.
 */

/** A child that its parent has asked for and that does not exist yet. */
export interface UnstartedChild {
  readonly tenantId: string;
  readonly childId: string;
  readonly workflowId: string;
  /** Null: not named by the step. */
  readonly workflowVersion: number | null;
  readonly input: Json;
  /** As the child's own row will have it. */
  readonly parent: ParentLink;
  /** What the child has from its parent. */
  readonly correlationId: string | null;
  readonly userId: string | null;
  readonly priority: number;
  readonly deadline: Date | null;
  readonly parentCreatedAt: Date;
  readonly requestedAt: Date;
  /** It is to be stopped before it has begun. */
  readonly cancel: ChildCancel | null;
}

export interface ChildCancel extends ReceivedSignal {
  readonly reason: string | null;
  readonly shouldCompensate: boolean;
}

/** An attempt at a step of the parent. */
export interface ChildPlace {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
}

/** Of one parent those that these attempts have asked for. */
export async function unstartedChildren(
  db: Db,
  parent: Key,
  places: readonly ChildPlace[],
): Promise<readonly UnstartedChild[]> {
  const values = [parent.tenantId, parent.instanceId, ...placeSource.values(places)];
  return (await run<UnstartedRow>(db, unstarted, values)).map(unstartedOf);
}

const placeSource = rowSource<ChildPlace>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
});

/** Those that nobody has seen to in time; each is asked for again after a while. */
export async function takeUnstarted(db: Db, limit: number): Promise<readonly UnstartedChild[]> {
  return (await run<UnstartedRow>(db, leftUnstarted, [limit])).map(unstartedOf);
}

interface UnstartedRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly child_id: string;
  readonly workflow_id: string;
  readonly workflow_version: number | null;
  readonly detached: boolean;
  readonly input: string | null;
  readonly parent: string | null;
  readonly correlation_id: string | null;
  readonly user_id: string | null;
  readonly priority: number;
  readonly deadline: Date | null;
  readonly created_at: Date;
  readonly requested_at: Date;
  readonly cancel: string | null;
  readonly cancel_version: number | null;
}

const unstartedColumns = `c.tenant_id, c.instance_id, c.path, c.iteration, c.attempt, c.child_id,
    c.workflow_id, c.workflow_version, c.detached, coalesce(s.input, i.input) as input, i.parent,
    i.correlation_id, i.user_id, i.priority, i.deadline, i.created_at, c.requested_at, k.body as cancel,
    k.sent_version as cancel_version`;

const aroundChild = `join workflow_instances i
    on i.tenant_id = c.tenant_id and i.id = c.instance_id
  join step_executions s on s.tenant_id = c.tenant_id and s.instance_id = c.instance_id
    and s.path = c.path and s.iteration = c.iteration
  left join child_signals k on k.tenant_id = c.tenant_id and k.instance_id = c.child_id
    and k.kind = 'CANCEL' and k.child_id = c.child_id`;

const unstarted = prepared(
  "unstarted_children",
  `select ${unstartedColumns} from ${placeSource.from("x", 3)}
  join children c on c.tenant_id = $1 and c.instance_id = $2 and c.path = x.path
    and c.iteration = x.iteration and c.attempt = x.attempt
  ${aroundChild}
  where c.started_at is null`,
);

/** Between two looks at what cannot be finished now. */
const lookAgain = "interval '10 s'";

const leftUnstarted = prepared(
  "left_unstarted_children",
  `with due as materialized (
    select c.tenant_id, c.instance_id, c.path, c.iteration, c.attempt from children c
    where c.started_at is null and c.look_at <= statement_timestamp()
    order by c.look_at
    limit $1
    for update skip locked),
  taken as (
    update children c set look_at = statement_timestamp() + ${lookAgain}
    from due x
    where c.tenant_id = x.tenant_id and c.instance_id = x.instance_id and c.path = x.path
      and c.iteration = x.iteration and c.attempt = x.attempt
    returning c.*)
  select ${unstartedColumns} from taken c
  ${aroundChild}`,
);

function unstartedOf(row: UnstartedRow): UnstartedChild {
  const above = (parseJson(row.parent) ?? null) as ParentLink | null;
  return {
    tenantId: row.tenant_id,
    childId: row.child_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    input: parseJson(row.input) ?? null,
    parent: {
      instanceId: row.instance_id,
      path: row.path,
      iteration: row.iteration,
      attempt: row.attempt,
      awaited: !row.detached,
      depth: (above?.depth ?? 0) + 1,
    },
    correlationId: row.correlation_id,
    userId: row.user_id,
    priority: row.priority,
    deadline: row.deadline,
    parentCreatedAt: row.created_at,
    requestedAt: row.requested_at,
    cancel: cancelOf(row),
  };
}

function cancelOf({
  cancel,
  cancel_version: sentVersion,
  child_id: childId,
}: UnstartedRow): ChildCancel | null {
  if (cancel === null || sentVersion === null) return null;
  const body = JSON.parse(cancel) as Pick<ChildCancel, "reason" | "shouldCompensate">;
  const { reason, shouldCompensate } = body;
  return { reason, shouldCompensate, kind: "CANCEL", childId, sentVersion };
}

/**
 * Settles that a child will never be, and leaves word of it for its parent. Nothing happens where
 * somebody else has started it meanwhile.
 */
export async function refuseChild(
  db: Db,
  { tenantId, childId, parent }: UnstartedChild,
  error: ChildRefusal,
): Promise<void> {
  const { instanceId, path, iteration, attempt, awaited } = parent;
  const body = jsonText({ refused: error });
  const values = [tenantId, instanceId, path, iteration, attempt, childId, body, awaited];
  await run(db, refuse, values);
}

const refuse = prepared(
  "refuse_child",
  `with refused as (
    update children set started_at = statement_timestamp()
    where tenant_id = $1 and instance_id = $2 and path = $3 and iteration = $4 and attempt = $5
      and child_id = $6 and started_at is null
    returning *)
  insert into child_signals (
    tenant_id, instance_id, kind, child_id, sent_version, path, iteration, attempt, body, sent_at,
    look_at)
  select tenant_id, instance_id, 'END', child_id, 0, path, iteration, attempt, $7::json,
    statement_timestamp(), statement_timestamp() + interval '2 s'
  from refused
  where $8::boolean`,
);

/** What a child or a parent has told an instance. */
export interface ChildSignal extends ReceivedSignal {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly body: ChildSignalBody;
  /** Of a child that completed. */
  readonly output: Json;
}

export type ChildSignalBody =
  | {
      readonly parentId: string;
      readonly reason: string | null;
      readonly shouldCompensate: boolean;
    }
  | {
      readonly status: TerminalStatus;
      readonly error: WorkflowError | null;
      readonly reason: string | null;
    }
  | { readonly refused: ChildRefusal };

/** In the order in which they were sent, at most so many. */
export async function loadChildSignals(
  db: Db,
  key: Key,
  limit: number,
): Promise<readonly ChildSignal[]> {
  const rows = await run<ChildSignalRow>(db, signalsFor, [key.tenantId, key.instanceId, limit]);
  return rows.map((row) => ({
    kind: row.kind === "CANCEL" ? "CANCEL" : "END",
    childId: row.child_id,
    sentVersion: row.sent_version,
    path: row.path,
    iteration: row.iteration,
    attempt: row.attempt,
    body: JSON.parse(row.body) as ChildSignalBody,
    output: parseJson(row.output) ?? null,
  }));
}

interface ChildSignalRow {
  readonly kind: string;
  readonly child_id: string;
  readonly sent_version: number;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly body: string;
  readonly output: string | null;
}

/** Nothing leaves COMPLETED: the output is still that of the end that is told of. */
const signalsFor = prepared(
  "child_signals_for",
  `select k.kind, k.child_id, k.sent_version, k.path, k.iteration, k.attempt, k.body,
    i.output
  from child_signals k
  left join workflow_instances i on k.kind = 'END' and i.tenant_id = k.tenant_id
    and i.id = k.child_id
  where k.tenant_id = $1 and k.instance_id = $2
  order by k.sent_at, k.kind, k.child_id
  limit $3`,
);

/** Who has been told something. */
export interface Receiver extends Key {
  readonly kind: ReceivedSignal["kind"];
  readonly childId: string;
  readonly sentAt: Date;
}

/** What nobody has seen to in time; each is asked for again after a while. */
export async function takeChildSignals(db: Db, limit: number): Promise<readonly Receiver[]> {
  const rows = await run<
    Pick<ChildSignalRow, "kind" | "child_id"> & {
      readonly tenant_id: string;
      readonly instance_id: string;
      readonly sent_at: Date;
    }
  >(db, leftSignals, [limit]);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    kind: row.kind === "CANCEL" ? "CANCEL" : "END",
    childId: row.child_id,
    sentAt: row.sent_at,
  }));
}

const leftSignals = prepared(
  "left_child_signals",
  `with due as materialized (
    select k.tenant_id, k.instance_id, k.kind, k.child_id, k.sent_version from child_signals k
    where k.look_at <= statement_timestamp()
    order by k.look_at
    limit $1
    for update skip locked)
  update child_signals k set look_at = statement_timestamp() + ${lookAgain}
  from due x
  where k.tenant_id = x.tenant_id and k.instance_id = x.instance_id and k.kind = x.kind
    and k.child_id = x.child_id and k.sent_version = x.sent_version
  returning k.tenant_id, k.instance_id, k.kind, k.child_id, k.sent_at`,
);

/** Takes away what was void when it came. */
export async function deleteChildSignals(
  db: Db,
  key: Key,
  signals: readonly ReceivedSignal[],
): Promise<void> {
  await run(db, remove, [key.tenantId, key.instanceId, ...receivedSource.values(signals)]);
}

const receivedSource = rowSource<ReceivedSignal>({
  kind: { type: "text", of: ({ kind }) => kind },
  child_id: { type: "uuid", of: ({ childId }) => childId },
  sent_version: { type: "integer", of: ({ sentVersion }) => sentVersion },
});

const remove = prepared(
  "delete_child_signals",
  `delete from child_signals k using ${receivedSource.from("x", 3)}
  where k.tenant_id = $1 and k.instance_id = $2 and k.kind = x.kind and k.child_id = x.child_id
    and k.sent_version = x.sent_version`,
);

/** A child of an instance, as people see it. */
export interface ChildLink extends Key {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly childId: string;
  readonly workflowId: string;
  readonly detached: boolean;
  readonly requestedAt: Date;
  /** Null: it does not exist yet, or could not be started. */
  readonly status: InstanceStatus | null;
}

/** A step execution. */
export interface StepPlace extends Key {
  readonly path: string;
  readonly iteration: number;
}

/** Of each of these executions the latest child, by `placeName`. */
export async function childrenOf(
  db: Db,
  places: readonly StepPlace[],
): Promise<ReadonlyMap<string, ChildLink>> {
  if (places.length === 0) return new Map();
  const rows = await run<ChildLinkRow>(db, links, stepSource.values(places));
  return new Map(rows.map(linkOf).map((link) => [placeName(link), link]));
}

export function placeName({ tenantId, instanceId, path, iteration }: StepPlace): string {
  return `${tenantId}/${instanceId}/${path}#${iteration}`;
}

function linkOf(row: ChildLinkRow): ChildLink {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    path: row.path,
    iteration: row.iteration,
    attempt: row.attempt,
    childId: row.child_id,
    workflowId: row.workflow_id,
    detached: row.detached,
    requestedAt: row.requested_at,
    status: row.status as InstanceStatus | null,
  };
}

interface ChildLinkRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly child_id: string;
  readonly workflow_id: string;
  readonly detached: boolean;
  readonly requested_at: Date;
  readonly status: string | null;
}

const stepSource = rowSource<StepPlace>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

const links = prepared(
  "children_of",
  `select c.*, i.status
  from ${stepSource.from("x", 1)}
  cross join lateral (
    select c.tenant_id, c.instance_id, c.path, c.iteration, c.attempt, c.child_id, c.workflow_id,
      c.detached, c.requested_at
    from children c
    where c.tenant_id = x.tenant_id and c.instance_id = x.instance_id and c.path = x.path
      and c.iteration = x.iteration
    order by c.attempt desc limit 1) c
  left join workflow_instances i on i.tenant_id = c.tenant_id and i.id = c.child_id`,
);
