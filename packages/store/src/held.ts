import type { Key } from "./commit.ts";
import { dueColumns, dueStepOf } from "./due-step.ts";
import type { DueRow, DueStep } from "./due-step.ts";
import { prepared, run, type Db } from "./statement.ts";
import { timerColumns, timerOf } from "./timers.ts";
import type { DueTimer, TimerRow } from "./timers.ts";
import { rowSource } from "./unnest.ts";

/** What operators need of the rows of an instance: what a pause has held, and what its end has taken away. */

/** Timers of one instance that are due, whoever holds them, in order of time. */
export async function dueTimersOf(
  db: Db,
  { tenantId, instanceId }: Key,
): Promise<readonly DueTimer[]> {
  return (await run<TimerRow>(db, dueTimers, [tenantId, instanceId])).map(timerOf);
}

const dueTimers = prepared(
  "due_timers_of",
  `select ${timerColumns} from timers t
  where t.tenant_id = $1 and t.instance_id = $2 and t.due_at <= statement_timestamp()
  order by t.due_at`,
);

/** Those of the executions that a worker may take now. */
export async function dueStepsOf(
  db: Db,
  { tenantId, instanceId }: Key,
  places: readonly { readonly path: string; readonly iteration: number }[],
): Promise<readonly DueStep[]> {
  if (places.length === 0) return [];
  const rows = await run<DueRow>(db, dueSteps, [
    tenantId,
    instanceId,
    ...placeSource.values(places),
  ]);
  return rows.map(dueStepOf);
}

const placeSource = rowSource<{ readonly path: string; readonly iteration: number }>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

const dueSteps = prepared(
  "due_steps_of",
  `select ${dueColumns} from ${placeSource.from("x", 3)}
  join step_executions s on s.tenant_id = $1 and s.instance_id = $2
    and s.path = x.path and s.iteration = x.iteration
  where s.status in ('PENDING', 'RETRYING') and s.look_at <= statement_timestamp()`,
);

/**
 * Which events an instance has had, from its history: of one that has settled these rows are gone, and a
 * retry opens waits anew.
 */
export async function restoreDeliveries(db: Db, { tenantId, instanceId }: Key): Promise<void> {
  await run(db, deliveries, [tenantId, instanceId]);
}

const deliveries = prepared(
  "restore_deliveries",
  `with signals as (
    select h.at, s.value as signal from history h,
      json_array_elements(case when json_typeof(h.signals) = 'array' then h.signals else '[]' end) s
    where h.tenant_id = $1 and h.instance_id = $2),
  taken as (
    select at, signal from signals where signal->>'kind' = 'eventMatched'
    union all
    select at, h.value->'signal' from signals, json_array_elements(signal->'held') h
    where signal->>'kind' in ('resumeRequested', 'retryRequested') and h.value->'signal'->>'kind' = 'eventMatched')
  insert into event_deliveries (tenant_id, instance_id, event_id, delivered_at)
  select $1, $2, signal->'event'->>'id', min(at) from taken group by 3
  on conflict do nothing`,
);
