import type { StartListener } from "@millrace/engine";
import type { StoredEvent } from "./events.ts";
import { keyHashOf } from "./json.ts";
import { isLifecycle } from "./lifecycle-pattern.ts";
import { prepared, run, type Db } from "./statement.ts";
import { sharedTenant } from "./tenants.ts";
import { rowSource } from "./unnest.ts";
import type { WaitProbe } from "./waits.ts";

/**
 * What events start instances. The triggers of a definition's latest version are rows, replaced in the
 * transaction that registers the next one, and found as waits are: by pattern and key.
 */

interface DefinitionKey {
  readonly tenantId: string;
  readonly workflowId: string;
  readonly version: number;
}

/** The triggers of the version before stop with this transaction, and those of this one begin. */
export async function replaceStartTriggers(
  trx: Db,
  { tenantId, workflowId, version }: DefinitionKey,
  listeners: readonly StartListener[],
): Promise<void> {
  const before = await run<{ pattern: string; since: string }>(trx, forget, [tenantId, workflowId]);
  const since = new Map(before.map((row) => [row.pattern, row.since]));
  const rows = listeners.flatMap((listener) => rowsOf(listener, since.get(listener.pattern)));
  if (rows.length === 0) return;
  await run(trx, listen, [tenantId, workflowId, version, ...triggerSource.values(rows)]);
}

interface TriggerRow {
  readonly trigger: number;
  readonly pattern: string;
  readonly eventPaths: string;
  readonly keyHash: string;
  /** Since when the definition has listened to the pattern; undefined: from now on. */
  readonly since: string | undefined;
}

/** None for one that no event can match. */
function rowsOf(
  { trigger, pattern, eventPaths, key }: StartListener,
  since: string | undefined,
): readonly TriggerRow[] {
  const keyHash = key === "NEVER" ? null : keyHashOf(key);
  if (keyHash === null) return [];
  return [{ trigger, pattern, eventPaths: eventPaths.join(" "), keyHash, since }];
}

const forget = prepared(
  "forget_start_triggers",
  `delete from start_triggers where tenant_id = $1 and workflow_id = $2
  returning pattern, since::text`,
);

const triggerSource = rowSource<TriggerRow>({
  trigger: { type: "integer", of: ({ trigger }) => trigger },
  pattern: { type: "text", of: ({ pattern }) => pattern },
  event_paths: { type: "text", of: ({ eventPaths }) => eventPaths },
  key_hash: { type: "bigint", of: ({ keyHash }) => keyHash },
  since: { type: "timestamptz", of: ({ since }) => since },
});

/** Shapes in one order: they are what definitions that are registered together have in common. */
const listen = prepared(
  "insert_start_triggers",
  `with shaped as (
    insert into start_shapes (tenant_id, pattern, event_paths)
    select distinct $1, x.pattern, x.event_paths from ${triggerSource.from("x", 4)}
    order by x.pattern, x.event_paths
    on conflict do nothing)
  insert into start_triggers (
    tenant_id, workflow_id, version, trigger, pattern, event_paths, key_hash, since)
  select $1, $2, $3::integer, x.trigger, x.pattern, x.event_paths, x.key_hash,
    coalesce(x.since, statement_timestamp())
  from ${triggerSource.from("x", 4)}`,
);

/** A start trigger that an event may match: its whole condition is still to be evaluated. */
export interface StartCandidate {
  readonly workflowId: string;
  readonly version: number;
  /** Its place among the definition's start triggers, from 0. */
  readonly trigger: number;
}

export interface StartSearch {
  readonly event: StoredEvent;
  readonly probes: readonly WaitProbe[];
  /** The last one of the page before. */
  readonly after?: StartCandidate | undefined;
  readonly limit: number;
}

/**
 * Triggers of the latest versions of what serves the event's tenant: its own definitions, and the
 * shared ones that it has not replaced by one of its own (docs/decisions/0007-shared-definitions.md).
 *
 * Plan: for each tenant and probe one descent of `start_triggers_listening`.
 */
export async function findStartTriggers(
  db: Db,
  { event, probes, after, limit }: StartSearch,
): Promise<readonly StartCandidate[]> {
  if (probes.length === 0) return [];
  const rows = await run<{ workflow_id: string; version: number; trigger: number }>(db, find, [
    event.tenantId,
    after?.workflowId ?? "",
    after?.trigger ?? -1,
    limit,
    event.id,
    ...probeSource.values(probes),
  ]);
  return rows.map(({ workflow_id: workflowId, version, trigger }) => ({
    workflowId,
    version,
    trigger,
  }));
}

const probeSource = rowSource<WaitProbe>({
  pattern: { type: "text", of: ({ pattern }) => pattern },
  event_paths: { type: "text", of: ({ eventPaths }) => eventPaths },
  key_hash: { type: "bigint", of: ({ keyHash }) => keyHash },
});

/**
 * An older process may have registered a version without knowing of triggers: the version decides. Lifecycle
 * events come some time after what they tell of: who has listened since then hears nothing of it.
 */
const find = prepared(
  "find_start_triggers",
  `select t.workflow_id, t.version, t.trigger
  from (select distinct unnest(array[$1::text, '${sharedTenant}']) as tenant_id) o
  cross join (
    select (
      select received_at from events e
      where e.tenant_id = $1 and e.id = $5 and ${isLifecycle("e.pattern")}) as told_at) l
  cross join ${probeSource.from("k", 6)}
  cross join lateral (
    select * from start_triggers t
    where t.tenant_id = o.tenant_id and t.pattern = k.pattern and t.event_paths = k.event_paths
      and t.key_hash = k.key_hash and (t.workflow_id, t.trigger) > ($2::text, $3::integer)
      and (l.told_at is null or t.since <= l.told_at)
      and not exists (
        select from workflow_definitions d
        where d.tenant_id = t.tenant_id and d.id = t.workflow_id and d.version > t.version)
      and (t.tenant_id = $1 or not exists (
        select from workflow_definitions d where d.tenant_id = $1 and d.id = t.workflow_id))
    order by t.workflow_id, t.trigger
    limit $4) t
  order by t.workflow_id, t.trigger
  limit $4`,
);
