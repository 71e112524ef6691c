import type { ParentLink } from "@millrace/engine";
import { latestVersionOf } from "../definitions.ts";
import { givenHash } from "../given.ts";
import { jsonText } from "../json.ts";
import type { Db } from "../statement.ts";
import { rowSource } from "../unnest.ts";
import { childSignalWrites } from "./child-signal-writes.ts";
import { childWrites } from "./child-writes.ts";
import { commitSource, insertHistory, keyColumns } from "./commit-row.ts";
import type { Draft } from "./draft.ts";
import { isWritten, openParameters, ownedSource } from "./parameters.ts";
import { slotWrites } from "./slot-writes.ts";
import type { From, Owned, Statement } from "./parameters.ts";

/**
 * The first commits of many instances as one statement: idempotency keys, then the instances whose key
 * was free, then their rows.
 *
 * `on conflict do nothing` waits for a transaction that is inserting the same key, and then knows; the
 * keys come in order, so that two batches wait for each other in one direction only. What was not
 * written is explained afterwards: the other transaction's row is not in this statement's snapshot.
 *
 * A child is created only together with its row of `children`, which says that it is to be: of several
 * who try, one finds the row.
 */
export function createStatement(drafts: readonly Draft[], shapesOf: Db | undefined): Statement {
  const parameters = openParameters(drafts);
  const commits = parameters.add(commitSource);
  const news = parameters.add(createSource);
  const assumed = parameters.addRows(assumedSource, ({ commit }) =>
    commit.create?.ifLatest === true ? [undefined] : [],
  );
  const isCurrent = assumed ? "x.ix <> all ((select ixs from outdated)::integer[])" : "true";
  const keys = parameters.addRows(keySource, ({ commit }) =>
    commit.create?.idempotency === undefined ? [] : [commit.create.idempotency],
  );
  const begins = parameters.addRows(begunSource, ({ next }) =>
    next.parent === null ? [] : [next.parent],
  );
  const { sections, remember } = childWrites(parameters, drafts, shapesOf);
  const signals = childSignalWrites(parameters);
  const slots = slotWrites(parameters);

  const write = () => `with ${assumed ? `${findOutdated(assumed)},` : ""}
  ${keys ? `${insertKeys(keys("x"), isCurrent)},` : ""}
  ${begins ? `${lockBegun(begins)},` : ""}
  created as (
    insert into workflow_instances (
      tenant_id, id, workflow_id, workflow_version, version, status, status_at, correlation_id,
      user_id, priority, deadline, start_event_id, metadata, input, variables, snapshot, output,
      error, cancellation, compensation, created_at, updated_at, started_at, completed_at, given
      ${begins ? ", parent" : ""})
    select x.tenant_id, x.instance_id, n.workflow_id, n.workflow_version, x.version + 1, x.status,
      x.at, n.correlation_id, n.user_id, x.priority, n.deadline, n.start_event_id, n.metadata,
      n.input, x.variables, x.snapshot, x.output, x.error, x.cancellation, x.compensation,
      n.created_at, x.at, x.started_at, x.completed_at,
      ${givenHash("n", begins ? "b.ix is not null" : "false")}
      ${begins ? ", b.link" : ""}
    from ${commits("x")}
    join ${news("n")} using (ix)
    ${begins ? `left join ${begins("b")} using (ix)` : ""}
    where ${isCurrent} ${begins ? `and (b.ix is null or ${isBegun})` : ""}
    ${keys ? "and (not n.has_key or x.instance_id = any ((select array_agg(instance_id) from keyed)::uuid[]))" : ""}
    order by x.tenant_id, x.instance_id
    on conflict do nothing
    returning id),
  go as materialized (
    select coalesce(array_agg(x.ix), '{}') as ixs from ${commits("x", keyColumns)}
    where x.instance_id = any ((select array_agg(id) from created)::uuid[])),
  ${begins ? `${markBegun(begins)},` : ""}
  ${[...sections(), ...signals(), ...slots(), insertHistory(commits)].join(",\n  ")}
  select ixs as written from go`;

  return parameters.statement("create", write, remember);
}

/** The search is that of `latestVersion` (definitions.ts). */
function findOutdated(from: From): string {
  return `outdated as materialized (
    select coalesce(array_agg(x.ix), '{}') as ixs from ${from("x")}
    where x.workflow_version is distinct from (${latestVersionOf(from.tenantId, "x.workflow_id")}))`;
}

const assumedSource = rowSource<Owned<undefined>>({
  ix: { type: "integer", of: ({ ix }) => ix },
  workflow_id: { type: "text", of: ({ draft }) => draft.next.workflowId },
  workflow_version: { type: "integer", of: ({ draft }) => draft.next.workflowVersion },
});

function insertKeys(from: string, isCurrent: string): string {
  return `keyed as (
    insert into idempotency_keys (tenant_id, key, body_hash, instance_id)
    select x.tenant_id, x.key, x.body_hash, x.instance_id from ${from}
    where ${isCurrent}
    order by x.tenant_id, x.key
    on conflict do nothing
    returning instance_id)`;
}

const isBegun = "x.ix = any ((select array_agg(ix) from begun)::integer[])";

/** In order, and skipping what others have: they are creating the same child. */
function lockBegun(from: From): string {
  return `begun as materialized (
    select x.ix from ${from("x")}
    join children k on ${sameChild(from)}
    where k.started_at is null
    order by k.tenant_id, k.instance_id, k.path, k.iteration, k.attempt
    for update of k skip locked)`;
}

function markBegun(from: From): string {
  return `marked as (
    update children k set started_at = statement_timestamp() from ${from("x")}
    where ${isWritten} and ${sameChild(from)})`;
}

function sameChild({ tenantId, instanceId }: From): string {
  return `k.tenant_id = ${tenantId} and k.instance_id = x.parent_id and k.path = x.path
      and k.iteration = x.iteration and k.attempt = x.attempt and k.child_id = ${instanceId}`;
}

const begunSource = ownedSource<ParentLink>({
  parent_id: { type: "uuid", of: ({ instanceId }) => instanceId },
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  link: { type: "json", of: (parent) => jsonText(parent) },
});

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
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ draft }) => draft.tenantId },
  instance_id: { type: "uuid", of: ({ draft }) => draft.instanceId },
  key: { type: "text", of: ({ row }) => row.key },
  body_hash: { type: "text", of: ({ row }) => row.bodyHash },
});
