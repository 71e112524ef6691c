/** What this package needs of the store: bring the schema of one database up to date. */
interface Migrations {
  readonly migrateToLatest?: (databaseUrl: string) => Promise<unknown>;
}

/** Migrates a database to the newest schema. */
export async function migrate(databaseUrl: string): Promise<void> {
  const store = (await import("@millrace/store")) as Migrations;
  await store.migrateToLatest?.(databaseUrl);
}
