import type { Servers } from "./servers.ts";

/** The statements of a database on which Postgres has spent most of its time. */
export async function printStatements({ admin }: Servers, database: string): Promise<void> {
  const { rows } = await admin.query<{ line: string }>(
    `select format('%8s ms %7s calls %7s µs/call %8s blocks  %s', round(total_exec_time::numeric),
       calls, round((1000 * total_exec_time / calls)::numeric), shared_blks_hit + shared_blks_read,
       left(regexp_replace(query, '\\s+', ' ', 'g'), 110)) as line
     from pg_stat_statements s join pg_database d on d.oid = s.dbid
     where d.datname = $1 and calls > 1
     order by total_exec_time desc limit 12`,
    [database],
  );
  process.stderr.write(`${rows.map(({ line }) => line).join("\n")}\n`);
}
