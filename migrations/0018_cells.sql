-- How many steps a worker runs alone at a time for each of its queues, after others have died under them.
-- Null: it does not say, being of an earlier release, or takes steps from no queue.
alter table workers add column cells integer;
