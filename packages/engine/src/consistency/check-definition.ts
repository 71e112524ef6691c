import type { Definition } from "../definition/definition.ts";
import { pathOfStep } from "../definition/paths.ts";
import type { Evidence, Finding, StepEvidence } from "./evidence.ts";
import { placeText } from "./place-text.ts";

/** The stored steps against the definition: which there can be, where, and of which type. */
export function checkDefinition(evidence: Evidence): readonly Finding[] {
  const { definition, definitionIs, identity, steps } = evidence;
  const { workflowId, workflowVersion } = identity;
  const named = `version ${workflowVersion} of the definition "${workflowId}"`;
  if (definitionIs === "EDITED") {
    const message = `the document of ${named} is not the one that was registered: it has another hash`;
    return [{ code: "DEFINITION_DIFFERS", message, where: {} }];
  }
  if (definition === undefined) {
    return [{ code: "DEFINITION_MISSING", message: `${named} is not stored`, where: {} }];
  }
  return steps.flatMap((step) => checkStep(definition, step) ?? []);
}

function checkStep(definition: Definition, step: StepEvidence): Finding | undefined {
  const { stepId, path, iteration, type } = step;
  const where = { path, iteration };
  const expected = typeOf(definition, step);
  if (expected === undefined) {
    const message = `${placeText(step)} is no step of the definition, or has none of its paths (step "${stepId}")`;
    return { code: "STEP_UNKNOWN", message, where };
  }
  if (expected === type) return undefined;
  const message = `${placeText(step)} is stored as ${type}, and defined as ${expected}`;
  return { code: "STEP_TYPE_DIFFERS", message, where };
}

/** Undefined where the definition has no such step under this path. */
function typeOf(
  definition: Definition,
  { stepId, path, compensates }: StepEvidence,
): string | undefined {
  if (compensates !== null) {
    return definition.compensationSteps.has(stepId) && path === stepId ? "TASK" : undefined;
  }
  const current = definition.steps.get(stepId);
  return pathOfStep(definition, stepId, path) === path ? current?.type : undefined;
}
