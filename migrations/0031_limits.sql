-- Limits that are set while instances run, beside those of definitions, which they go before.
create table limits (
  tenant_id text collate "C" not null,
  -- what is limited: `global`, `tenant`, `type:` and a workflow id, `user:` and a user id
  limit_key text collate "C" not null,
  slots integer not null,
  queue text collate "C" not null,
  -- null: any number may wait
  max_queued integer,
  -- one more with every change
  version integer not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, limit_key)
);

-- One row, which goes up with every change of a limit: processes know by it whether what they have read holds.
create table limit_revisions (
  is_only boolean primary key default true check (is_only),
  revision bigint not null
);
insert into limit_revisions (revision) values (0);

-- Who is put at the head of the queues, the last one first; `-infinity`: nobody has put it there.
alter table limit_slots add column promoted_at timestamptz not null default '-infinity';

drop index limit_slots_fifo;
drop index limit_slots_priority;
drop index limit_slots_deadline;
create index limit_slots_fifo on limit_slots (
  tenant_id, limit_key, has_run desc, promoted_at desc, wanted_at, instance_id)
  where status = 'WANTED';
create index limit_slots_priority on limit_slots (
  tenant_id, limit_key, has_run desc, promoted_at desc, priority desc, wanted_at, instance_id)
  where status = 'WANTED';
create index limit_slots_deadline on limit_slots (
  tenant_id, limit_key, has_run desc, promoted_at desc, deadline, priority desc, wanted_at, instance_id)
  where status = 'WANTED';
