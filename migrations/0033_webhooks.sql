-- Whom lifecycle events are sent to (docs/decisions/0028-webhooks.md).
create table webhooks (
  tenant_id text collate "C" not null,
  id uuid not null,
  url text not null,
  -- patterns of the events that are sent
  types text[] not null,
  -- null: of all workflows
  workflow_ids text[],
  description text,
  secret text not null,
  status text collate "C" not null,
  disabled_reason text,
  created_at timestamptz not null default statement_timestamp(),
  created_by text not null,
  updated_at timestamptz not null default statement_timestamp(),
  -- it is sent what is written from then on
  since timestamptz not null default statement_timestamp(),
  -- since when nothing has been taken
  failing_since timestamptz,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_failure text,
  primary key (tenant_id, id)
);

create index webhooks_enabled on webhooks (tenant_id) where status = 'ENABLED';

-- One row for each event that is still to be taken by a webhook; the row is the promise that it is sent.
create table webhook_deliveries (
  tenant_id text collate "C" not null,
  webhook_id uuid not null,
  event_id text collate "C" not null,
  body text not null,
  created_at timestamptz not null default statement_timestamp(),
  attempts integer not null default 0,
  -- when it is sent next; moved on while somebody sends it
  look_at timestamptz not null default statement_timestamp(),
  primary key (tenant_id, webhook_id, event_id),
  foreign key (tenant_id, webhook_id) references webhooks on delete cascade
);

create index webhook_deliveries_due on webhook_deliveries (tenant_id, webhook_id, look_at);
