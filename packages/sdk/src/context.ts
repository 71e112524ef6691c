import type { JsonValue } from "@millrace/contract";

/** Text, or fields and text: what pino's loggers take. */
export interface TaskLog {
  (message: string): void;
  (fields: object, message?: string): void;
}

/** Every line carries the ids of instance, step and attempt. */
export interface TaskLogger {
  readonly debug: TaskLog;
  readonly info: TaskLog;
  readonly warn: TaskLog;
  readonly error: TaskLog;
}

export interface TaskInstance {
  readonly id: string;
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly correlationId: string | null;
  readonly tenantId: string;
  readonly userId?: string | null | undefined;
  readonly input?: JsonValue | undefined;
}

/** What a task is told about the run that it is. */
export interface TaskContext {
  /**
   * The same on every run of one execution of a step: retries, and runs again after a worker's
   * death. Hand it to whatever the task writes to, so that a second run has no second effect.
   */
  readonly idempotencyKey: string;
  /** From 1; grows by retries, not by runs again after a worker's death. */
  readonly attempt: number;
  /** Runs of this attempt so far, this one included: above 1 after a worker's death. */
  readonly deliveries: number;
  readonly stepId: string;
  readonly executionId: string;
  readonly instance: TaskInstance;
  /** Aborted when the result no longer counts: cancel, timeout, shutdown, another worker's turn. */
  readonly signal: AbortSignal;
  readonly logger: TaskLogger;
  /** Says that the task is alive, for `heartbeatTimeout`; `progress` is shown with the step. */
  heartbeat(progress?: JsonValue): void;
}
