-- In which hours of which days somebody works, for delays that count by it. Of public holidays the dates
-- are kept, as they were when the calendar was stored: whoever counts looks nothing up.
create table calendars (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  -- from 1, one more with each change
  version integer not null,
  document json not null,
  -- { dates, until }; null without any
  holidays json,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id)
);
