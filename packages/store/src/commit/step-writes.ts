import type { Draft } from "./draft.ts";
import { isWritten, ownedSource, placeColumns, samePlace } from "./parameters.ts";
import type { From } from "./parameters.ts";

/**
 * A carried row is RUNNING from the start, held by the worker that commits it. A PENDING one is the
 * promise of a job: if none has come for it in 30 s, it is looked for.
 */
export function insertSteps(from: From): string {
  return `inserted as (
    insert into step_executions (
      tenant_id, instance_id, path, iteration, step_id, type, status, attempt, task_id, queue,
      priority, compensates, input, output, error, completion, timeout_ms, heartbeat_timeout_ms,
      created_at, started_at, completed_at, fence, deliveries, worker_id, carrier, look_at,
      due_at, due_clock, timeout_at, task_retry, items, held, entry)
    select ${from.tenantId}, ${from.instanceId}, x.path, x.iteration, x.step_id, x.type, x.status, x.attempt,
      x.task_id, x.queue, x.priority, x.compensates, x.input, x.output, x.error, x.completion,
      x.timeout_ms, x.heartbeat_timeout_ms, statement_timestamp(),
      case when x.worker_id is null then x.started_at else statement_timestamp() end,
      x.completed_at, x.runs, x.runs, x.worker_id, x.carrier,
      case when x.status = 'PENDING' and x.held is null
        then statement_timestamp() + interval '30 s' end,
      statement_timestamp() + x.due_ms * interval '1 ms', x.due_clock,
      statement_timestamp() + x.attempt_ms * interval '1 ms', x.task_retry, x.items,
      x.held is not null, x.entry
    from ${from("x")}
    where ${isWritten})`;
}

export const stepInserts = ownedSource<Draft["inserts"][number]>({
  path: { type: "text", of: ({ row }) => row.path },
  iteration: { type: "integer", of: ({ row }) => row.iteration },
  step_id: { type: "text", of: ({ row }) => row.stepId },
  type: { type: "text", of: ({ row }) => row.type },
  status: { type: "text", of: ({ row, carry }) => (carry === undefined ? row.status : "RUNNING") },
  attempt: { type: "integer", of: ({ row }) => row.attempt },
  task_id: { type: "text", of: ({ row }) => row.taskId },
  queue: { type: "text", of: ({ row }) => row.queue },
  priority: { type: "integer", of: ({ row }) => row.priority },
  compensates: { type: "text", of: ({ row }) => row.compensates },
  input: { type: "json", of: ({ input }) => input },
  output: { type: "json", of: ({ output }) => output },
  error: { type: "json", of: ({ error }) => error },
  completion: { type: "integer", of: ({ row }) => row.completion },
  timeout_ms: { type: "bigint", of: ({ row }) => row.timeoutMs },
  heartbeat_timeout_ms: { type: "bigint", of: ({ row }) => row.heartbeatTimeoutMs },
  started_at: { type: "timestamptz", of: ({ row }) => row.startedAt },
  completed_at: { type: "timestamptz", of: ({ row }) => row.completedAt },
  runs: { type: "integer", of: ({ carry }) => (carry === undefined ? 0 : 1) },
  worker_id: { type: "uuid", of: ({ carry }) => carry?.workerId },
  carrier: { type: "text", of: ({ carry }) => carry?.carrier },
  due_ms: { type: "bigint", of: ({ clock }) => clock.dueMs },
  due_clock: { type: "text", of: ({ clock }) => clock.name },
  attempt_ms: { type: "bigint", of: ({ clock }) => clock.timeoutMs },
  task_retry: { type: "json", of: ({ retry }) => retry },
  items: { type: "json", of: ({ row }) => itemsText(row) },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
  entry: { type: "integer", of: ({ row }) => row.entry },
});

/** A row that is not RUNNING any more is held by nobody; `worker_id` then says who ran it last. */
export function updateSteps(from: From): string {
  const whileRunning = (column: string) =>
    `${column} = case when x.status = 'RUNNING' then s.${column} end`;
  return `updated as (
    update step_executions s
    set status = x.status,
      attempt = x.attempt,
      output = coalesce(x.output, s.output),
      error = x.error,
      completion = coalesce(x.completion, s.completion),
      completed_at = x.completed_at,
      items = coalesce(x.items, s.items),
      awaited = x.awaited,
      retry_at = x.retry_at,
      look_at = case
        when x.held then null
        -- No job is missing where no task is to run: a timer says when a child is tried again.
        when x.status = 'RETRYING' then case when s.queue is not null then x.retry_at end
        when x.status = 'PENDING' then statement_timestamp() + interval '30 s' end,
      held = x.held is not null,
      looks = 0,
      blocked = null,
      -- Those of one attempt: an attempt that failed was not the death of its worker.
      deliveries = case when x.status = 'RETRYING' then 0 else s.deliveries end,
      lapses = case when x.status = 'RETRYING' then 0 else s.lapses end,
      hand_overs = case when x.status = 'RETRYING' then 0 else s.hand_overs end,
      ${["carrier", "due_at", "due_clock", "timeout_at"].map(whileRunning).join(", ")}
    from ${from("x")}
    where ${isWritten} and ${samePlace("s", from)})`;
}

export const stepUpdates = ownedSource<Draft["updates"][number]>({
  path: { type: "text", of: ({ row }) => row.path },
  iteration: { type: "integer", of: ({ row }) => row.iteration },
  status: { type: "text", of: ({ row }) => row.status },
  attempt: { type: "integer", of: ({ row }) => row.attempt },
  output: { type: "json", of: ({ output }) => output },
  error: { type: "json", of: ({ error }) => error },
  completion: { type: "integer", of: ({ row }) => row.completion },
  completed_at: { type: "timestamptz", of: ({ row }) => row.completedAt },
  awaited: { type: "boolean", of: ({ row }) => row.awaited },
  retry_at: { type: "timestamptz", of: ({ row }) => row.retryAt },
  items: { type: "json", of: ({ row }) => itemsText(row) },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

function itemsText({ items }: Pick<Draft["updates"][number]["row"], "items">): string | undefined {
  return items && JSON.stringify(items);
}

/** What is let go is looked at when it is due, which it may be already. */
export function holdSteps(from: From): string {
  return `held_steps as (
    update step_executions s
    set held = x.held, looks = 0,
      look_at = case when not x.held and s.status in ('PENDING', 'RETRYING')
        then greatest(s.retry_at, statement_timestamp()) end
    from ${from("x")}
    where ${isWritten} and ${samePlace("s", from)})`;
}

export const heldSteps = ownedSource<Draft["heldSteps"][number]>({
  ...placeColumns,
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});
