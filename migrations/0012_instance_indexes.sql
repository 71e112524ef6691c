-- Whoever names instances by their key finds them by their key. While a table is nearly empty all ways to a
-- row look alike, and a prepared statement keeps the way that it took first: an index that begins with the
-- tenant would then do as well as the primary key, and be read from end to end for every commit from then
-- on. The conditions hold for every row, and say to the planner: only for those who ask by that column.
drop index workflow_instances_status;
create index workflow_instances_status on workflow_instances (tenant_id, status, status_at)
  where status is not null;
drop index workflow_instances_workflow;
create index workflow_instances_workflow on workflow_instances (tenant_id, workflow_id, id)
  where workflow_id is not null;
