import { lapseOf, withExits } from "../dead-letters.ts";
import { jsonText } from "../json.ts";
import type { Draft } from "./draft.ts";
import { isWritten, ownedSource, placeColumns, samePlace } from "./parameters.ts";
import type { From } from "./parameters.ts";

const lapses = `coalesce(s.lapse_log, '[]') || ${lapseOf}`;

/** With what is known of the workers: of those before from the row, of the last one from its beat. */
export function insertDeadLetters(from: From): string {
  return `lettered as (
    insert into dead_letters (tenant_id, instance_id, workflow_id, workflow_version, path, iteration,
      step_id, task_id, attempt, error, deliveries, status, created_at)
    select s.tenant_id, s.instance_id, x.workflow_id, x.workflow_version, s.path, s.iteration,
      s.step_id, s.task_id, x.attempt, x.error, ${withExits(lapses, "workers")}, 'OPEN', x.at
    from ${from("x")}
    join step_executions s on ${samePlace("s", from)}
    left join workers w on w.id = s.worker_id
    where ${isWritten})`;
}

export const deadLetters = ownedSource<Letter>({
  ...placeColumns,
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  error: { type: "json", of: ({ error }) => jsonText(error) },
  workflow_id: { type: "text", of: ({ workflowId }) => workflowId },
  workflow_version: { type: "integer", of: ({ workflowVersion }) => workflowVersion },
  at: { type: "timestamptz", of: ({ at }) => at },
});

type Letter = NonNullable<Draft["opensLetter"]> & {
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly at: Date;
};

export function letterOf({ opensLetter, next, at }: Draft): readonly Letter[] {
  const { workflowId, workflowVersion } = next;
  return opensLetter === undefined ? [] : [{ ...opensLetter, workflowId, workflowVersion, at }];
}

export function resolveDeadLetters(from: From): string {
  return `resolved as (
    update dead_letters d
    set status = x.outcome, resolved_at = x.at, resolved_by = x.actor, reason = x.reason
    from ${from("x")}
    where ${isWritten} and d.tenant_id = ${from.tenantId} and d.instance_id = ${from.instanceId}
      and d.status = 'OPEN')`;
}

export const resolutions = ownedSource<Resolution>({
  outcome: { type: "text", of: ({ outcome }) => outcome },
  actor: { type: "text", of: ({ actor }) => actor },
  reason: { type: "text", of: ({ reason }) => reason },
  at: { type: "timestamptz", of: ({ at }) => at },
});

type Resolution = NonNullable<Draft["resolvesLetter"]> & { readonly at: Date };

export function resolutionOf({ resolvesLetter, at }: Draft): readonly Resolution[] {
  return resolvesLetter === undefined ? [] : [{ ...resolvesLetter, at }];
}
