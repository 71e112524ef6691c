import { staleBeatMs } from "./beat.ts";
import { dueColumns, dueStepOf } from "./due-step.ts";
import type { DueRow, DueStep } from "./due-step.ts";
import { jsonText } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** What workers say of the steps that they hold, or cannot take. Claims do not touch the instance. */

/** One held execution. */
export interface HeldStep {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
}

/**
 * Those that are no longer this worker's to finish: taken over, stopped, or awaited by a cancel, which
 * their handlers are to hear of. Their order is kept.
 */
export async function lostHolds<Hold extends HeldStep>(
  db: Db,
  workerId: string,
  holds: readonly Hold[],
): Promise<readonly Hold[]> {
  if (holds.length === 0) return [];
  const indexed = holds.map((hold, ix) => ({ ix, hold }));
  const rows = await run<{ ix: number }>(db, lost, [workerId, ...holdSource.values(indexed)]);
  const kept = new Set(rows.map(({ ix }) => ix));
  return holds.filter((_hold, ix) => !kept.has(ix));
}

const holdSource = rowSource<{ readonly ix: number; readonly hold: HeldStep }>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ hold }) => hold.tenantId },
  instance_id: { type: "uuid", of: ({ hold }) => hold.instanceId },
  path: { type: "text", of: ({ hold }) => hold.path },
  iteration: { type: "integer", of: ({ hold }) => hold.iteration },
  fence: { type: "integer", of: ({ hold }) => hold.fence },
});

const samePlace = `s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
    and s.path = x.path and s.iteration = x.iteration`;

const lost = prepared(
  "held_steps",
  `select x.ix from ${holdSource.from("x", 2)}
  join step_executions s on ${samePlace}
  where s.status = 'RUNNING' and s.fence = x.fence and s.worker_id = $1 and not s.awaited`,
);

/**
 * Hands back whatever a worker holds: others may take it at once, and it is looked for at once.
 * Executions that a cancel awaits stay: nobody may run them again.
 *
 * @param justBegun Those of them that may be why the worker ends; for all others the count of such
 *   hand-overs begins anew.
 */
export async function releaseSteps(
  db: Db,
  workerId: string,
  justBegun: readonly Place[] = [],
): Promise<readonly DueStep[]> {
  const rows = await run<DueRow>(db, release, [workerId, ...placeSource.values(justBegun)]);
  return rows.map(dueStepOf);
}

/** Names an execution. */
export type Place = Pick<HeldStep, "tenantId" | "instanceId" | "path" | "iteration">;

const placeSource = rowSource<Place>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

const release = prepared(
  "release_steps",
  `with held as materialized (
    select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
    where s.worker_id = $1 and s.status = 'RUNNING' and not s.awaited
    order by s.tenant_id, s.instance_id, s.path, s.iteration
    for update skip locked)
  update step_executions s
  set status = 'PENDING', fence = s.fence + 1, worker_id = null, carrier = null,
    look_at = case when not s.held then statement_timestamp() end, looks = 0, due_at = null, due_clock = null, timeout_at = null,
    hand_overs = case when exists (
      select from ${placeSource.from("y", 2)}
      where y.tenant_id = s.tenant_id and y.instance_id = s.instance_id
        and y.path = s.path and y.iteration = s.iteration) then s.hand_overs + 1 else 0 end
  from held x
  where ${samePlace}
  returning ${dueColumns}`,
);

/** An execution that a job speaks of. */
export interface StepAttempt {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
}

/**
 * Notes why this worker cannot take a step, for people to see. The row stays PENDING. It is looked
 * for again after 1 s, then 4, 16, …, 600; where a live worker on its queue knows the task, a release of which
 * is being rolled out say, after 8 s at most, since each time any of them may get it. One that comes with the
 * task makes the row due at once (`unblockSteps`).
 *
 * @returns How often it was blocked for that in a row, however long it has waited in between; undefined
 *   where it does not wait any more.
 */
export async function blockStep(
  db: Db,
  step: StepAttempt,
  reason: `task:${string}` | `cell:${string}`,
): Promise<number | undefined> {
  const { tenantId, instanceId, path, iteration, attempt, fence } = step;
  const values = [tenantId, instanceId, path, iteration, attempt, fence, reason];
  const [row] = await run<{ looks: number }>(db, block, values);
  return row?.looks;
}

/** Of what holds the step back, without what is told of it. */
const kindOf = (reason: string) => `split_part(${reason}, ':', 1)`;
const timesBefore = `case when ${kindOf("blocked")} = ${kindOf("$7")} then greatest(looks, 0) else 0 end`;

