import { CompiledQuery } from "kysely";
import type { Kysely, Transaction } from "kysely";
import type { Database } from "./tables.ts";
import type { RowSource } from "./unnest.ts";

/** The database, or a transaction on it: what every function of this package takes first. */
export type Db = Kysely<Database> | Transaction<Database>;

/**
 * A statement that every connection prepares once, under its name. The name travels as a comment
 * (`database.ts` takes it off), so that it also says in `pg_stat_statements` which one it is.
 * One name stands for one text.
 */
export function prepared(name: string, text: string): string {
  return `/*${name}*/ ${text}`;
}

/**
 * A statement over rows, with a text of its own for one row alone (`fromOne`, unnest.ts).
 *
 * @param write Given the rows as they stand in `from`.
 * @returns Text and parameters for some rows.
 */
export function overRows<Row>(
  name: string,
  source: RowSource<Row>,
  write: (from: (alias: string) => string) => string,
): (rows: readonly Row[]) => readonly [text: string, values: readonly (string | null)[]] {
  const many = prepared(
    name,
    write((alias) => source.from(alias, 1)),
  );
  const alone = prepared(
    `${name}_1`,
    write((alias) => source.fromOne(alias, 1)),
  );
  return (rows) => {
    const [row] = rows;
    return row !== undefined && rows.length === 1
      ? [alone, source.valuesOfOne(row)]
      : [many, source.values(rows)];
  };
}

/** The name of a prepared statement; undefined for any other. */
export function preparedName(text: string): string | undefined {
  if (!text.startsWith("/*")) return undefined;
  return text.slice(2, text.indexOf("*/"));
}

/** Runs a text on a connection of the pool. */
export type RunOnPool = (text: string, values: readonly unknown[]) => Promise<readonly unknown[]>;

const pools = new WeakMap<Db, RunOnPool>();

/** Lets statements outside transactions go straight to the pool: Kysely's way costs some 20 µs each. */
export function registerPool(db: Db, runOnPool: RunOnPool): void {
  pools.set(db, runOnPool);
}

/** Runs a statement as it is written. */
export function run<Row>(
  db: Db,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  const onPool = pools.get(db);
  if (onPool !== undefined) return onPool(text, values) as Promise<readonly Row[]>;
  return db.executeQuery<Row>(CompiledQuery.raw(text, [...values])).then(({ rows }) => rows);
}

/**
 * Lets Postgres make a plan for the very parameters, in a transaction of its own: for lists, where the
 * filters decide which index serves. Everything else keeps one plan (database.ts).
 */
export async function planned<T>(db: Db, act: (trx: Db) => Promise<T>): Promise<T> {
  if (db.isTransaction) return act(db);
  return db.transaction().execute(async (trx) => {
    await run(trx, "set local plan_cache_mode = auto", []);
    return act(trx);
  });
}
