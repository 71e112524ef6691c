import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { Json, type JsonValue } from "../json.ts";
import { strict } from "../schema-problems.ts";
import { Expression, RootName } from "../text.ts";
import { type StepCommon, stepFields, transitionFields } from "./common.ts";

export interface MapStepOf<Step> extends StepCommon {
  type: "MAP";
  items: string | JsonValue[];
  itemName?: string | undefined;
  steps: Step[];
  maxConcurrency?: number | undefined;
  tolerate?: number | undefined;
}

/** @param steps Schema of the steps that every item goes through. */
export function mapStep<Step>(steps: z.ZodType<Step[], Step[]>) {
  return strict("a MAP step", {
    ...stepFields,
    ...transitionFields,
    type: z.literal("MAP"),
    items: z.union([Expression, z.array(Json)], {
      error: "must be an expression that becomes an array, or an array",
    }),
    /** Root under which an item's expressions find it; default `item`. */
    itemName: RootName.optional(),
    steps,
    maxConcurrency: z.int().min(1).max(BOUNDS.steps).optional(),
    /** Failed items that do not fail the step; default 0. */
    tolerate: z.int().min(0).optional(),
  });
}
