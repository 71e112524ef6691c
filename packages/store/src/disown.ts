import { nobody } from "./due.ts";
import type { HeldStep, StepAttempt } from "./holds.ts";
import { isPaused } from "./paused-queues.ts";
import { prepared, run, type Db } from "./statement.ts";
import { reckonable } from "./stored-time.ts";
import { rowSource } from "./unnest.ts";

/**
 * Steps that a row gives to a worker and the worker knows nothing of: the answer to a claim, or to a
 * commit that carries the next step, was lost on its way. The worker beats on, so that nobody would
 * ever take them over.
 */

/** What the rows say that this worker holds, and what a cancel awaits left out. */
export async function heldSteps(db: Db, workerId: string): Promise<readonly HeldStep[]> {
  const rows = await run<HeldRow>(db, held, [workerId]);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    path: row.path,
    iteration: row.iteration,
    fence: row.fence,
  }));
}

interface HeldRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
}

/** Answered from `step_executions_held`. */
const held = prepared(
  "steps_of_worker",
  `select s.tenant_id, s.instance_id, s.path, s.iteration, s.fence from step_executions s
  where s.worker_id = $1 and s.status = 'RUNNING' and not s.awaited`,
);

/** Whether a worker has anything in hand, be it only that a cancel awaits it. */
export async function holdsAnything(db: Db, workerId: string): Promise<boolean> {
  return (await run(db, anything, [workerId])).length > 0;
}

const anything = prepared(
  "any_step_of_worker",
  "select 1 from step_executions where worker_id = $1 and status = 'RUNNING' limit 1",
);

/**
 * Gives them to a worker that does not exist: to whoever looks for lapsed holders they are free, and
 * count as runs that came to nothing.
 *
 * @param why They came to nothing, beginning with `failedRun` (dead-letters.ts): they are tried again after pauses that grow.
 *   Null: nobody knows.
 */
export async function disownSteps(
  db: Db,
  workerId: string,
  steps: readonly HeldStep[],
  why: string | null = null,
): Promise<void> {
  if (steps.length > 0) await run(db, disown, [workerId, nobody, why, ...source.values(steps)]);
}

const source = rowSource<HeldStep>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  fence: { type: "integer", of: ({ fence }) => fence },
});

const disown = prepared(
  "disown_steps",
  `with mine as materialized (
    select s.tenant_id, s.instance_id, s.path, s.iteration
    from ${source.from("x", 4)}
    join step_executions s on s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
      and s.path = x.path and s.iteration = x.iteration
    where s.worker_id = $1 and s.fence = x.fence and s.status = 'RUNNING' and not s.awaited
    order by s.tenant_id, s.instance_id, s.path, s.iteration
    for update of s skip locked)
  update step_executions s set worker_id = $2, blocked = $3
  from mine x
  where s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
    and s.path = x.path and s.iteration = x.iteration`,
);

/**
 * Has a step looked for at once, or when its retry is due: its job went to a worker that did not take it.
 * Waits for whoever is changing the row. One whose queue is paused gets another job soon, which waits in the queue.
 *
 * @returns In how many milliseconds it is due; undefined where it does not wait any more, or its queue is paused.
 */
export async function lookAtOnce(db: Db, step: StepAttempt): Promise<number | undefined> {
  const { tenantId, instanceId, path, iteration, attempt, fence } = step;
  const values = [tenantId, instanceId, path, iteration, attempt, fence];
  const [row] = await run<{ due_in_ms: number | null }>(db, look, values);
  return row?.due_in_ms ?? undefined;
}

/** By then workers leave the jobs of the queue alone. */
const pausedLook = "interval '2 s'";

const look = prepared(
  "look_at_once",
  `update step_executions s
  set look_at = greatest(retry_at, statement_timestamp()
      + case when ${isPaused("s.queue")} then ${pausedLook} else interval '0' end),
    looks = 0
  where tenant_id = $1 and instance_id = $2 and path = $3 and iteration = $4
    and attempt = $5 and fence = $6 and status in ('PENDING', 'RETRYING') and not held
  returning case when not ${isPaused("s.queue")} then greatest(0,
    ceil(extract(epoch from ${reckonable("retry_at")} - statement_timestamp()) * 1000))::float8
    end as due_in_ms`,
);
