/** Names a limit within a tenant: what kind of limit it is, and of what. */
export type LimitKey = `type:${string}`;

/** Of the instances of a workflow, whichever their version. */
export function typeLimitKey(workflowId: string): LimitKey {
  return `type:${workflowId}`;
}

export function workflowOfLimit(limitKey: string): string {
  return limitKey.slice("type:".length);
}
