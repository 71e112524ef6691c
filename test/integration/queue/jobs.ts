import { randomUUID } from "node:crypto";
import { type StepToAdd, stepJobId } from "@millrace/queue";

export function steps(count: 1, change?: Partial<StepToAdd>): [StepToAdd];
export function steps(count: 2, change?: Partial<StepToAdd>): [StepToAdd, StepToAdd];
export function steps(count: number, change?: Partial<StepToAdd>): StepToAdd[];
export function steps(count: number, change: Partial<StepToAdd> = {}): StepToAdd[] {
  return Array.from({ length: count }, () => ({
    job: {
      tenantId: "default",
      instanceId: randomUUID(),
      path: "ship",
      iteration: 0,
      attempt: 1,
      fence: 0,
      taskId: "ship_order",
    },
    queue: "default",
    priority: 0,
    delayMs: 0,
    ...change,
  }));
}

export function idsOf(jobs: readonly StepToAdd[]): string[] {
  return jobs.map(({ job }) => stepJobId(job));
}
