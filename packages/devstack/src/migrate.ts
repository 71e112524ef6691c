/** What this package needs of the store: bring the schema of one database up to date. */
interface Migrations {
  readonly migrateToLatest?: (databaseUrl: string) => Promise<unknown>;
  readonly pendingMigrations?: (databaseUrl: string) => Promise<readonly string[]>;
}

/** Migrates a database to the newest schema. */
export async function migrate(databaseUrl: string): Promise<void> {
  const store = (await import("@millrace/store")) as Migrations;
  await store.migrateToLatest?.(databaseUrl);
}

/** Names of the migrations that the database still lacks, oldest first; none when it is up to date. */
export async function pendingMigrations(databaseUrl: string): Promise<readonly string[]> {
  const store = (await import("@millrace/store")) as Migrations;
  return (await store.pendingMigrations?.(databaseUrl)) ?? [];
}
