-- Steps that killed their workers again and again, for an operator to retry or to discard. Written in
-- the commit that fails their instance, and resolved in the commit that retries, discards or cancels.
create table dead_letters (
  tenant_id text collate "C" not null,
  id uuid not null default gen_random_uuid(),
  instance_id uuid not null,
  workflow_id text collate "C" not null,
  workflow_version integer not null,
  path text collate "C" not null,
  iteration integer not null,
  step_id text collate "C" not null,
  task_id text collate "C",
  attempt integer not null,
  error json not null,
  -- each worker that died of it, oldest first
  deliveries jsonb not null,
  status text collate "C" not null,
  created_at timestamptz not null,
  resolved_at timestamptz,
  resolved_by text,
  reason text,
  primary key (tenant_id, id)
);

create index dead_letters_by_time on dead_letters (tenant_id, created_at, id);
create index dead_letters_open on dead_letters (tenant_id, instance_id) where status = 'OPEN';

-- Of the deliveries that ended with the silence of their worker: who that was, and what is known of it.
alter table step_executions add column lapse_log jsonb;
-- What a worker's beat says of it beside being alive; how it ended, where its supervisor has told.
alter table workers add column rss_bytes bigint, add column exit text;

-- Listing instances by the step that they are at. Its predicate does not follow from a status, so that
-- no plan takes it for the reconciler's questions, which have indexes of their own: it holds all that
-- waits.
drop index step_executions_live;
create index step_executions_live on step_executions (tenant_id, step_id, instance_id)
  where completed_at is null;
