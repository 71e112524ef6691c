import type { Key } from "./commit.ts";
import { ownSet } from "./limit-key.ts";
import { jsonText, parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";

/** What an instance has beside its snapshot, and an operator may change. */
export interface ColumnPatch {
  /** Undefined: as it was. */
  readonly deadline: Date | null | undefined;
  /** What is made of the metadata; undefined: as they were. */
  readonly metadata: ((current: Json) => Json) | undefined;
}

/** Within the transaction that has the instance's row. */
export async function patchColumns(
  db: Db,
  { tenantId, instanceId }: Key,
  { deadline, metadata }: ColumnPatch,
): Promise<void> {
  if (deadline === undefined && metadata === undefined) return;
  const rows = await run<{ metadata: string | null }>(db, read, [tenantId, instanceId]);
  const current = parseJson(rows[0]?.metadata ?? null) ?? null;
  await run(db, write, [
    tenantId,
    instanceId,
    deadline !== undefined,
    deadline ?? null,
    metadata !== undefined,
    metadata === undefined ? null : jsonText(metadata(current)),
  ]);
  if (deadline !== undefined) await run(db, writeSlot, [tenantId, instanceId, deadline]);
}

const read = prepared(
  "read_metadata",
  "select metadata::text as metadata from workflow_instances where tenant_id = $1 and id = $2",
);

const write = prepared(
  "patch_columns",
  `update workflow_instances
  set deadline = case when $3::boolean then $4::timestamptz else deadline end,
    metadata = case when $5::boolean then $6::json else metadata end
  where tenant_id = $1 and id = $2`,
);

/** By which it waits for a slot under its limits, where it does. */
const writeSlot = prepared(
  "patch_slot",
  `update limit_slots l set deadline = $3
  from workflow_instances i
  where i.tenant_id = $1 and i.id = $2 and l.tenant_id = i.tenant_id
    and l.limit_key = ${ownSet("i")} and l.instance_id = i.id`,
);
