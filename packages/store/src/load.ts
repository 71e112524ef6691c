import type { Snapshot } from "@millrace/engine";
import type { Key } from "./commit.ts";
import { instanceColumns, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { overRows, prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** Snapshots, from which decisions are made. */

export async function loadInstance(db: Db, key: Key): Promise<Snapshot | undefined> {
  const rows = await run<InstanceRow>(db, oneInstance, [key.tenantId, key.instanceId]);
  return rows[0] && snapshotOf(rows[0]);
}

const oneInstance = prepared(
  "load_instance",
  `select ${instanceColumns} from workflow_instances i where i.tenant_id = $1 and i.id = $2`,
);

/** By `keyName`; what does not exist is not in it. */
export async function loadInstances(
  db: Db,
  keys: readonly Key[],
): Promise<ReadonlyMap<string, Snapshot>> {
  const rows = await run<InstanceRow>(db, ...manyInstances(keys));
  return new Map(
    rows.map((row) => [
      keyName({ tenantId: row.i_tenant_id, instanceId: row.i_id }),
      snapshotOf(row),
    ]),
  );
}

export function keyName({ tenantId, instanceId }: Key): string {
  return `${tenantId}/${instanceId}`;
}

export const keySource = rowSource<Key>({
  tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  instance_id: { type: "uuid", of: ({ instanceId }) => instanceId },
});

const manyInstances = overRows(
  "load_instances",
  keySource,
  (from) => `select ${instanceColumns} from ${from("x")}
  join workflow_instances i on i.tenant_id = x.tenant_id and i.id = x.instance_id`,
);

/** The instance as it is once nobody else can change it. */
export async function loadInstanceForUpdate(db: Db, key: Key): Promise<Snapshot | undefined> {
  const rows = await run<InstanceRow>(db, lockedInstance, [key.tenantId, key.instanceId]);
  return rows[0] && snapshotOf(rows[0]);
}

const lockedInstance = prepared(
  "lock_instance",
  `select ${instanceColumns} from workflow_instances i
  where i.tenant_id = $1 and i.id = $2 for update`,
);
