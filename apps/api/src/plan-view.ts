import type { CompensationPlanView } from "@millrace/contract";
import type { CompensationPlan } from "@millrace/runtime";
import { errorView, json, stepOf } from "./views.ts";

/** What a cancel would do, as CONTRACT 3 shows it. */
export function planView({
  snapshot,
  cancellable,
  preview,
}: CompensationPlan): CompensationPlanView {
  const { id, workflowId, workflowVersion, version, status } = snapshot;
  return {
    instanceId: id,
    workflowId,
    workflowVersion,
    version,
    status,
    cancellable,
    plan: preview.steps.map(({ stepId }) => stepId),
    steps: preview.steps.map(({ stepId, target, taskId, input, error }) => ({
      stepId,
      compensationFor: stepOf(target),
      executionId: target,
      ...(taskId !== undefined && { taskId }),
      ...(input !== undefined && error === null && { input: json(input) }),
      ...(error !== null && { error: errorView(error) }),
    })),
    awaited: preview.awaited.map(({ stepId, target, compensatedBy, until }) => ({
      stepId,
      executionId: target,
      compensatedBy,
      until: until.toISOString(),
    })),
    stopped: [...preview.stopped],
    skipped: preview.skipped.map(({ stepId, target }) => ({
      stepId,
      compensationFor: stepOf(target),
      executionId: target,
    })),
    failed: preview.failed.map(({ stepId, error }) => ({ stepId, error: errorView(error) })),
  };
}
