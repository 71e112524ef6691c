import type { WorkflowError } from "../../src/state/snapshot.ts";

export const child = (stepId: string, more: object = {}) => ({
  stepId,
  type: "SUB_WORKFLOW",
  workflowId: "payment",
  ...more,
});
export const leadingTo = (next: string) => ({ transitions: { default: next } });

export const declined: WorkflowError = {
  kind: "TASK",
  type: "CardDeclined",
  message: "the card was declined",
  stepId: "charge",
  attempt: 3,
  details: { code: 51 },
};
export const failed = { status: "FAILED", error: declined } as const;

export const parent = {
  instanceId: "0195a3b0-0000-7000-8000-0000000000ff",
  path: "pay",
  iteration: 1,
  attempt: 1,
  awaited: true,
  depth: 1,
} as const;