const isKnownHere = `exists (select from workers w
        where s.queue = any (w.queues) and s.task_id = any (w.tasks) and $7 = 'task:' || s.task_id
          and w.exit is null and w.beat_at > statement_timestamp() - interval '${staleBeatMs} ms')`;

const block = prepared(
  "block_step",
  `update step_executions s
  set blocked = $7, looks = ${timesBefore} + 1,
    look_at = greatest(retry_at,
      statement_timestamp()
        + least(case when ${isKnownHere} then 8 else 600 end, 4 ^ least(${timesBefore}, 5))
        * interval '1 s')
  where tenant_id = $1 and instance_id = $2 and path = $3 and iteration = $4
    and attempt = $5 and fence = $6 and status in ('PENDING', 'RETRYING') and not held
  returning looks`,
);

/** Of a step that could not be taken: its `looks` are how often (`blockStep`), and waiting adds none. */
export const wasBlocked = "coalesce(s.blocked ~ '^(task|cell):', false)";

/** How a step is marked that is to run alone since its task asks for it. */
export const isolatedMark = "isolated";

/**
 * Marks a step that waits for a worker as one that is to run alone, for people to see. Where it says
 * already of what its last run came to nothing, it goes on saying that.
 *
 * @param patienceMs After which it is looked for, if that is sooner than it would be; undefined: as it would be.
 * @returns What its job needs; undefined where it does not wait any more.
 */
export async function setAside(
  db: Db,
  step: StepAttempt,
  patienceMs?: number,
): Promise<DueStep | undefined> {
  const { tenantId, instanceId, path, iteration, attempt, fence } = step;
  const values = [tenantId, instanceId, path, iteration, attempt, fence, patienceMs ?? null];
  const [row] = await run<DueRow>(db, aside, values);
  return row && dueStepOf(row);
}

const aside = prepared(
  "set_aside",
  `update step_executions s
  set blocked = coalesce(case when s.blocked not like 'task:%' then s.blocked end, '${isolatedMark}'),
    look_at = least(s.look_at, statement_timestamp() + $7::bigint * interval '1 ms')
  where s.tenant_id = $1 and s.instance_id = $2 and s.path = $3 and s.iteration = $4
    and s.attempt = $5 and s.fence = $6 and s.status in ('PENDING', 'RETRYING') and not s.held
  returning ${dueColumns}`,
);

/** Makes the steps due that wait for one of these tasks. */
export async function unblockSteps(db: Db, tasks: readonly string[]): Promise<number> {
  const reasons = tasks.map((task) => `task:${task}`);
  let unblocked = 0;
  for (;;) {
    const rows = await run<{ n: number }>(db, unblock, [reasons, unblockChunk]);
    const count = rows[0]?.n ?? 0;
    unblocked += count;
    if (count < unblockChunk) return unblocked;
  }
}

const unblockChunk = 1_000;

const unblock = prepared(
  "unblock_steps",
  `with waiting as materialized (
    select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
    where s.blocked = any ($1::text[]) and s.status in ('PENDING', 'RETRYING') and not s.held
    limit $2
    for update skip locked),
  freed as (
    update step_executions s
    set blocked = null, looks = 0, look_at = greatest(s.retry_at, statement_timestamp())
    from waiting x
    where ${samePlace}
    returning 1)
  select count(*)::integer as n from freed`,
);

/** What a running task reports. It also shows that it is alive, where the step watches that. */
export async function recordProgress(
  db: Db,
  step: HeldStep & { readonly workerId: string },
  progress: Json,
  heartbeatTimeoutMs: number | null,
): Promise<void> {
  const { tenantId, instanceId, path, iteration, fence, workerId } = step;
  await run(db, record, [
    tenantId,
    instanceId,
    path,
    iteration,
    fence,
    workerId,
    jsonText(progress),
    heartbeatTimeoutMs,
  ]);
}

const heartbeatAt = "statement_timestamp() + $8::bigint * interval '1 ms'";

const record = prepared(
  "record_progress",
  `update step_executions
  set progress = $7,
    due_at = case when $8::bigint is null then due_at else least(timeout_at, ${heartbeatAt}) end,
    due_clock = case
      when $8::bigint is null then due_clock
      when timeout_at <= ${heartbeatAt} then 'timeout'
      else 'heartbeat' end
  where tenant_id = $1 and instance_id = $2 and path = $3 and iteration = $4
    and fence = $5 and worker_id = $6 and status = 'RUNNING'`,
);
