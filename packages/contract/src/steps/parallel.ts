import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { strict } from "../schema-problems.ts";
import { StepId } from "../text.ts";
import { type StepCommon, stepFields, transitionFields } from "./common.ts";

/** How many branches must complete for the step to. */
export const Join = z.union(
  [z.enum(["ALL", "ANY"]), strict("a join", { count: z.int().min(1).max(BOUNDS.branches) })],
  { error: `must be "ALL", "ANY" or { "count": 1…${BOUNDS.branches} }` },
);
export type Join = z.infer<typeof Join>;

export interface Branch<Step> {
  name: string;
  steps: Step[];
}

/** Written out, as is `MapStepOf`: types that contain themselves cannot be inferred from a schema. */
export interface ParallelStepOf<Step> extends StepCommon {
  type: "PARALLEL";
  branches: Branch<Step>[];
  join?: Join | undefined;
  onBranchError?: "FAIL" | "CONTINUE" | undefined;
}

/** @param steps Schema of the steps of a branch. */
export function parallelStep<Step>(steps: z.ZodType<Step[], Step[]>) {
  return strict("a PARALLEL step", {
    ...stepFields,
    ...transitionFields,
    type: z.literal("PARALLEL"),
    branches: z
      .array(strict("a branch", { name: StepId, steps }))
      .min(1)
      .max(BOUNDS.branches),
    join: Join.optional(),
    onBranchError: z.enum(["FAIL", "CONTINUE"]).optional(),
  });
}
