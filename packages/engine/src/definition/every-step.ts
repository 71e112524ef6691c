import type { StepDocument } from "@millrace/contract";

/** A step of a document and its place in it, as the keys of a JSON pointer. */
export interface PlacedStep {
  readonly step: StepDocument;
  readonly place: readonly (string | number)[];
}

/** Each step before those inside it. */
export function* everyStep(
  steps: readonly StepDocument[],
  within: readonly (string | number)[] = ["steps"],
): Generator<PlacedStep, void, void> {
  for (const [index, step] of steps.entries()) {
    const place = [...within, index];
    yield { step, place };
    if (step.type === "MAP") yield* everyStep(step.steps, [...place, "steps"]);
    if (step.type !== "PARALLEL") continue;
    for (const [position, branch] of step.branches.entries()) {
      yield* everyStep(branch.steps, [...place, "branches", position, "steps"]);
    }
  }
}
