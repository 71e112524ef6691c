import { hostname } from "node:os";
import { noteWorkerExit } from "@millrace/store";
import type { StackEvent } from "./supervise.ts";

/**
 * Tells the store what a worker died of, which nobody else can know: a dead letter says it. Not more than
 * an attempt: the database may be away, and a worker that ended when asked has no entry any more.
 */
export function noteExit(databaseUrl: string, { role, pid, exit }: StackEvent): void {
  if (role !== "worker" || exit === undefined) return;
  const how = exit.signal ?? `exit code ${exit.code}`;
  noteWorkerExit(databaseUrl, { host: hostname(), pid, exit: how }).catch(() => {});
}
