import type { ChildRefusal, ParentLink } from "@millrace/engine";
import type { Key, ReceivedSignal } from "./commit.ts";
import { jsonText, parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";
import { toldBodyOf } from "./told-body.ts";
import { rowSource } from "./unnest.ts";

/** Children that their parents have asked for and that do not exist yet. */

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

/** Between two looks at what cannot be finished now: a sixtieth of its age, 10 s at least, 60 s at most. */
export function lookAgain(since: string): string {
  return `least(greatest((statement_timestamp() - ${since}) / 60, interval '10 s'), interval '60 s')`;
}

const leftUnstarted = prepared(
  "left_unstarted_children",
  `with due as materialized (
    select c.tenant_id, c.instance_id, c.path, c.iteration, c.attempt from children c
    where c.started_at is null and c.look_at <= statement_timestamp()
    order by c.look_at
    limit $1
    for update skip locked),
  taken as (
    update children c set look_at = statement_timestamp() + ${lookAgain("c.requested_at")}
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
  const signal = { kind: "CANCEL", childId, sentVersion } as const;
  const body = toldBodyOf({ kind: "CANCEL", body: cancel });
  // Of a cancel that cannot be read so much is certain: there is nothing yet that it could undo.
  if (body === undefined || !("parentId" in body)) {
    return { ...signal, reason: null, shouldCompensate: true };
  }
  const { reason, shouldCompensate } = body;
  return { ...signal, reason, shouldCompensate };
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
