import type { Json } from "@millrace/expressions";
import { define } from "./definitions.ts";
import type { Sketch } from "./definitions.ts";
import { simulate } from "./simulation.ts";
import type { Simulation } from "./simulation.ts";

/** a, b and c in a row, each with its compensation, then a wait. */
export function saga(
  fields: Readonly<Record<string, object>> = {},
  more: Partial<Sketch> = {},
): Simulation {
  const simulation = simulate(
    define({
      steps: [
        { stepId: "a", ...fields["a"], transitions: { default: "b" } },
        { stepId: "b", ...fields["b"], transitions: { default: "c" } },
        { stepId: "c", ...fields["c"], transitions: { default: "w" } },
        { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
      ],
      compensationSteps: ["a", "b", "c"].map((stepId) => ({
        stepId: `undo_${stepId}`,
        compensationFor: stepId,
        retry: { maxAttempts: 1 },
        ...fields[`undo_${stepId}`],
      })),
      ...more,
    }),
    { order: 7 },
  );
  simulation.start();
  return simulation;
}

/** Completes a, b and c, with the given outputs or null. */
export function done(
  simulation: Simulation,
  outputs: Readonly<Record<string, Json>> = {},
): Simulation {
  for (const stepId of ["a", "b", "c"]) simulation.succeed(stepId, outputs[stepId] ?? null);
  return simulation;
}
