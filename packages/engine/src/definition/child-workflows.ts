import type { StepDocument, WorkflowDefinition } from "@millrace/contract";
import { pointer } from "@millrace/contract";

/** A workflow that a definition starts. */
export interface ChildWorkflow {
  /** JSON pointer of its name in the document. */
  readonly path: string;
  readonly workflowId: string;
  /** Undefined: not named by the step. */
  readonly version: number | undefined;
  /** Whoever comes to the step waits for it, whatever the values are. */
  readonly isCertain: boolean;
}

/** In the order of the document. */
export function childWorkflowsOf({ steps }: WorkflowDefinition): readonly ChildWorkflow[] {
  return childrenIn(steps, ["steps"]);
}

function childrenIn(
  steps: readonly StepDocument[],
  at: readonly (string | number)[],
): readonly ChildWorkflow[] {
  return steps.flatMap((step, index): readonly ChildWorkflow[] => {
    const place = [...at, index];
    switch (step.type) {
      case "SUB_WORKFLOW": {
        const { workflowId, version, detached, condition } = step;
        const path = pointer([...place, "workflowId"]);
        const isCertain = detached !== true && condition === undefined;
        return [{ path, workflowId, version, isCertain }];
      }
      case "PARALLEL":
        return step.branches.flatMap((branch, position) =>
          childrenIn(branch.steps, [...place, "branches", position, "steps"]),
        );
      case "MAP":
        return childrenIn(step.steps, [...place, "steps"]);
      default:
        return [];
    }
  });
}
