-- The instance is paused, and no event had taken the wait by then. What takes it now must have been
-- received before whatever clock would have taken it was due: those clocks are held.
alter table waits add column held boolean not null default false;
