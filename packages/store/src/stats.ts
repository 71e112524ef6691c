import type { InstanceStatus } from "@millrace/engine";
import { prepared, run, type Db } from "./statement.ts";

/** Figures over the instances of a tenant. */

/** Of one workflow and status. */
export interface StatusFigures {
  readonly workflowId: string;
  readonly status: InstanceStatus;
  readonly count: number;
  /** Of those that have settled: milliseconds from their start, summed and at the extremes. */
  readonly timed: number;
  readonly sumMs: number;
  readonly minMs: number | null;
  readonly maxMs: number | null;
  readonly retries: number;
}

export interface StatsWindow {
  readonly tenantId: string;
  readonly workflowId?: string | undefined;
  /** Instances that are looked at, the latest first. */
  readonly limit: number;
}

/**
 * By workflow and status, over the latest instances of a tenant.
 *
 * Plan: the first `limit` entries of the primary key, or of the index by workflow, backwards; their
 * step rows with a second attempt by one descent an instance. So the cost has a bound, however many
 * instances there are.
 */
export async function instanceFigures(
  db: Db,
  { tenantId, workflowId, limit }: StatsWindow,
): Promise<readonly StatusFigures[]> {
  const rows =
    workflowId === undefined
      ? await run<FigureRow>(db, figuresOfAll, [tenantId, limit])
      : await run<FigureRow>(db, figuresOfWorkflow, [tenantId, limit, workflowId]);
  return rows.map((row) => ({
    workflowId: row.workflow_id,
    status: row.status as InstanceStatus,
    count: row.n,
    timed: row.timed,
    sumMs: row.sum_ms,
    minMs: row.min_ms,
    maxMs: row.max_ms,
    retries: row.retries,
  }));
}

interface FigureRow {
  readonly workflow_id: string;
  readonly status: string;
  readonly n: number;
  readonly timed: number;
  readonly sum_ms: number;
  readonly min_ms: number | null;
  readonly max_ms: number | null;
  readonly retries: number;
}

/** A statement for each: one plan for both could use the index of neither. */
const figures = (condition: string) =>
  `with latest as materialized (
    select i.id, i.workflow_id, i.status,
      case when isfinite(i.completed_at) and isfinite(i.started_at)
        then extract(epoch from i.completed_at - i.started_at)::float8 * 1000 end as ms
    from workflow_instances i
    where i.tenant_id = $1 ${condition}
    order by i.id desc
    limit $2)
  select l.workflow_id, l.status, count(*)::integer as n, count(l.ms)::integer as timed,
    coalesce(sum(l.ms), 0)::float8 as sum_ms, min(l.ms) as min_ms, max(l.ms) as max_ms,
    coalesce(sum(s.retries), 0)::integer as retries
  from latest l
  cross join lateral (
    select sum(s.attempt - 1) as retries from step_executions s
    where s.tenant_id = $1 and s.instance_id = l.id and s.attempt > 1
    offset 0) s
  group by l.workflow_id, l.status
  order by l.workflow_id, l.status`;

const figuresOfAll = prepared("instance_figures", figures(""));
const figuresOfWorkflow = prepared("workflow_figures", figures("and i.workflow_id = $3"));

/** Steps of one queue that are with workers, or wait for one. */
export interface QueueFigures {
  readonly queue: string;
  readonly pending: number;
  readonly retrying: number;
  readonly running: number;
  readonly oldestPendingAt: Date | null;
}

/** @param limit Rows of each kind that are looked at; the partial indexes hold nothing else. */
export async function queueFigures(
  db: Db,
  tenantId: string,
  limit: number,
): Promise<readonly QueueFigures[]> {
  const rows = await run<QueueRow>(db, queues, [tenantId, limit]);
  return rows.map(({ queue, pending, retrying, running, oldest }) => ({
    queue,
    pending,
    retrying,
    running,
    oldestPendingAt: oldest,
  }));
}

interface QueueRow {
  readonly queue: string;
  readonly pending: number;
  readonly retrying: number;
  readonly running: number;
  readonly oldest: Date | null;
}

const queues = prepared(
  "queue_figures",
  `with live as (
    (select s.queue, s.status, s.created_at from step_executions s
      where s.tenant_id = $1 and s.completed_at is null
        and s.status in ('PENDING', 'RETRYING') limit $2)
    union all
    (select s.queue, s.status, s.created_at from step_executions s
      where s.tenant_id = $1 and s.status = 'RUNNING' and s.worker_id is not null limit $2))
  select queue,
    count(*) filter (where status = 'PENDING')::integer as pending,
    count(*) filter (where status = 'RETRYING')::integer as retrying,
    count(*) filter (where status = 'RUNNING')::integer as running,
    min(created_at) filter (where status = 'PENDING') as oldest
  from live where queue is not null
  group by queue
  order by queue`,
);

/** How many steps of a tenant wait for a worker that knows their task, by task. */
export async function blockedTasks(db: Db, tenantId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await run<{ task: string; n: number }>(db, blocked, [tenantId]);
  return new Map(rows.map(({ task, n }) => [task, n]));
}

const blocked = prepared(
  "blocked_tasks",
  `select substr(b.blocked, 6) as task, count(*)::integer as n
  from (
    select s.blocked from step_executions s
    where s.blocked is not null and s.tenant_id = $1 and s.status in ('PENDING', 'RETRYING')
    limit 100000) b
  where b.blocked like 'task:%'
  group by b.blocked
  order by b.blocked`,
);

/** Steps that workers hold, of all tenants, by worker. */
export async function heldCounts(db: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await run<{ worker_id: string; n: number }>(db, held, []);
  return new Map(rows.map(({ worker_id, n }) => [worker_id, n]));
}

const held = prepared(
  "held_counts",
  `select worker_id, count(*)::integer as n from step_executions
  where status = 'RUNNING' and worker_id is not null
  group by worker_id`,
);
