-- Instances that others start as their children (SUB_WORKFLOW).

-- The execution that started it, and how many levels below the first one it is; null: nobody did.
alter table workflow_instances add column parent json;

-- One row a child, written by the commit of its parent that starts it. Until `started_at` is set, by
-- the child's own first commit, the row is the promise that the child will be; then it is the link
-- between the two. The child's input is that of the step's row.
create table children (
  tenant_id text collate "C" not null,
  -- the parent's
  instance_id uuid not null,
  path text collate "C" not null,
  iteration integer not null,
  attempt integer not null,
  child_id uuid not null,
  workflow_id text collate "C" not null,
  -- null: not named by the step
  workflow_version integer,
  detached boolean not null,
  requested_at timestamptz not null,
  look_at timestamptz not null,
  started_at timestamptz,
  primary key (tenant_id, instance_id, path, iteration, attempt)
);

create index children_look on children (look_at) where started_at is null;

-- What parent and child tell each other: CANCEL to a child, END to a parent. Written by the sender's
-- commit, deleted by the receiver's: no other transaction touches a row, so nobody waits for one.
create table child_signals (
  tenant_id text collate "C" not null,
  -- the receiver's
  instance_id uuid not null,
  kind text collate "C" not null,
  child_id uuid not null,
  -- the sender's version: a child that failed and was retried ends again
  sent_version integer not null,
  path text collate "C" not null,
  iteration integer not null,
  attempt integer not null,
  body json not null,
  sent_at timestamptz not null,
  look_at timestamptz not null,
  primary key (tenant_id, instance_id, kind, child_id, sent_version)
);

create index child_signals_look on child_signals (look_at);
