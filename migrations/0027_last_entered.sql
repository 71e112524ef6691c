-- Of each step in the items of MAPs the execution entered last, to show it with its instance however many there are.
create index step_executions_entries on step_executions (tenant_id, instance_id, step_id, entry)
  where entry is not null;
