-- What follows all instances reads the history in the order of its transactions. Those that wrote several
-- rows have one entry for them.
create index history_by_tx on history (tx);

-- The instance's status after the commit. Null: written by an earlier release.
alter table history add column status text;
