-- Events of `deliver: ONE` whose instance could not use them: its wait was closed meanwhile. A row is the
-- promise that the event is handed on; `taken_at` says which of its takings came to nothing, so that one
-- that comes later stays.
create table event_releases (
  tenant_id text collate "C" not null,
  instance_id uuid not null,
  event_id text collate "C" not null,
  taken_at timestamptz not null,
  released_at timestamptz not null,
  primary key (tenant_id, instance_id, event_id, taken_at)
);

create index event_releases_left on event_releases (released_at);

-- When `taken_by` took it: an instance that has had an event does not hear it again later on.
alter table events add column taken_at timestamptz;
