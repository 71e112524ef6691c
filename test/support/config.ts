/** What the environment says about a test run. */
export interface TestSettings {
  /** A server to use instead of an embedded one; the user must be allowed to create databases. */
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string | undefined;
  /**
   * Whether the embedded Postgres writes through to the disk, as it does for users. Off unless
   * `MILLRACE_TEST_DURABLE=1`: the tests kill processes, never the machine.
   */
  readonly isDurable: boolean;
  /** Whether what installations under test leave behind, their logs above all, is kept. */
  readonly keepsFolders: boolean;
  /** Whether what is tested is `dist`, which must be up to date, and not the sources. */
  readonly isBuilt: boolean;
}

export function testSettings(): TestSettings {
  return {
    databaseUrl: process.env["DATABASE_URL"] || undefined,
    redisUrl: process.env["REDIS_URL"] || undefined,
    isDurable: process.env["MILLRACE_TEST_DURABLE"] === "1",
    keepsFolders: process.env["MILLRACE_TEST_KEEP"] === "1",
    isBuilt: process.env["MILLRACE_TEST_BUILT"] === "1",
  };
}
