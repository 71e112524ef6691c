-- Rules by which instances are started, again and again or once.
create table schedules (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  -- of this schedule alone: one that is made anew under the same id has another
  uid uuid not null default gen_random_uuid(),
  -- one more with each change that somebody makes; ticks do not count
  version integer not null,
  document json not null,
  target_type text collate "C" not null,
  target_id text collate "C" not null,
  status text collate "C" not null,
  -- the next tick that nobody has seen to; null: there is none
  next_tick_at timestamptz,
  -- when that tick is due, which jitter puts off; null: nobody is to look
  due_at timestamptz,
  last_tick_at timestamptz,
  started bigint not null default 0,
  skipped bigint not null default 0,
  missed bigint not null default 0,
  failed bigint not null default 0,
  -- why the last try did not go well
  trouble text,
  pause json,
  created_at timestamptz not null,
  created_by text not null,
  updated_at timestamptz not null,
  updated_by text not null,
  primary key (tenant_id, id)
);

create index schedules_due on schedules (due_at) where due_at is not null;

-- One row a tick that a schedule has come to, whatever became of it, and one a run that somebody asked
-- for. WAITING is the promise that it is started when the runs before it have settled.
create table schedule_runs (
  tenant_id text collate "C" not null,
  schedule_id text collate "C" not null,
  seq bigint generated always as identity,
  kind text collate "C" not null,
  tick_at timestamptz not null,
  status text collate "C" not null,
  reason text collate "C",
  message text,
  instance_id uuid,
  created_at timestamptz not null,
  started_at timestamptz,
  -- when it was noticed that its instance has settled
  ended_at timestamptz,
  primary key (tenant_id, schedule_id, seq)
);

create unique index schedule_runs_tick on schedule_runs (tenant_id, schedule_id, tick_at)
  where kind <> 'MANUAL';
create index schedule_runs_live on schedule_runs (tenant_id, schedule_id, seq)
  where status = 'STARTED' and ended_at is null;
create index schedule_runs_waiting on schedule_runs (tenant_id, schedule_id, seq)
  where status = 'WAITING';
