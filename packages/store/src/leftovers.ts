import { contentHashOf } from "./content-hash.ts";
import type { DefinitionDocument } from "./definitions.ts";
import { planned, run, type Db } from "./statement.ts";
import { sharedTenant } from "./tenants.ts";

/**
 * Damage that no instance tells of, since there is none that has it: rows that belong to instances which
 * are not stored, and definition versions that are not as they were registered. Each question reads whole
 * tables: it is for an operator who asks, not for a loop.
 */

/** Of one table. */
export interface Leftover {
  readonly table: string;
  readonly rows: number;
  /** One of the instances that they are of. */
  readonly instanceId: string;
}

/**
 * What belongs to an instance and goes with it (retention.ts). `event_releases` are left out: their events
 * are for others. What a child is told may come before the child.
 */
const tables: Readonly<Record<string, string>> = {
  step_executions: "true",
  history: "true",
  waits: "true",
  timers: "true",
  event_deliveries: "true",
  children: "true",
  child_signals: `not exists (select from children c
      where c.tenant_id = t.tenant_id and c.child_id = t.instance_id)`,
  dead_letters: "true",
  limit_slots: "true",
};

const isLeft = (condition: string) => `not exists (select from workflow_instances i
      where i.tenant_id = t.tenant_id and i.id = t.instance_id) and ${condition}`;

/** Rows of instances that are not stored. */
export async function findLeftovers(db: Db): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  for (const [table, condition] of Object.entries(tables)) {
    const text = `select count(*)::integer as rows, min(t.instance_id::text) as instance_id
      from ${table} t where ${isLeft(condition)}`;
    const [row] = await readAtLeisure<{ rows: number; instance_id: string }>(db, text);
    if (row !== undefined && row.rows > 0) {
      found.push({ table, rows: row.rows, instanceId: row.instance_id });
    }
  }
  return found;
}

const deletedAtOnce = 10_000;

/**
 * Deletes them, each by a statement that looks again whether it is still so. An instance is created with
 * all its rows in one statement, so that none is taken for left over that is only early.
 */
export async function deleteLeftovers(db: Db): Promise<readonly Leftover[]> {
  const found = await findLeftovers(db);
  for (const { table } of found) {
    const text = `delete from ${table} where ctid = any (array(
      select t.ctid from ${table} t where ${isLeft(tables[table] ?? "false")}
      limit ${deletedAtOnce} for update skip locked)) returning true as ok`;
    for (let deleted = deletedAtOnce; deleted === deletedAtOnce;) {
      deleted = (await readAtLeisure(db, text)).length;
    }
  }
  return found;
}

/** A definition version that instances or registrations rely on. */
export interface FaultyDefinition {
  readonly id: string;
  readonly version: number;
  /** Of instances that have not settled. */
  readonly instances: number;
  readonly fault: "MISSING" | "EDITED";
}

/** Versions that live instances need and that are not stored, and those with another document than was registered. */
export async function findFaultyDefinitions(db: Db): Promise<readonly FaultyDefinition[]> {
  const missing = await readAtLeisure<Omit<FaultyDefinition, "fault">>(
    db,
    `select i.workflow_id as id, i.workflow_version as version, count(*)::integer as instances
    from workflow_instances i
    where i.completed_at is null and not exists (select from workflow_definitions d
      where d.tenant_id in (i.tenant_id, '${sharedTenant}') and d.id = i.workflow_id
        and d.version = i.workflow_version)
    group by 1, 2 order by 1, 2`,
  );
  const edited: FaultyDefinition[] = [];
  for (let after: VersionRow | undefined, more = true; more;) {
    const rows: readonly VersionRow[] = await versionsAfter(db, after);
    for (const row of rows) {
      const { id, version, content_hash: hash, document } = row;
      const isSound = contentHashOf(JSON.parse(document) as DefinitionDocument) === hash;
      if (isSound) continue;
      edited.push({ id, version, instances: await countLive(db, row), fault: "EDITED" });
    }
    after = rows.at(-1);
    more = after !== undefined;
  }
  return [...missing.map((row) => ({ ...row, fault: "MISSING" as const })), ...edited];
}

interface VersionRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly version: number;
  readonly content_hash: string;
  readonly document: string;
}

function versionsAfter(db: Db, after: VersionRow | undefined): Promise<readonly VersionRow[]> {
  const text = `select d.tenant_id, d.id, d.version, d.content_hash, d.document
    from workflow_definitions d
    where (d.tenant_id, d.id, d.version) > ($1, $2, $3::integer)
    order by d.tenant_id, d.id, d.version
    limit 100`;
  return readAtLeisure(db, text, [after?.tenant_id ?? "", after?.id ?? "", after?.version ?? 0]);
}

/** Live instances that go by a version: also those of tenants that have none of their own under that id. */
async function countLive(db: Db, { tenant_id, id, version }: VersionRow): Promise<number> {
  const [row] = await readAtLeisure<{ count: number }>(
    db,
    `select count(*)::integer as count from workflow_instances i
    where i.workflow_id = $2 and i.workflow_version = $3::integer and i.completed_at is null
      and $1 = coalesce((select d.tenant_id from workflow_definitions d
        where d.tenant_id = i.tenant_id and d.id = i.workflow_id
          and d.version = i.workflow_version), '${sharedTenant}')`,
    [tenant_id, id, version],
  );
  return row?.count ?? 0;
}

/** Keys by which starts are repeatable whose instances are gone: a repeat is told that there is none any more. */
export async function countKeysWithoutInstance(db: Db): Promise<number> {
  const [row] = await readAtLeisure<{ count: number }>(
    db,
    `select count(*)::integer as count from idempotency_keys k
    where not exists (select from workflow_instances i
      where i.tenant_id = k.tenant_id and i.id = k.instance_id)`,
  );
  return row?.count ?? 0;
}

/** Without a time limit, and by a plan for the tables as they are. */
function readAtLeisure<Row>(
  db: Db,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return planned(db, async (trx) => {
    await run(trx, "set local statement_timeout = 0", []);
    return run<Row>(trx, text, values);
  });
}
