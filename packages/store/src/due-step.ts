/** A step execution whose job may be missing, with what a new job needs. */
export interface DueStep {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
  readonly taskId: string;
  readonly queue: string;
  readonly priority: number;
  /** Deliveries of this attempt that ended with the silence of their worker. */
  readonly lapses: number;
  /** How often in a row its worker was asked to end soon after it had begun. */
  readonly handOvers: number;
}

export interface DueRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly fence: number;
  readonly task_id: string;
  readonly queue: string;
  readonly priority: number;
  readonly lapses: number;
  readonly hand_overs: number;
}

/** For `returning`, from a table `s`. */
export const dueColumns = `s.tenant_id, s.instance_id, s.path, s.iteration, s.attempt, s.fence,
    s.task_id, s.queue, s.priority, s.lapses, s.hand_overs`;

export function dueStepOf(row: DueRow): DueStep {
  return {
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    path: row.path,
    iteration: row.iteration,
    attempt: row.attempt,
    fence: row.fence,
    taskId: row.task_id,
    queue: row.queue,
    priority: row.priority,
    lapses: row.lapses,
    handOvers: row.hand_overs,
  };
}
