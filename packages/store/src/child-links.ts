import type { InstanceStatus } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** A child of an instance, as people see it. */
export interface ChildLink extends Key {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly childId: string;
  readonly workflowId: string;
  readonly detached: boolean;
  readonly requestedAt: Date;
  /** Null: nobody has started it yet. */
  readonly startedAt: Date | null;
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
    startedAt: row.started_at,
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
  readonly started_at: Date | null;
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
      c.detached, c.requested_at, c.started_at
    from children c
    where c.tenant_id = x.tenant_id and c.instance_id = x.instance_id and c.path = x.path
      and c.iteration = x.iteration
    order by c.attempt desc limit 1) c
  left join workflow_instances i on i.tenant_id = c.tenant_id and i.id = c.child_id`,
);
