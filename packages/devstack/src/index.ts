export { startChild, type Child, type ChildOptions, type Exit } from "./child.ts";
export { closeOnSignal } from "./close-on-signal.ts";
export { DataFolderInUseError } from "./data-folder.ts";
export { installRedisOnDebian } from "./install-redis.ts";
export { identityOf, isAlive, type ProcessIdentity } from "./process-identity.ts";
export { migrate, pendingMigrations } from "./migrate.ts";
export { freePort } from "./ports.ts";
export {
  openPostgres,
  type Postgres,
  type PostgresOptions,
  type PostgresStopMode,
} from "./postgres.ts";
export { findRedis, howToGetRedis, openRedis, type Redis, type RedisOptions } from "./redis.ts";
export { openStack, type QueueBackend, type Stack, type StackOptions } from "./stack.ts";
export { type Role, type StackEvent, type StackOutput } from "./supervise.ts";
