-- What events start instances: a row a trigger of the latest version of each definition. The key is as
-- in `waits`: a hash of the values that the condition's equalities demand.
create table start_triggers (
  tenant_id text collate "C" not null,
  workflow_id text collate "C" not null,
  -- place among the definition's start triggers, from 0
  trigger integer not null,
  version integer not null,
  pattern text collate "C" not null,
  event_paths text collate "C" not null,
  key_hash bigint not null,
  primary key (tenant_id, workflow_id, trigger)
);

create index start_triggers_listening
  on start_triggers (tenant_id, pattern, event_paths, key_hash, workflow_id, trigger);

-- As `wait_shapes`: by which event paths the start triggers of a pattern are keyed.
create table start_shapes (
  tenant_id text collate "C" not null,
  pattern text collate "C" not null,
  event_paths text collate "C" not null,
  primary key (tenant_id, pattern, event_paths)
);

-- An event is looked at again when the instance that took it for itself cannot use it any more. What it
-- starts was settled the first time, whatever has been registered since.
alter table events add column starts_done boolean not null default false;
