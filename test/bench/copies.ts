import type { Pool, PoolClient } from "pg";

/** Adds copies of a waiting instance, by SQL, each waiting for a key that no event has. */
export async function copyWaiting(pool: Pool, instanceId: string, count: number): Promise<void> {
  await copyInstance(pool, instanceId, count, {
    ...instanceTables,
    waits: { id: "instance_id", change: { key_hash: "(random() * 9e18)::bigint" } },
  });
}

/** Adds copies of an instance that has ended, by SQL, with its steps and its history. */
export async function copyEnded(pool: Pool, instanceId: string, count: number): Promise<void> {
  await copyInstance(pool, instanceId, count, {
    ...instanceTables,
    history: { id: "instance_id", change: {} },
  });
}

interface TableCopy {
  readonly id: string;
  /** Columns that differ from the model's, as expressions. */
  readonly change: Readonly<Record<string, string>>;
}

const instanceTables: Readonly<Record<string, TableCopy>> = {
  workflow_instances: { id: "id", change: {} },
  step_executions: { id: "instance_id", change: {} },
};

/** Copies are older than the model, and their ids are in the order of their times, as they would be. */
async function copyInstance(
  pool: Pool,
  instanceId: string,
  count: number,
  tables: Readonly<Record<string, TableCopy>>,
): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query(
      `create temporary table copies on commit drop as
       select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 1000 * n), 12, '0')
         || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid as id
       from generate_series(1, ${count}) n`,
    );
    for (const [table, copy] of Object.entries(tables)) {
      await copyRows(client, table, instanceId, copy);
    }
    await client.query("commit");
    // What autovacuum would do within a minute.
    for (const table of Object.keys(tables)) await client.query(`vacuum analyze ${table}`);
  } finally {
    client.release();
  }
}

async function copyRows(
  client: PoolClient,
  table: string,
  instanceId: string,
  { id, change }: TableCopy,
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select column_name as name from information_schema.columns
     where table_name = $1 and table_schema = current_schema() and is_identity = 'NO'`,
    [table],
  );
  const names = rows.map(({ name }) => name);
  const valueOf = (name: string) => (name === id ? "copies.id" : (change[name] ?? `model.${name}`));
  await client.query(
    `insert into ${table} (${names.join(", ")}) select ${names.map(valueOf).join(", ")}
     from ${table} model cross join copies where model.${id} = $1`,
    [instanceId],
  );
}
