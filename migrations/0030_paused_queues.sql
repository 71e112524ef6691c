-- Queues of which no worker takes a step. A row is a pause: there is none of a queue that is not paused. The statements
-- that give steps to workers read it, so that a pause holds for every worker, whatever it knows.
create table paused_queues (
  queue text collate "C" primary key,
  paused_at timestamptz not null default now(),
  paused_by text not null,
  reason text
);
