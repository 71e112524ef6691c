import type { WorkflowError } from "@millrace/engine";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { prepared, run, type Db } from "./statement.ts";

/**
 * Steps that killed their workers, for an operator. Written and resolved by commits (writes.ts); here
 * they are read.
 */
export interface DeadLetter {
  readonly tenantId: string;
  readonly id: string;
  readonly instanceId: string;
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly path: string;
  readonly iteration: number;
  readonly stepId: string;
  readonly taskId: string | null;
  readonly attempt: number;
  readonly error: WorkflowError;
  /** Oldest first. */
  readonly deliveries: readonly LapsedDelivery[];
  readonly status: DeadLetterStatus;
  readonly createdAt: Date;
  readonly resolvedAt: Date | null;
  readonly resolvedBy: string | null;
  readonly reason: string | null;
}

export type DeadLetterStatus = "OPEN" | "RETRIED" | "DISCARDED";

/** A delivery that ended with the silence of its worker, and what is known of that. Times are ISO 8601. */
export interface LapsedDelivery {
  readonly attempt: number;
  readonly workerId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly lastBeatAt: string | null;
  readonly foundAt: string;
  /** Memory of the worker at its last beat; where it ran the step alone, the most it was seen to have. */
  readonly rssBytes: number | null;
  /**
   * How its process ended, where the supervisor has told: a signal or an exit code. Of a run that came to
   * nothing while the process lived on: of what.
   */
  readonly exit: string | null;
}

/** How a step is marked whose last run came to nothing while its worker lived on; of what follows. */
export const failedRun = "failed:";

/** One lapse of step `s`, whose worker `w` may be gone, or whose run came to nothing (`disownSteps`). */
export const lapseOf = `jsonb_build_array(jsonb_build_object(
      'attempt', s.attempt, 'workerId', s.worker_id, 'host', w.host, 'pid', w.pid,
      'lastBeatAt', w.beat_at, 'foundAt', statement_timestamp(),
      'rssBytes', w.rss_bytes, 'exit', coalesce(w.exit, substr(s.blocked, ${failedRun.length + 1}))))`;

/** Deliveries with the exits that are known by now. @param workers A table of `id` and `exit`. */
export function withExits(deliveries: string, workers: string): string {
  return `(
      select jsonb_agg(case when e.exit is null or l.delivery ->> 'exit' is not null then l.delivery
        else l.delivery || jsonb_build_object('exit', e.exit) end order by l.place)
      from jsonb_array_elements(${deliveries}) with ordinality l (delivery, place)
      left join ${workers} e on e.id = (l.delivery ->> 'workerId')::uuid)`;
}

export interface DeadLetterFilter {
  /** Absent: whatever became of them. */
  readonly status?: DeadLetterStatus | undefined;
  readonly workflowId?: string | undefined;
  readonly instanceId?: string | undefined;
}

/** The latest first. @throws BadCursorError */
export async function listDeadLetters(
  db: Db,
  tenantId: string,
  { status, workflowId, instanceId }: DeadLetterFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ readonly items: readonly DeadLetter[]; readonly nextCursor: string | null }> {
  const [beforeAt = "infinity", beforeId = lastId] =
    cursor === undefined ? [] : decodeCursor("dead-letters", cursor, 2);
  const rows = await readPage(cursor, () =>
    run<DeadLetterRow>(db, list, [
      tenantId,
      beforeAt,
      beforeId,
      limit + 1,
      status ?? null,
      workflowId ?? null,
      instanceId ?? null,
    ]),
  );
  const items = rows.slice(0, limit).map(deadLetterOf);
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  const nextCursor = last ? encodeCursor("dead-letters", [last.created, last.id]) : null;
  return { items, nextCursor };
}

const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

const list = prepared(
  "list_dead_letters",
  `select *, created_at::text as created from dead_letters
  where tenant_id = $1 and (created_at, id) < ($2::timestamptz, $3::uuid)
    and ($5::text is null or status = $5)
    and ($6::text is null or workflow_id = $6)
    and ($7::uuid is null or instance_id = $7)
  order by created_at desc, id desc
  limit $4`,
);

/** @param tenantId Absent: whosever it is. */
export async function readDeadLetter(
  db: Db,
  id: string,
  tenantId?: string,
): Promise<DeadLetter | undefined> {
  const rows = await run<DeadLetterRow>(db, read, [id, tenantId ?? null]);
  return rows.map(deadLetterOf)[0];
}

const read = prepared(
  "read_dead_letter",
  `select *, created_at::text as created from dead_letters
  where id = $1 and ($2::text is null or tenant_id = $2)`,
);

interface DeadLetterRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly instance_id: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly path: string;
  readonly iteration: number;
  readonly step_id: string;
  readonly task_id: string | null;
  readonly attempt: number;
  readonly error: string;
  readonly deliveries: readonly LapsedDelivery[];
  readonly status: DeadLetterStatus;
  readonly created_at: Date;
  readonly created: string;
  readonly resolved_at: Date | null;
  readonly resolved_by: string | null;
  readonly reason: string | null;
}

function deadLetterOf(row: DeadLetterRow): DeadLetter {
  return {
    tenantId: row.tenant_id,
    id: row.id,
    instanceId: row.instance_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    path: row.path,
    iteration: row.iteration,
    stepId: row.step_id,
    taskId: row.task_id,
    attempt: row.attempt,
    error: JSON.parse(row.error) as WorkflowError,
    deliveries: row.deliveries,
    status: row.status,
    createdAt: row.created_at,
    resolvedAt: row.resolved_at,
    resolvedBy: row.resolved_by,
    reason: row.reason,
  };
}
