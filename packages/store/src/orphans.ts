import type { StepAttempt } from "./holds.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** A job that waits, and the attempt that it is to carry. */
export interface JobOfStep extends StepAttempt {
  readonly jobId: string;
}

/**
 * Those of the jobs that carry nothing any more: their step is gone or settled, or has gone on to a
 * later attempt or fence. Neither ever goes back, and a row is committed before its job is added, so
 * that no job is taken for one that is only early.
 *
 * Plan: the primary key, once a job.
 */
export async function orphansAmong<Job extends JobOfStep>(
  db: Db,
  jobs: readonly Job[],
): Promise<readonly Job[]> {
  if (jobs.length === 0) return [];
  const numbered = jobs.map((job, ix) => ({ ix, job }));
  const rows = await run<{ ix: number }>(db, orphans, source.values(numbered));
  const found = new Set(rows.map(({ ix }) => ix));
  return jobs.filter((_job, ix) => found.has(ix));
}

const source = rowSource<{ readonly ix: number; readonly job: JobOfStep }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ job }) => job.tenantId },
  instance_id: { type: "uuid", of: ({ job }) => job.instanceId },
  path: { type: "text", of: ({ job }) => job.path },
  iteration: { type: "integer", of: ({ job }) => job.iteration },
  attempt: { type: "integer", of: ({ job }) => job.attempt },
  fence: { type: "integer", of: ({ job }) => job.fence },
  job_id: { type: "text", of: ({ job }) => job.jobId },
});

const orphans = prepared(
  "orphan_jobs",
  `select x.ix from ${source.from("x", 1)}
  left join step_executions s on s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
    and s.path = x.path and s.iteration = x.iteration
  where case
    when s.status in ('PENDING', 'RETRYING') then s.attempt <> x.attempt or s.fence <> x.fence
    when s.status = 'RUNNING' then s.carrier is distinct from x.job_id
    else true end`,
);
