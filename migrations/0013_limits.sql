-- Places under a limit. A row is an instance that waits for a slot (WANTED), has been given one and has
-- not taken note of it (GRANTED), or runs with it (HELD): slots are rows, so that there is no counter to
-- go wrong. The commit that makes an instance able to run inserts its row, the one after which it cannot
-- run any more deletes it; only admission grants. Instances of workflows without a limit have none.
create table limit_slots (
  tenant_id text collate "C" not null,
  -- what is limited: `type:` and a workflow id
  limit_key text collate "C" not null,
  instance_id uuid not null,
  status text collate "C" not null,
  -- which request of the instance it answers
  request integer not null,
  -- it has run before, and goes before those that have not
  has_run boolean not null,
  priority integer not null,
  deadline timestamptz,
  wanted_at timestamptz not null,
  granted_at timestamptz,
  -- GRANTED: when to look whether the instance has taken note of it
  look_at timestamptz,
  primary key (tenant_id, limit_key, instance_id)
);

create index limit_slots_taken on limit_slots (tenant_id, limit_key) where status <> 'WANTED';
create index limit_slots_granted on limit_slots (look_at) where status = 'GRANTED';
-- Who waits, in the order of each kind of queue.
create index limit_slots_fifo on limit_slots (
  tenant_id, limit_key, has_run desc, wanted_at, instance_id) where status = 'WANTED';
create index limit_slots_priority on limit_slots (
  tenant_id, limit_key, has_run desc, priority desc, wanted_at, instance_id)
  where status = 'WANTED';
create index limit_slots_deadline on limit_slots (
  tenant_id, limit_key, has_run desc, deadline, priority desc, wanted_at, instance_id)
  where status = 'WANTED';
