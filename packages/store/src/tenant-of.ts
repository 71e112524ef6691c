import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";

/**
 * Whose an instance is. Ids are unique over all tenants, keys begin with the tenant: this hops from
 * tenant to tenant, so it is for those who may see all of them and do not say which.
 */
export async function tenantOf(db: Db, instanceId: string): Promise<string | undefined> {
  const [row] = await run<{ tenant_id: string }>(db, owner, [instanceId]);
  return row?.tenant_id;
}

/** Those that have instances. */
export async function tenantsOfInstances(db: Db): Promise<readonly string[]> {
  const rows = await run<{ tenant_id: string }>(db, everyTenant, []);
  return rows.map(({ tenant_id: tenantId }) => tenantId);
}

const tenants = `with recursive tenants as (
    (select tenant_id from workflow_instances order by tenant_id limit 1)
    union all
    select (select i.tenant_id from workflow_instances i where i.tenant_id > t.tenant_id
      order by i.tenant_id limit 1)
    from tenants t where t.tenant_id is not null)`;

const everyTenant = prepared(
  "tenants_of_instances",
  `${tenants} select t.tenant_id from tenants t where t.tenant_id is not null`,
);

const owner = prepared(
  "tenant_of",
  `${tenants}
  select t.tenant_id from tenants t
  where exists (
    select from workflow_instances i where i.tenant_id = t.tenant_id and i.id = $1::uuid)
  limit 1`,
);
