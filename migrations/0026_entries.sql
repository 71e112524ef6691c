-- In which order the executions in the items of MAPs were entered: outside of them the one entered last is read.
-- Null: not in an item, or written by a release before this one.
alter table step_executions add column entry integer;
