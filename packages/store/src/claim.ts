import type { Snapshot } from "@millrace/engine";
import { instanceColumns, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { jsonText, parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { isPaused } from "./paused-queues.ts";
import { overRows, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** What a job says, and what the worker that got it says of itself and of the task. */
export interface ClaimRequest {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
  readonly workerId: string;
  /** Id of the job. */
  readonly carrier: string;
  /** The task's own limits, for what the step leaves open. */
  readonly timeoutMs: number | null;
  readonly heartbeatTimeoutMs: number | null;
  readonly retry: Json | null;
}

/** A step execution, as the worker that now holds it runs it. */
export interface ClaimedStep {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly fence: number;
  /** Runs of this attempt so far, this one counted. */
  readonly deliveries: number;
  /** Undefined: the instance's input. */
  readonly input: Json | undefined;
  /** The step's own limits; null: the task's, or none. */
  readonly timeoutMs: number | null;
  readonly heartbeatTimeoutMs: number | null;
  /** Execution key of what a compensation step undoes. */
  readonly compensates: string | null;
  readonly carrier: string;
}

export interface Claimed {
  readonly step: ClaimedStep;
  readonly snapshot: Snapshot;
}

/**
 * Takes step executions for workers, and loads what running them needs: one round trip for all.
 *
 * A request is answered undefined where its job is stale or early: the row is at another attempt or
 * fence, is held or paused, as its queue may be, has ended, waits for its next attempt, or is being changed right now. Of two
 * requests for one row one is answered.
 *
 * A claim meets a cancel or a pause on the step row: whoever changes it first is seen by the other. Locks are
 * taken in the order of the key and never waited for, so that claims, commits and sweeps cannot block
 * each other in a circle.
 *
 * Plan: one descent of each primary key a request; nothing is scanned. Each row is locked in a lateral
 * query of its own, and its status told by a `case`: as a plain join, the partial index on PENDING rows
 * serves as well while statistics know few of them, and then every claim reads all that wait. Measured
 * with 1,200 waiting, 100 requests: 92 ms against 2 ms.
 */
export async function claimSteps(
  db: Db,
  requests: readonly ClaimRequest[],
): Promise<readonly (Claimed | undefined)[]> {
  const claimed: (Claimed | undefined)[] = requests.map(() => undefined);
  if (requests.length === 0) return claimed;
  const indexed = requests.map((request, ix) => ({ ix, request }));
  const rows = await run<ClaimRow>(db, ...claim(indexed));
  for (const row of rows) claimed[row.ix] = { step: stepOf(row), snapshot: snapshotOf(row) };
  return claimed;
}

interface ClaimRow extends InstanceRow {
  readonly ix: number;
  readonly step_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly task_id: string;
  readonly attempt: number;
  readonly fence: number;
  readonly deliveries: number;
  readonly input: string | null;
  readonly timeout_ms: number | null;
  readonly heartbeat_timeout_ms: number | null;
  readonly compensates: string | null;
  readonly carrier: string;
}

const source = rowSource<{ readonly ix: number; readonly request: ClaimRequest }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ request }) => request.tenantId },
  instance_id: { type: "uuid", of: ({ request }) => request.instanceId },
  path: { type: "text", of: ({ request }) => request.path },
  iteration: { type: "integer", of: ({ request }) => request.iteration },
  attempt: { type: "integer", of: ({ request }) => request.attempt },
  fence: { type: "integer", of: ({ request }) => request.fence },
  worker_id: { type: "uuid", of: ({ request }) => request.workerId },
  carrier: { type: "text", of: ({ request }) => request.carrier },
  timeout_ms: { type: "bigint", of: ({ request }) => request.timeoutMs },
  heartbeat_ms: { type: "bigint", of: ({ request }) => request.heartbeatTimeoutMs },
  retry: {
    type: "json",
    of: ({ request: { retry } }) => (retry === null ? null : jsonText(retry)),
  },
});

const timeout = "coalesce(s.timeout_ms, x.timeout_ms)";
const heartbeat = "coalesce(s.heartbeat_timeout_ms, x.heartbeat_ms)";

const claim = overRows(
  "claim",
  source,
  (from) => `with taken as materialized (
    select x.*
    from (
      select * from ${from("x")}
      order by tenant_id collate "C", instance_id, path collate "C", iteration) x
    cross join lateral (
      select 1 from step_executions s
      where s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
        and s.path = x.path and s.iteration = x.iteration
        and s.attempt = x.attempt and s.fence = x.fence and not s.held
        and not ${isPaused("s.queue")}
        and case s.status
          when 'PENDING' then true
          when 'RETRYING' then s.retry_at <= statement_timestamp() else false end
      for update skip locked) s),
  claimed as (
    update step_executions s
    set status = 'RUNNING',
      fence = s.fence + 1,
      deliveries = s.deliveries + 1,
      worker_id = x.worker_id,
      carrier = x.carrier,
      started_at = coalesce(s.started_at, statement_timestamp()),
      look_at = null,
      looks = 0,
      retry_at = null,
      blocked = null,
      timeout_at = statement_timestamp() + ${timeout} * interval '1 ms',
      due_at = statement_timestamp() + least(${timeout}, ${heartbeat}) * interval '1 ms',
      due_clock = case
        when ${heartbeat} < coalesce(${timeout}, ${heartbeat} + 1) then 'heartbeat'
        when ${timeout} is not null then 'timeout' end,
      task_retry = x.retry
    from taken x
    where s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
      and s.path = x.path and s.iteration = x.iteration
    returning x.ix, s.tenant_id, s.instance_id, s.step_id, s.path, s.iteration, s.task_id,
      s.attempt, s.fence, s.deliveries, s.input, s.timeout_ms, s.heartbeat_timeout_ms,
      s.compensates, s.carrier)
  select c.*, ${instanceColumns}
  from claimed c
  join workflow_instances i on i.tenant_id = c.tenant_id and i.id = c.instance_id`,
);

function stepOf(row: ClaimRow): ClaimedStep {
  return {
    stepId: row.step_id,
    path: row.path,
    iteration: row.iteration,
    taskId: row.task_id,
    attempt: row.attempt,
    fence: row.fence,
    deliveries: row.deliveries,
    input: parseJson(row.input),
    timeoutMs: row.timeout_ms,
    heartbeatTimeoutMs: row.heartbeat_timeout_ms,
    compensates: row.compensates,
    carrier: row.carrier,
  };
}
