import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Migrator, sql } from "kysely";
import type { Kysely, Migration, MigrationProvider } from "kysely";
import { openDatabase } from "./database.ts";
import { DatabaseFaultError } from "./errors.ts";

/** The SQL files of the project, applied in the order of their names, once, and never undone. */
const folder = fileURLToPath(new URL("../../../migrations/", import.meta.url));

/** Any number that nobody else uses for an advisory lock of this database. */
const lockId = 7_221_903;

/**
 * Brings the schema up to date. Processes that start at the same time take turns, so that one of them
 * does the work and the others find it done.
 *
 * @returns The names of the migrations that this call applied.
 */
export async function migrateToLatest(url: string): Promise<readonly string[]> {
  return onOneConnection(url, async (db, migrator) => {
    await sql`select pg_advisory_lock(${lockId})`.execute(db);
    try {
      const { error, results = [] } = await migrator.migrateToLatest();
      if (error !== undefined) {
        const failed = results.find(({ status }) => status === "Error")?.migrationName;
        throw new DatabaseFaultError(
          `migration ${failed ?? ""} failed: ${error instanceof Error ? error.message : "unknown"}`,
          error,
        );
      }
      return results.map(({ migrationName }) => migrationName);
    } finally {
      await sql`select pg_advisory_unlock(${lockId})`.execute(db);
    }
  });
}

/** Names of the migrations that are still to be applied. */
export async function pendingMigrations(url: string): Promise<readonly string[]> {
  return onOneConnection(url, async (_db, migrator) => {
    const migrations = await migrator.getMigrations();
    return migrations.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name);
  });
}

async function onOneConnection<T>(
  url: string,
  act: (db: Kysely<unknown>, migrator: Migrator) => Promise<T>,
): Promise<T> {
  const database = await openDatabase({
    url,
    poolSize: 1,
    applicationName: "millrace-migrate",
    statementTimeoutMs: 600_000,
  });
  try {
    return await database.db.connection().execute(async (connection) => {
      const db = connection as unknown as Kysely<unknown>;
      return act(db, new Migrator({ db, provider: sqlFiles }));
    });
  } finally {
    await database.close();
  }
}

const sqlFiles: MigrationProvider = {
  async getMigrations() {
    const files = (await readdir(folder)).filter((file) => file.endsWith(".sql")).toSorted();
    const migrations: Record<string, Migration> = {};
    for (const file of files) {
      const text = await readFile(`${folder}${file}`, "utf8");
      migrations[file.slice(0, -".sql".length)] = {
        up: async (db) => void (await sql.raw(text).execute(db)),
      };
    }
    return migrations;
  },
};
