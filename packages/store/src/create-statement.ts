import type { Draft } from "./draft.ts";
import type { Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";
import {
  childWrites,
  commitSource,
  insertHistory,
  keyColumns,
  openParameters,
  own,
} from "./writes.ts";
import type { Owned, Statement } from "./writes.ts";

/**
 * The first commits of many instances as one statement: idempotency keys, then the instances whose key
 * was free, then their rows.
 *
 * `on conflict do nothing` waits for a transaction that is inserting the same key, and then knows; the
 * keys come in order, so that two batches wait for each other in one direction only. What was not
 * written is explained afterwards: the other transaction's row is not in this statement's snapshot.
 */
export function createStatement(drafts: readonly Draft[], shapesOf: Db | undefined): Statement {
  const parameters = openParameters();
  const commits = parameters.add(commitSource, own(drafts));
  const news = parameters.add(createSource, own(drafts));
  const keys = parameters.addRows(keySource, drafts, ({ commit }) =>
    commit.create?.idempotency === undefined ? [] : [commit.create.idempotency],
  );
  const { sections, remember } = childWrites(parameters, drafts, shapesOf);

  const text = `with ${keys ? `${insertKeys(keys("x"))},` : ""}
  created as (
    insert into workflow_instances (
      tenant_id, id, workflow_id, workflow_version, version, status, status_at, correlation_id,
      user_id, priority, deadline, start_event_id, metadata, input, variables, snapshot, output,
      error, cancellation, compensation, created_at, updated_at, started_at, completed_at)
    select x.tenant_id, x.instance_id, n.workflow_id, n.workflow_version, x.version + 1, x.status,
      x.at, n.correlation_id, n.user_id, x.priority, n.deadline, n.start_event_id, n.metadata,
      n.input, x.variables, x.snapshot, x.output, x.error, x.cancellation, x.compensation,
      n.created_at, x.at, x.started_at, x.completed_at
    from ${commits("x")}
    join ${news("n")} using (ix)
    ${keys ? "where not n.has_key or x.instance_id = any ((select array_agg(instance_id) from keyed)::uuid[])" : ""}
    order by x.tenant_id, x.instance_id
    on conflict do nothing
    returning id),
  go as materialized (
    select coalesce(array_agg(x.ix), '{}') as ixs from ${commits("x", keyColumns)}
    where x.instance_id = any ((select array_agg(id) from created)::uuid[])),
  ${[...sections, insertHistory(commits)].join(",\n  ")}
  select ixs as written from go`;

  return parameters.statement("create", text, remember);
}

function insertKeys(from: string): string {
  return `keyed as (
    insert into idempotency_keys (tenant_id, key, body_hash, instance_id)
    select x.tenant_id, x.key, x.body_hash, x.instance_id from ${from}
    order by x.tenant_id, x.key
    on conflict do nothing
    returning instance_id)`;
}

const createSource = rowSource<Owned<undefined>>({
  ix: { type: "integer", of: ({ ix }) => ix },
  workflow_id: { type: "text", of: ({ draft }) => draft.next.workflowId },
  workflow_version: { type: "integer", of: ({ draft }) => draft.next.workflowVersion },
  correlation_id: { type: "text", of: ({ draft }) => draft.next.correlationId },
  user_id: { type: "text", of: ({ draft }) => draft.next.userId },
  deadline: { type: "timestamptz", of: ({ draft }) => draft.commit.create?.deadline },
  start_event_id: { type: "text", of: ({ draft }) => draft.next.startEventId },
  metadata: { type: "json", of: ({ draft }) => draft.texts.metadata },
  input: { type: "json", of: ({ draft }) => draft.texts.input },
  created_at: { type: "timestamptz", of: ({ draft }) => draft.next.createdAt },
  has_key: { type: "boolean", of: ({ draft }) => draft.commit.create?.idempotency !== undefined },
});

const keySource = rowSource<Owned<{ readonly key: string; readonly bodyHash: string }>>({
  tenant_id: { type: "text", of: ({ draft }) => draft.tenantId },
  instance_id: { type: "uuid", of: ({ draft }) => draft.instanceId },
  key: { type: "text", of: ({ row }) => row.key },
  body_hash: { type: "text", of: ({ row }) => row.bodyHash },
});
