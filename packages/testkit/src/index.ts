export {
  createDatabase,
  createEmptyDatabase,
  createTemplate,
  type TestDatabase,
} from "./database.ts";
export { eventually, type EventuallyOptions } from "./eventually.ts";
export { fakeClock, type FakeClock } from "./fake-clock.ts";
export { openLedger, type Ledger, type LedgerEntry, type LedgerRule } from "./ledger.ts";
export {
  freeze,
  kill,
  startProcess,
  stopProcesses,
  thaw,
  type ProcessOptions,
  type TestProcess,
} from "./processes.ts";
export { createKeyPrefix, type TestRedis } from "./redis.ts";
export {
  createTemporaryFolder,
  removeLeftovers,
  type TemporaryFolder,
} from "./temporary-folder.ts";
export { testServices, type TestServices } from "./services.ts";
export { freePort } from "@millrace/devstack";
