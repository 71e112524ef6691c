import type { InstanceView, StepView } from "@millrace/contract";

const at = (second: number) => `2026-01-31T12:00:${String(second).padStart(2, "0")}.000Z`;

export function step(status: StepView["status"], more: Partial<StepView> = {}): StepView {
  const isOver = !["PENDING", "RUNNING", "WAITING", "RETRYING"].includes(status);
  return {
    status,
    output: null,
    error: null,
    attempts: 1,
    startedAt: at(1),
    completedAt: isOver ? at(2) : null,
    ...more,
  };
}

/** A running instance without steps, except for what is given. */
export function instance(more: Partial<InstanceView> = {}): InstanceView {
  return {
    id: "0198c1de-0000-7000-8000-000000000001",
    workflowId: "order_processing",
    workflowVersion: 1,
    status: "RUNNING",
    version: 1,
    input: null,
    output: null,
    error: null,
    state: { variables: {}, steps: {}, waitingFor: [] },
    compensation: null,
    cancellation: null,
    parent: null,
    pause: null,
    progress: { completed: 0, total: 1 },
    correlationId: null,
    tenantId: "default",
    userId: null,
    startEventId: null,
    priority: 0,
    deadline: null,
    metadata: {},
    createdAt: at(0),
    updatedAt: at(2),
    startedAt: at(0),
    completedAt: null,
    ...more,
  };
}
