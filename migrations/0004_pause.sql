-- The instance is paused: nobody takes the row, and nobody looks whether its job is there, until it is
-- let go. Timers of a paused instance have a `look_at` of infinity.
alter table step_executions add column held boolean not null default false;
