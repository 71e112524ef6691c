import { encodeFrontier, isSettled, isTerminal } from "@millrace/engine";
import type { ChildEnd, Snapshot } from "@millrace/engine";
import { commitStatement } from "./commit/commit-statement.ts";
import type { Commit, Key, Written } from "./commit.ts";
import { dueColumns, dueStepOf } from "./due-step.ts";
import type { DueRow, DueStep } from "./due-step.ts";
import { draftOf } from "./commit/draft.ts";
import { nobody } from "./due.ts";
import { instanceColumns, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { jsonText } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** What mends damage that commits do not know of: each is one guarded statement, or one transaction. */

/**
 * Puts the instance's row back to what `commit.previous` says, and commits on top of it, in one
 * transaction: the audit says so from the same moment.
 *
 * @param storedVersion Of the damaged row.
 * @returns False where somebody has committed meanwhile: nothing was written.
 */
export async function rebuildInstance(
  db: Db,
  storedVersion: number,
  commit: Commit,
): Promise<boolean> {
  const { previous } = commit;
  return db.transaction().execute(async (trx) => {
    const rebuilt = await run<{ version: number }>(trx, rebuild, [
      previous.tenantId,
      previous.id,
      storedVersion,
      ...columnsOf(previous),
    ]);
    if (rebuilt.length === 0) return false;
    const { text, values } = commitStatement([draftOf(commit)], "wait", undefined);
    const [answer] = await run<Written>(trx, text, values);
    if (answer?.written.length !== 1) throw new Error(`instance ${previous.id}: not rebuilt`);
    return true;
  });
}

const rebuild = prepared(
  "rebuild_instance",
  `update workflow_instances
  set version = $4, status = $5, priority = $6, variables = $7, snapshot = $8, output = $9,
    error = $10, cancellation = $11, compensation = $12, started_at = $13, completed_at = $14
  where tenant_id = $1 and id = $2 and version = $3
  returning version`,
);

function columnsOf(snapshot: Snapshot): readonly unknown[] {
  const { version, status, priority, variables, startedAt, completedAt } = snapshot;
  const { output, error, cancellation, compensation } = snapshot;
  const values = [output, error, cancellation, compensation];
  return [
    version,
    status,
    priority,
    jsonText(variables),
    jsonText(encodeFrontier(snapshot)),
    ...values.map((value) => (value === null ? null : jsonText(value))),
    startedAt,
    completedAt,
  ];
}

/** Has steps looked for at once. @returns Those that a worker may take now, for a job each. */
export async function lookForSteps(
  db: Db,
  { tenantId, instanceId }: Key,
  places: readonly { readonly path: string; readonly iteration: number }[],
): Promise<readonly DueStep[]> {
  if (places.length === 0) return [];
  const values = [tenantId, instanceId, ...placeSource.values(places)];
  const rows = await run<DueRow & { readonly is_due: boolean }>(db, lookFor, values);
  return rows.filter(({ is_due }) => is_due).map(dueStepOf);
}

const placeSource = rowSource<{ readonly path: string; readonly iteration: number }>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

const lookFor = prepared(
  "look_for_steps",
  `update step_executions s
  set look_at = greatest(s.retry_at, statement_timestamp()), looks = 0
  from ${placeSource.from("x", 3)}
  where s.tenant_id = $1 and s.instance_id = $2 and s.path = x.path and s.iteration = x.iteration
    and s.status in ('PENDING', 'RETRYING') and s.queue is not null and not s.held
  returning ${dueColumns}, s.look_at <= statement_timestamp() as is_due`,
);

/** A step as it was seen, and whose it was then. */
export interface SeenStep extends Key {
  readonly path: string;
  readonly iteration: number;
  readonly fence: number;
  readonly workerId: string | null;
}

/**
 * Gives a RUNNING step to a worker that does not exist, where its own is silent still: whoever looks
 * for lapsed holders hands it on.
 */
export async function releaseLostStep(db: Db, step: SeenStep, silentMs: number): Promise<boolean> {
  const { tenantId, instanceId, path, iteration, fence, workerId } = step;
  const values = [tenantId, instanceId, path, iteration, fence, workerId, silentMs];
  return (await run(db, release, values)).length > 0;
}

const release = prepared(
  "release_lost_step",
  `update step_executions s set worker_id = '${nobody}'
  where s.tenant_id = $1 and s.instance_id = $2 and s.path = $3 and s.iteration = $4
    and s.fence = $5 and s.worker_id is not distinct from $6::uuid
    and s.status = 'RUNNING' and not s.awaited
    and not exists (select from workers w where w.id = s.worker_id
      and w.beat_at > clock_timestamp() - $7::bigint * interval '1 ms')
  returning true as ok`,
);

/**
 * Leaves word of a child's end for its parent, as the child's own commit should have.
 *
 * @returns False where the child has not settled, or word is there.
 */
export async function reportChildEnd(db: Db, tenantId: string, childId: string): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const [row] = await run<InstanceRow>(trx, child, [tenantId, childId]);
    const snapshot = row && snapshotOf(row);
    if (snapshot === undefined || !isSettled(snapshot)) return false;
    const { parent, status, version, error, cancellation } = snapshot;
    if (parent === null || !isTerminal(status)) return false;
    const steps = await run(trx, subWorkflow, [tenantId, childId, error?.stepId ?? ""]);
    const body: Omit<ChildEnd, "output"> = {
      status,
      error,
      reason: cancellation?.reason ?? null,
      ...(error !== null && steps.length === 0 && { isOwn: true }),
    };
    const { instanceId, path, iteration, attempt } = parent;
    const values = [
      tenantId,
      instanceId,
      childId,
      version,
      path,
      iteration,
      attempt,
      jsonText(body),
    ];
    return (await run(trx, report, values)).length > 0;
  });
}

const child = prepared(
  "settled_child",
  `select ${instanceColumns} from workflow_instances i
  where i.tenant_id = $1 and i.id = $2 for share`,
);

const subWorkflow = prepared(
  "sub_workflow_step",
  `select from step_executions s
  where s.tenant_id = $1 and s.instance_id = $2 and s.step_id = $3 and s.type = 'SUB_WORKFLOW'
  limit 1`,
);

const report = prepared(
  "report_child_end",
  `insert into child_signals (
    tenant_id, instance_id, kind, child_id, sent_version, path, iteration, attempt, body, sent_at,
    look_at)
  select $1, $2::uuid, 'END', $3::uuid, $4, $5, $6, $7, $8::json, statement_timestamp(),
    statement_timestamp()
  where not exists (select from child_signals k where k.tenant_id = $1
    and k.instance_id = $2::uuid and k.kind = 'END' and k.child_id = $3::uuid)
  on conflict do nothing
  returning true as ok`,
);
