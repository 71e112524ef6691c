import { engineRev } from "@millrace/engine";
import { rowSource } from "../unnest.ts";
import { isWritten } from "./parameters.ts";
import type { From, Owned } from "./parameters.ts";

const historyColumns = [
  "ix",
  "tenant_id",
  "instance_id",
  "version",
  "commit_id",
  "at",
  "actor",
  "status",
  "signals",
  "changes",
  "entries",
];

/** One row a commit. */
export function insertHistory(commits: From): string {
  return `recorded as (
    insert into history (
      tenant_id, instance_id, version, commit_id, at, engine_rev, actor, status, signals, changes,
      entries)
    select x.tenant_id, x.instance_id, x.version + 1, x.commit_id, x.at, ${engineRev}, x.actor,
      x.status, x.signals, x.changes, x.entries
    from ${commits("x", historyColumns)}
    where ${isWritten})`;
}

/** Of the commits' columns, those that name the instance. */
export const keyColumns = ["ix", "tenant_id", "instance_id"];

/** What a commit says of its instance and of itself. */
export const commitSource = rowSource<Owned<undefined>>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ draft }) => draft.tenantId },
  instance_id: { type: "uuid", of: ({ draft }) => draft.instanceId },
  version: { type: "integer", of: ({ draft }) => draft.version },
  needs: { type: "integer", of: ({ draft }) => draft.needs.length + draft.freeWaits.length },
  commit_id: { type: "uuid", of: ({ draft }) => draft.commitId },
  at: { type: "timestamptz", of: ({ draft }) => draft.at },
  actor: { type: "text", of: ({ draft }) => draft.actor },
  status: { type: "text", of: ({ draft }) => draft.next.status },
  priority: { type: "integer", of: ({ draft }) => draft.next.priority },
  variables: { type: "jsonb", of: ({ draft }) => draft.texts.variables },
  snapshot: { type: "json", of: ({ draft }) => draft.texts.frontier },
  output: { type: "json", of: ({ draft }) => draft.texts.output },
  error: { type: "json", of: ({ draft }) => draft.texts.error },
  cancellation: { type: "json", of: ({ draft }) => draft.texts.cancellation },
  compensation: { type: "json", of: ({ draft }) => draft.texts.compensation },
  started_at: { type: "timestamptz", of: ({ draft }) => draft.next.startedAt },
  completed_at: { type: "timestamptz", of: ({ draft }) => draft.next.completedAt },
  signals: { type: "json", of: ({ draft }) => draft.texts.signals },
  changes: { type: "json", of: ({ draft }) => draft.texts.changes },
  entries: { type: "json", of: ({ draft }) => draft.texts.entries },
});
