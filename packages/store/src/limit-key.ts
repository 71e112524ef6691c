import type { Snapshot } from "@millrace/engine";

/**
 * Names a limit within a tenant: what kind of limit it is, and of what. `global` is that of the whole
 * installation, and is kept as one of the default tenant.
 */
export type LimitKey = "global" | "tenant" | `type:${string}` | `user:${string}`;

export const globalKey = "global" satisfies LimitKey;

/** Of the instances of a workflow, whichever their version. */
export function typeLimitKey(workflowId: string): LimitKey {
  return `type:${workflowId}`;
}

export function userLimitKey(userId: string): LimitKey {
  return `user:${userId.replaceAll("%", "%25").replaceAll(" ", "%20")}`;
}

/** Undefined: it is of another kind. */
export function workflowOfLimit(limitKey: string): string | undefined {
  return limitKey.startsWith("type:") ? limitKey.slice("type:".length) : undefined;
}

/** Undefined: it is of another kind. */
export function userOfLimit(limitKey: string): string | undefined {
  if (!limitKey.startsWith("user:")) return undefined;
  return limitKey.slice("user:".length).replaceAll("%20", " ").replaceAll("%25", "%");
}

/** As whoever set it has called it. */
export function shownLimit(limitKey: string): string {
  const userId = userOfLimit(limitKey);
  return userId === undefined ? limitKey : `user:${userId}`;
}

/** The other way round. */
export function limitKeyOf(shown: string): string {
  return shown.startsWith("user:") ? userLimitKey(shown.slice("user:".length)) : shown;
}

/** From the widest to the narrowest. */
const kinds = ["global", "tenant", "type:", "user:"];

/** How wide a limit is: lower is wider. */
export function widthOf(limitKey: string): number {
  return kinds.findIndex((kind) => limitKey.startsWith(kind));
}

/**
 * All limits of an instance as one text, by which its row names them: keys, the widest first, joined by spaces.
 * None has a space of its own.
 */
export function limitSetOf({
  limits,
  workflowId,
}: Pick<Snapshot, "limits" | "workflowId">): string {
  return limits ?? typeLimitKey(workflowId);
}

export function limitsOfSet(limitSet: string): readonly string[] {
  return limitSet.split(" ");
}

/** The same of a row `i` of `workflow_instances`. */
export function ownSet(i: string): string {
  return `coalesce(${i}.snapshot->>'limits', 'type:' || ${i}.workflow_id)`;
}
