import type { Key } from "./commit.ts";
import { planned, run, type Db } from "./statement.ts";

/**
 * One instance of each status that there is of a tenant chosen by chance, from a moment chosen by
 * chance: those that go on are seen as often as the many that have ended. Each is one descent of the
 * index by status.
 */
export async function sampleInstances(db: Db): Promise<readonly Key[]> {
  const rows = await planned(db, (trx) => run<{ tenant_id: string; id: string }>(trx, sample, []));
  return rows.map(({ tenant_id, id }) => ({ tenantId: tenant_id, instanceId: id }));
}

const sample = `with tenant as materialized (
    select tenant_id from (select distinct tenant_id from workflow_definitions) all_of_them
    order by random()
    limit 1),
  spans as materialized (
    select t.tenant_id, s.status,
      (select min(status_at) from workflow_instances
        where tenant_id = t.tenant_id and status = s.status) as first,
      (select max(status_at) from workflow_instances
        where tenant_id = t.tenant_id and status = s.status) as last
    from tenant t, unnest(array['CREATED', 'RUNNING', 'WAITING_FOR_EVENT', 'PAUSED', 'COMPLETED',
      'FAILED', 'CANCELLED']) as s (status)),
  moments as materialized (
    select tenant_id, status, first + random() * (last - first) as moment from spans
    where first is not null)
  select i.tenant_id, i.id from moments m
  cross join lateral (
    select tenant_id, id from workflow_instances
    where tenant_id = m.tenant_id and status = m.status and status_at >= m.moment
    order by status_at
    limit 1) i
  order by random()`;
