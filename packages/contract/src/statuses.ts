export const INSTANCE_STATUSES = [
  "CREATED",
  "RUNNING",
  "WAITING_FOR_EVENT",
  "PAUSED",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

/** An instance of one of these is settled once no compensation is in progress. */
export const TERMINAL_STATUSES = ["COMPLETED", "FAILED", "CANCELLED"] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

export function isTerminalStatus(status: InstanceStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly InstanceStatus[]).includes(status);
}

export const STEP_STATUSES = [
  "PENDING",
  "RUNNING",
  "WAITING",
  "RETRYING",
  "COMPLETED",
  "FAILED",
  "SKIPPED",
  "CANCELLED",
] as const;
export type StepStatus = (typeof STEP_STATUSES)[number];

export const COMPENSATION_STATUSES = ["IN_PROGRESS", "COMPLETED", "COMPLETED_WITH_ERRORS"] as const;
export type CompensationStatus = (typeof COMPENSATION_STATUSES)[number];

export const ERROR_KINDS = [
  "TASK",
  "TIMEOUT",
  "END",
  "EXPRESSION",
  "LIMIT",
  "DEFINITION",
  "POISONED",
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

export const CANCELLATION_SOURCES = ["API", "EVENT", "PARENT", "END"] as const;
export type CancellationSource = (typeof CANCELLATION_SOURCES)[number];

export const WAIT_KINDS = ["EVENT", "DELAY"] as const;
export type WaitKind = (typeof WAIT_KINDS)[number];

/** What has paused an instance: somebody asked for it, or the retries of a step are spent. */
export const PAUSE_CAUSES = ["REQUEST", "EXHAUSTED"] as const;
export type PauseCause = (typeof PAUSE_CAUSES)[number];
