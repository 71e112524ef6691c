import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createDatabase, createEmptyDatabase } from "@millrace/testkit";
import pg from "pg";
import { expect, test } from "vitest";

// While a release is rolled out the old one goes on working against the schema of the new one.

const first = resolve(import.meta.dirname, "../../../migrations/0001_initial.sql");

interface Column {
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
  /** Whether a row may be inserted that does not name it. */
  readonly isOptional: boolean;
}

test("later migrations only add: what the first release writes and reads is still there", async () => {
  const [before, after] = [await createEmptyDatabase(), await createDatabase()];
  await onServer(before.url, async (client) => client.query(await readFile(first, "utf8")));
  const [old, now] = [await columnsOf(before.url), await columnsOf(after.url)];

  const broken = [...old].filter(([name, { type, isNullable, isOptional }]) => {
    const found = now.get(name);
    const isLooser = (found?.isNullable ?? false) || !isNullable;
    return found?.type !== type || !isLooser || (isOptional && !found.isOptional);
  });
  const tables = new Set([...old.keys()].map(tableOf));
  const demanded = [...now.values()].filter(
    ({ name, isOptional }) => tables.has(tableOf(name)) && !old.has(name) && !isOptional,
  );

  expect(old.size).toBeGreaterThan(100);
  expect(now.size).toBeGreaterThan(old.size);
  expect(broken).toEqual([]);
  expect(demanded).toEqual([]);
  await Promise.all([before.drop(), after.drop()]);
});

test("a new constraint on a table of the first release would refuse rows of the old one: there is none", async () => {
  const [before, after] = [await createEmptyDatabase(), await createDatabase()];
  await onServer(before.url, async (client) => client.query(await readFile(first, "utf8")));

  const [old, now] = [await constraintsOf(before.url), await constraintsOf(after.url)];
  const tables = new Set([...(await columnsOf(before.url)).keys()].map(tableOf));
  const added = now.filter((each) => !old.includes(each) && tables.has(tableOf(each)));

  expect(old.length).toBeGreaterThan(5);
  expect(added).toEqual([]);
  await Promise.all([before.drop(), after.drop()]);
});

async function columnsOf(url: string): Promise<ReadonlyMap<string, Column>> {
  const { rows } = await onServer(url, (client) =>
    client.query<Column>(`
      select table_name || '.' || column_name as name, udt_name as type,
        is_nullable = 'YES' as "isNullable",
        is_nullable = 'YES' or column_default is not null or is_identity = 'YES' as "isOptional"
      from information_schema.columns where table_schema = 'public'`),
  );
  return new Map(rows.map((row) => [row.name, row]));
}

/** Checks, keys and unique indexes. */
async function constraintsOf(url: string): Promise<readonly string[]> {
  const { rows } = await onServer(url, (client) =>
    client.query<{ name: string }>(`
      select conrelid::regclass::text || '.' || contype::text || ' ' || pg_get_constraintdef(oid) as name
      from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'
      union all
      select indrelid::regclass::text || '.unique ' || pg_get_indexdef(indexrelid)
      from pg_index join pg_class on pg_class.oid = indexrelid
      where indisunique and relnamespace = 'public'::regnamespace`),
  );
  return rows.map(({ name }) => name);
}

function tableOf(name: string): string {
  return name.slice(0, name.indexOf("."));
}

async function onServer<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
