-- What has come of the items of a MAP: count, completed, failed. Items that failed are found without
-- reading those that did not, however many there are.
alter table step_executions add column items json;

create index step_executions_failed_items on step_executions (tenant_id, instance_id, path)
  where status = 'FAILED' and strpos(path, '[') > 0;
