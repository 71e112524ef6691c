-- Which of its tasks a worker runs in a process for each run, for people to see. Null: it does not say, being of an
-- earlier release.
alter table workers add column isolated_tasks text[];
