-- How often in a row a step was handed over soon after it had begun, since its worker was asked to end: a
-- step that asks its worker to end cannot be told from a deployment otherwise.
alter table step_executions add column hand_overs integer not null default 0;
