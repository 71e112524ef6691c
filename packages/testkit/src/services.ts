/** The servers that the tests of one run share; `test/support/stack.ts` starts and provides them. */
export interface TestServices {
  /** Of a database on the server that is not used itself, with the right to create others. */
  readonly databaseUrl: string;
  /** A migrated database that `createDatabase` clones. */
  readonly templateDatabase: string;
  readonly redisUrl: string;
}

declare module "vitest" {
  interface ProvidedContext {
    readonly services: TestServices;
  }
}

/** The shared servers, inside a test of a project that has `test/support/stack.ts` as its set-up. */
export async function testServices(): Promise<TestServices> {
  // Vitest cannot be imported outside a test run, and the chaos run uses this package too.
  const { inject } = await import("vitest");
  const services = inject("services") as TestServices | undefined;
  if (services === undefined) {
    throw new Error("this test needs Postgres or Redis: it belongs in test/integration");
  }
  return services;
}
