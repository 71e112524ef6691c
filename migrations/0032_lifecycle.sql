-- Lifecycle events are made of the history while somebody waits for them (docs/decisions/0027-lifecycle-events.md).

-- When the row was written, by the database's clock: what waits hear is compared with it, as with
-- `events.received_at`. Not when its statement began, which may have stood behind a lock since before a wait opened
-- that was committed first. Null: written by an earlier release.
alter table history add column written_at timestamptz;
alter table history alter column written_at set default clock_timestamp();

-- Since when a definition has listened to this pattern, whichever of its versions did.
alter table start_triggers add column since timestamptz not null default statement_timestamp();

-- Whether anybody listens at all is asked for time and again.
create index waits_lifecycle on waits (tenant_id)
  where starts_with(pattern, 'workflow.') and matched_event_id is null;
create index start_triggers_lifecycle on start_triggers (tenant_id)
  where starts_with(pattern, 'workflow.');

-- Up to where the history has been read; one row. While nobody listens it is moved on now and then. What was read
-- last is being matched up to `busy_until`, so that the next comes after it.
create table lifecycle_cursor (
  id boolean primary key default true check (id),
  tx xid8 not null,
  seq bigint not null,
  moved_at timestamptz not null default statement_timestamp(),
  busy_until timestamptz
);
insert into lifecycle_cursor (tx, seq) values (pg_snapshot_xmin(pg_current_snapshot()), 0);
