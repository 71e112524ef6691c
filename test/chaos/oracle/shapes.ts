import { DEFINITIONS } from "../definitions.ts";

/** `step` is given the output of `before`, and so may only run when that is stored. */
export interface Succession {
  readonly before: string;
  readonly step: string;
}

interface StepShape {
  readonly stepId: string;
  readonly input?: unknown;
  readonly steps?: readonly StepShape[];
  readonly branches?: readonly { readonly steps: readonly StepShape[] }[];
}

/** Of each workflow, read from what its steps say that they saw. */
export const SUCCESSIONS: ReadonlyMap<string, readonly Succession[]> = new Map(
  DEFINITIONS.map(({ id, steps, compensationSteps = [] }) => [
    id,
    allSteps([...(steps as readonly StepShape[]), ...compensationSteps]).flatMap(successionOf),
  ]),
);

/** Of each workflow, by the step that it undoes. */
export const COMPENSATIONS: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  DEFINITIONS.map(({ id, compensationSteps = [] }) => [
    id,
    new Map(compensationSteps.map(({ stepId, compensationFor }) => [compensationFor, stepId])),
  ]),
);

function allSteps(steps: readonly StepShape[]): readonly StepShape[] {
  return steps.flatMap((step) => [
    step,
    ...allSteps(step.steps ?? []),
    ...(step.branches ?? []).flatMap((branch) => allSteps(branch.steps)),
  ]);
}

function successionOf({ stepId, input }: StepShape): readonly Succession[] {
  const { saw } = (input ?? {}) as { saw?: string };
  const before = /steps\.(\w+)\.output\.record/.exec(saw ?? "")?.[1];
  // A child's outcome is its own, and checked there.
  return before === undefined || before === "sub" ? [] : [{ before, step: stepId }];
}
