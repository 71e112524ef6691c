-- How many steps a worker runs at a time, for people to see whether it is full. Null: it does not say, being of
-- an earlier release, or takes steps from no queue.
alter table workers add column concurrency integer;
