import type { Key } from "./commit.ts";
import { dueColumns, dueStepOf } from "./due-step.ts";
import type { DueRow, DueStep } from "./due-step.ts";
import { prepared, run, type Db } from "./statement.ts";
import { timerColumns, timerOf } from "./timers.ts";
import type { DueTimer, TimerRow } from "./timers.ts";
import { rowSource } from "./unnest.ts";

/** What a pause has held of an instance, and lets go. */

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
