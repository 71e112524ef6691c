import type { Command, Decision, Definition, TaskCall } from "@millrace/engine";
import type { Carry, ClaimedStep } from "@millrace/store";
import type { StepToHold, WorkerState } from "./worker-state.ts";

type Dispatch = Extract<Command, { kind: "dispatch" }>;

/** A step that a commit hands to the worker that writes it. */
export interface NextStep {
  /** What the commit says of it. */
  readonly carry: Carry;
  /** What the worker then runs. */
  readonly step: StepToHold;
}

/**
 * The steps that follow from a decision and that this worker may run itself, at once, without a job
 * (DESIGN, Carry-on): it knows the task, which does not ask for a process of its own, serves the queue and need
 * not wait.
 *
 * @param carriers Ids of the jobs under which chains travel: one step at most for each, in order.
 */
export function nextSteps(
  worker: WorkerState,
  definition: Definition,
  decision: Decision,
  carriers: readonly string[],
): readonly NextStep[] {
  const { registry, queues, id: workerId } = worker;
  const steps: NextStep[] = [];
  for (const command of decision.commands) {
    const carrier = carriers[steps.length];
    if (carrier === undefined) break;
    if (command.kind !== "dispatch" || command.delayMs > 0) continue;
    const { path, iteration, taskId } = command;
    const known = registry.get(taskId);
    const row = decision.inserts.find(
      (inserted) => inserted.path === path && inserted.iteration === iteration,
    );
    const call = row && callOf(definition, row.stepId);
    if (!known || known.isIsolated || !call || !row) continue;
    if (!queues.includes(command.queue)) continue;
    const { timeoutMs, heartbeatTimeoutMs } = known;
    const retry = known.retry as Carry["retry"];
    const step = claimedStepOf(row, command, carrier);
    steps.push({
      carry: { path, iteration, workerId, carrier, timeoutMs, heartbeatTimeoutMs, retry },
      step: {
        since: performance.now(),
        snapshot: decision.snapshot,
        definition,
        step,
        call,
        known,
      },
    });
  }
  return steps;
}

/** The first of them. */
export function nextStep(
  worker: WorkerState,
  definition: Definition,
  decision: Decision,
  carrier: string,
): NextStep | undefined {
  return nextSteps(worker, definition, decision, [carrier])[0];
}

function callOf(definition: Definition, stepId: string): TaskCall | undefined {
  const step = definition.steps.get(stepId) ?? definition.compensationSteps.get(stepId);
  return step !== undefined && "taskId" in step ? step : undefined;
}

/** The row as the commit writes it for a step that is carried on: held from its first moment. */
function claimedStepOf(
  row: Decision["inserts"][number],
  { taskId }: Dispatch,
  carrier: string,
): ClaimedStep {
  const { stepId, path, iteration, attempt, input, timeoutMs, heartbeatTimeoutMs } = row;
  return {
    stepId,
    path,
    iteration,
    taskId,
    attempt,
    fence: 1,
    deliveries: 1,
    input,
    timeoutMs,
    heartbeatTimeoutMs,
    compensates: row.compensates,
    carrier,
  };
}
