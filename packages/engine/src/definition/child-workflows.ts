import type { WorkflowDefinition } from "@millrace/contract";
import { pointer } from "@millrace/contract";
import { everyStep } from "./every-step.ts";

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
  return [...everyStep(steps)].flatMap(({ step, place }): readonly ChildWorkflow[] => {
    if (step.type !== "SUB_WORKFLOW") return [];
    const { workflowId, version, detached, condition } = step;
    const path = pointer([...place, "workflowId"]);
    const isCertain = detached !== true && condition === undefined;
    return [{ path, workflowId, version, isCertain }];
  });
}
