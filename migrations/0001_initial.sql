-- Postgres is the truth. `tenant_id` is the first column of every key. Values that are only carried
-- are `json`, so that they come back as they went in; what is searched is `jsonb`. Names and ids are
-- compared byte by byte (collate "C"): faster than a language's order, the same on every server, and
-- a prefix can be looked up in an index. See docs/decisions/0001-json-keys-and-collation.md.

create table workflow_definitions (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  version integer not null,
  content_hash text collate "C" not null,
  document json not null,
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (tenant_id, id, version)
);

-- One row an instance. No index covers a column that changes with every step, so that most updates
-- are heap-only; the free space in each page is for them. Ids are UUIDv7 whose milliseconds equal
-- `created_at`: the primary key is also the order of creation.
create table workflow_instances (
  tenant_id text collate "C" not null,
  id uuid not null,
  workflow_id text collate "C" not null,
  workflow_version integer not null,
  version integer not null,
  status text collate "C" not null,
  status_at timestamptz not null,
  correlation_id text collate "C",
  user_id text collate "C",
  priority integer not null,
  deadline timestamptz,
  start_event_id text collate "C",
  metadata json,
  input json,
  variables jsonb not null,
  -- The live frontier: see engine/state/codec.ts.
  snapshot json not null,
  output json,
  error json,
  cancellation json,
  compensation json,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  primary key (tenant_id, id)
) with (fillfactor = 50);

create index workflow_instances_status on workflow_instances (tenant_id, status, status_at);
create index workflow_instances_workflow on workflow_instances (tenant_id, workflow_id, id);
create index workflow_instances_correlation on workflow_instances (tenant_id, correlation_id, id)
  where correlation_id is not null;

-- One row an execution of a step. A PENDING row is the promise that a job exists; the claim columns
-- (fence, worker_id, carrier, look_at) say who holds it. Claims do not touch the instance.
create table step_executions (
  tenant_id text collate "C" not null,
  instance_id uuid not null,
  path text collate "C" not null,
  iteration integer not null,
  step_id text collate "C" not null,
  type text collate "C" not null,
  status text collate "C" not null,
  attempt integer not null,
  task_id text collate "C",
  queue text collate "C",
  priority integer not null default 0,
  compensates text collate "C",
  -- null: the instance's input
  input json,
  -- null: there is none yet; a result of null is the JSON value null
  output json,
  error json,
  completion integer,
  -- the limits that the definition sets; null: the task's own
  timeout_ms bigint,
  heartbeat_timeout_ms bigint,
  created_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  -- who holds it
  fence integer not null default 0,
  deliveries integer not null default 0,
  -- deliveries of this attempt that ended with the silence of their worker
  lapses integer not null default 0,
  worker_id uuid,
  carrier text collate "C",
  awaited boolean not null default false,
  -- when to look whether its job is still there
  look_at timestamptz,
  looks integer not null default 0,
  -- RETRYING: not before the next attempt may start
  retry_at timestamptz,
  blocked text collate "C",
  -- the clock of the running attempt that runs out first, its name, and the end of the attempt's own
  due_at timestamptz,
  due_clock text collate "C",
  timeout_at timestamptz,
  -- the task's own policy, for whoever fires the clock
  task_retry json,
  progress json,
  primary key (tenant_id, instance_id, path, iteration)
);

-- The reconciler: steps whose job may be missing, steps that a worker holds, steps that wait for a
-- worker that knows their task.
create index step_executions_look on step_executions (look_at)
  where status in ('PENDING', 'RETRYING');
create index step_executions_held on step_executions (worker_id)
  where status = 'RUNNING' and worker_id is not null;
create index step_executions_blocked on step_executions (blocked)
  where blocked is not null;
-- Listing instances by the step that they are at.
create index step_executions_live on step_executions (tenant_id, step_id, instance_id)
  where status in ('PENDING', 'RUNNING', 'WAITING', 'RETRYING');

-- Open waits and cancellation triggers. The key is a hash of the equality conjuncts' values, so that
-- an event finds its waits with one probe; null matches nothing until it is written again.
create table waits (
  tenant_id text collate "C" not null,
  instance_id uuid not null,
  path text collate "C" not null,
  iteration integer not null,
  step_id text collate "C",
  purpose text collate "C" not null,
  pattern text collate "C" not null,
  event_paths text collate "C" not null,
  key_hash bigint,
  deliver text collate "C" not null,
  opened_at timestamptz not null,
  lookback_from timestamptz,
  looked_back boolean not null,
  matched_event_id text collate "C",
  matched_at timestamptz,
  primary key (tenant_id, instance_id, path, iteration)
);

create index waits_open on waits (tenant_id, pattern, event_paths, key_hash, purpose, opened_at)
  where matched_event_id is null;
create index waits_unapplied on waits (matched_at) where matched_event_id is not null;
create index waits_not_looked_back on waits (opened_at) where not looked_back;

-- Which event paths the waits of a pattern are keyed by: a handful of rows a pattern, never deleted.
create table wait_shapes (
  tenant_id text collate "C" not null,
  pattern text collate "C" not null,
  event_paths text collate "C" not null,
  primary key (tenant_id, pattern, event_paths)
);

create table events (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  pattern text collate "C" not null,
  payload jsonb not null,
  occurred_at timestamptz not null,
  received_at timestamptz not null,
  actor text not null,
  matched_at timestamptz,
  delivered integer not null default 0,
  cancelled integer not null default 0,
  started integer not null default 0,
  taken_by uuid,
  primary key (tenant_id, id)
);

create index events_pattern on events (tenant_id, pattern, received_at, id);
create index events_unmatched on events (received_at) where matched_at is null;
create index events_payload on events using gin (payload jsonb_path_ops)
  with (fastupdate = off);

-- An event satisfies the waits of an instance that were open when it was delivered; a wait that opens
-- later does not see it again.
create table event_deliveries (
  tenant_id text collate "C" not null,
  instance_id uuid not null,
  event_id text collate "C" not null,
  delivered_at timestamptz not null,
  primary key (tenant_id, instance_id, event_id)
);

-- `look_at` starts as `due_at` and moves on while somebody fires the timer.
create table timers (
  tenant_id text collate "C" not null,
  instance_id uuid not null,
  path text collate "C" not null,
  iteration integer not null,
  kind text collate "C" not null,
  attempt integer not null,
  due_at timestamptz not null,
  look_at timestamptz not null,
  primary key (tenant_id, instance_id, path, iteration, kind)
);

create index timers_look on timers (look_at);

-- One row a commit: the signals in the order in which they were folded, what changed, and the audit.
create table history (
  tenant_id text collate "C" not null,
  instance_id uuid not null,
  version integer not null,
  -- by which a commit is recognised that is handed in again, because its first answer was lost
  commit_id uuid not null,
  at timestamptz not null,
  engine_rev integer not null,
  actor text not null,
  signals json not null,
  changes json not null,
  entries json not null,
  tx xid8 not null default pg_current_xact_id(),
  seq bigint generated always as identity,
  primary key (tenant_id, instance_id, version)
);

create table idempotency_keys (
  tenant_id text collate "C" not null,
  key text collate "C" not null,
  body_hash text not null,
  instance_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, key)
);

-- One row a worker process, beaten every second by a thread of its own.
create table workers (
  id uuid primary key,
  host text not null,
  pid integer not null,
  tasks text[] not null,
  queues text[] not null,
  started_at timestamptz not null default now(),
  beat_at timestamptz not null default now()
);

create table settings (
  name text collate "C" primary key,
  value text not null
);
