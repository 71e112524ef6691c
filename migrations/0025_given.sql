-- What an instance was given when it was started, as a hash: nothing else says whether the one copy of it was changed.
-- Null: started by a release before this one.
alter table workflow_instances add column given text collate "C";
