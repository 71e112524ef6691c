import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { strict } from "../schema-problems.ts";
import { Expression, StepId } from "../text.ts";
import { stepFields } from "./common.ts";

/**
 * Its `default` stands in for `transitions`, also when its `condition` is false. Without one, and where
 * no choice holds, the branch ends.
 */
export const ChoiceStep = strict("a CHOICE step", {
  ...stepFields,
  type: z.literal("CHOICE"),
  choices: z
    .array(strict("a choice", { when: Expression, to: StepId }))
    .min(1)
    .max(BOUNDS.choices),
  default: StepId.optional(),
});
export type ChoiceStep = z.infer<typeof ChoiceStep>;
