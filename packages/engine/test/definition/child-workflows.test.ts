import type { WorkflowDefinition } from "@millrace/contract";
import { expect, test } from "vitest";
import { childWorkflowsOf } from "../../src/definition/child-workflows.ts";

test.for([
  ["1 > 2", true],
  ["input.n > 3 && input.n < 2", true],
  ["input.n > 3", false],
] as const)("a child that %s alone leads past is certain: %s", ([when, isCertain]) => {
  const document: WorkflowDefinition = {
    id: "parent",
    steps: [
      { stepId: "which", type: "CHOICE", choices: [{ when, to: "done" }], default: "child" },
      {
        stepId: "child",
        type: "SUB_WORKFLOW",
        workflowId: "other",
        transitions: { default: "done" },
      },
      { stepId: "done", type: "END", outcome: "COMPLETED" },
    ],
  };

  expect(childWorkflowsOf(document)).toMatchObject([{ workflowId: "other", isCertain }]);
});
