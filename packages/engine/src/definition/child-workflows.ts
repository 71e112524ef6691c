import type { WorkflowDefinition } from "@millrace/contract";
import { closedWaysOf } from "./check-ways.ts";
import { outlineOf, textOf } from "./outline.ts";
import { isUnavoidable } from "./unavoidable.ts";

/** A workflow that a definition starts, and names. */
export interface ChildWorkflow {
  /** JSON pointer of its name in the document. */
  readonly path: string;
  readonly workflowId: string;
  /** Undefined: not named by the step. */
  readonly version: number | undefined;
  /** Each run that comes to a good end waits for it, whatever the values are. */
  readonly isCertain: boolean;
}

/** In the order of the document. */
export function childWorkflowsOf(document: WorkflowDefinition): readonly ChildWorkflow[] {
  const outline = outlineOf(document);
  const startsSome = outline.steps.some(({ type }) => type === "SUB_WORKFLOW");
  const closed = startsSome ? closedWaysOf(outline) : new Set<string>();
  return outline.steps.flatMap((step): readonly ChildWorkflow[] => {
    const { type, path, fields } = step;
    const workflowId = textOf(fields["workflowId"]);
    if (type !== "SUB_WORKFLOW" || workflowId === undefined) return [];
    // Which one an expression gives, nobody knows yet.
    if (workflowId.includes("${")) return [];
    const { version, detached } = fields;
    return [
      {
        path: `${path}/workflowId`,
        workflowId,
        version: typeof version === "number" ? version : undefined,
        isCertain: detached !== true && isUnavoidable(outline, step, closed),
      },
    ];
  });
}
