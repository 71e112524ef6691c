import type { InstanceStatus, StepStatus, TerminalStatus } from "@millrace/contract";

/** Every allowed change of a status, as data (CONTRACT 2). Nothing else lists them. */

export type {
  CompensationStatus,
  InstanceStatus,
  StepStatus,
  TerminalStatus,
} from "@millrace/contract";

/** From each instance status, those that may follow it. FAILED is left only by retry or abandon. */
export const instanceChanges: Readonly<Record<InstanceStatus, readonly InstanceStatus[]>> = {
  CREATED: ["RUNNING", "PAUSED", "FAILED", "CANCELLED"],
  RUNNING: ["WAITING_FOR_EVENT", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"],
  WAITING_FOR_EVENT: ["RUNNING", "PAUSED", "FAILED", "CANCELLED"],
  PAUSED: ["CREATED", "RUNNING", "WAITING_FOR_EVENT", "FAILED", "CANCELLED"],
  COMPLETED: [],
  FAILED: ["RUNNING", "CANCELLED"],
  CANCELLED: [],
};

/**
 * From each step status, those that may follow it within one execution. One that has completed and then
 * cannot be left is FAILED, and COMPLETED again should an operator's retry leave it.
 */
export const stepChanges: Readonly<Record<StepStatus, readonly StepStatus[]>> = {
  PENDING: ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"],
  RUNNING: ["PENDING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"],
  WAITING: ["RETRYING", "COMPLETED", "FAILED", "CANCELLED"],
  RETRYING: ["RUNNING", "WAITING", "FAILED", "CANCELLED"],
  COMPLETED: ["FAILED"],
  FAILED: ["COMPLETED"],
  SKIPPED: [],
  CANCELLED: [],
};

const settledSteps: ReadonlySet<StepStatus> = new Set([
  "COMPLETED",
  "FAILED",
  "SKIPPED",
  "CANCELLED",
]);

export function isTerminal(status: InstanceStatus): status is TerminalStatus {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED";
}

export function isStepSettled(status: StepStatus): boolean {
  return settledSteps.has(status);
}
