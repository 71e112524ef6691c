import type { Draft } from "./draft.ts";
import { isWritten, ownedSource } from "./parameters.ts";
import type { From, Parameters } from "./parameters.ts";

/**
 * What a commit writes for other instances, and clears of what they wrote for this one. Each row has
 * one writer and one reader, so that commits of parents and of children never wait for each other.
 */
export function childSignalWrites(parameters: Parameters): () => readonly string[] {
  const starts = parameters.addRows(childStarts, (draft) => draft.starts);
  const sends = parameters.addRows(signalInserts, (draft) => draft.sends);
  const received = parameters.addRows(receivedSignals, (draft) => draft.received);
  return () => [
    ...(starts === undefined ? [] : [insertStarts(starts)]),
    ...(sends === undefined ? [] : [insertSignals(sends)]),
    ...(received === undefined ? [] : [clearSignals(received)]),
  ];
}

/** Whoever commits sees to it at once; what is left after so long is the reconciler's. */
const lookAt = "statement_timestamp() + interval '2 s'";

function insertStarts(from: From): string {
  return `begun_children as (
    insert into children (
      tenant_id, instance_id, path, iteration, attempt, child_id, workflow_id, workflow_version,
      detached, requested_at, look_at)
    select ${from.tenantId}, ${from.instanceId}, x.path, x.iteration, x.attempt, x.child_id, x.workflow_id,
      x.workflow_version, x.detached, statement_timestamp(), ${lookAt}
    from ${from("x")}
    where ${isWritten})`;
}

const childStarts = ownedSource<Draft["starts"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  child_id: { type: "uuid", of: ({ childId }) => childId },
  workflow_id: { type: "text", of: ({ workflowId }) => workflowId },
  workflow_version: { type: "integer", of: ({ workflowVersion }) => workflowVersion },
  detached: { type: "boolean", of: ({ detached }) => detached },
});

function insertSignals(from: From): string {
  return `sent as (
    insert into child_signals (
      tenant_id, instance_id, kind, child_id, sent_version, path, iteration, attempt, body,
      sent_at, look_at)
    select ${from.tenantId}, x.receiver_id, x.kind, x.child_id, x.sent_version, x.path, x.iteration,
      x.attempt, x.body, statement_timestamp(), ${lookAt}
    from ${from("x")}
    where ${isWritten})`;
}

const signalInserts = ownedSource<Draft["sends"][number]>({
  receiver_id: { type: "uuid", of: ({ to }) => to },
  kind: { type: "text", of: ({ kind }) => kind },
  child_id: { type: "uuid", of: ({ childId }) => childId },
  sent_version: { type: "integer", of: ({ sentVersion }) => sentVersion },
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  body: { type: "json", of: ({ body }) => body },
});

function clearSignals(from: From): string {
  return `taken_signals as (
    delete from child_signals k using ${from("x")}
    where ${isWritten} and k.tenant_id = ${from.tenantId} and k.instance_id = ${from.instanceId}
      and k.kind = x.kind and k.child_id = x.child_id and k.sent_version = x.sent_version)`;
}

const receivedSignals = ownedSource<Draft["received"][number]>({
  kind: { type: "text", of: ({ kind }) => kind },
  child_id: { type: "uuid", of: ({ childId }) => childId },
  sent_version: { type: "integer", of: ({ sentVersion }) => sentVersion },
});
