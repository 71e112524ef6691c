import type { Pool, PoolClient } from "pg";

/** Adds copies of a waiting instance, by SQL, each waiting for a key that no event has. */
export async function copyWaiting(pool: Pool, instanceId: string, count: number): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query(
      `create temporary table copies on commit drop as
       select gen_random_uuid() as id from generate_series(1, ${count})`,
    );
    await copyRows(client, "workflow_instances", "id", instanceId, "");
    await copyRows(client, "step_executions", "instance_id", instanceId, "");
    const key = ", 'key_hash', (random() * 9e18)::bigint";
    await copyRows(client, "waits", "instance_id", instanceId, key);
    await client.query("commit");
    // What autovacuum would do within a minute.
    await client.query("analyze workflow_instances, step_executions, waits");
  } finally {
    client.release();
  }
}

async function copyRows(
  client: PoolClient,
  table: string,
  idColumn: string,
  instanceId: string,
  more: string,
): Promise<void> {
  await client.query(
    `insert into ${table}
     select (jsonb_populate_record(model, jsonb_build_object('${idColumn}', copies.id${more}))).*
     from ${table} model cross join copies where model.${idColumn} = $1`,
    [instanceId],
  );
}
