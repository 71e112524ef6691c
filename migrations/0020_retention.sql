-- What has ended goes after its time (MILLRACE_RETENTION): each of these is read from its oldest end, so that
-- a look that finds nothing reads one page.
create index workflow_instances_settled on workflow_instances (completed_at)
  where completed_at is not null;
create index events_matched on events (received_at) where matched_at is not null;
create index idempotency_keys_by_time on idempotency_keys (created_at);

-- Of an instance that goes, those that are resolved as well.
create index dead_letters_of_instance on dead_letters (tenant_id, instance_id);

-- Which events somebody may still look back for: those of a name by the name, those of a pattern with
-- wildcards by time. Waits without a lookback have no entry.
create index waits_looking_back on waits (tenant_id, pattern, lookback_from)
  where lookback_from is not null;
create index waits_looking_back_widely on waits (tenant_id, lookback_from)
  where lookback_from is not null and strpos(pattern, '*') > 0;

-- The latest tick that has run and is not remembered by a row any more: up to here no backfill runs any.
alter table schedules add column forgotten_to timestamptz;

-- A twentieth of a table is dead rows at most, rather than a fifth: with hundreds of instances that come and
-- go each second vacuum is to pass often and have little to do.
alter table workflow_instances set (autovacuum_vacuum_scale_factor = 0.05);
alter table step_executions set (autovacuum_vacuum_scale_factor = 0.05);
alter table history set (autovacuum_vacuum_scale_factor = 0.05);
alter table events set (autovacuum_vacuum_scale_factor = 0.05);
