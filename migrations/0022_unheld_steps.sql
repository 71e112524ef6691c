-- The reconciler: steps that run, by their row, and that no worker holds. Empty, but after damage.
create index step_executions_unheld on step_executions (started_at)
  where status = 'RUNNING' and worker_id is null and queue is not null;
