import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { Json } from "../json.ts";
import { strict } from "../schema-problems.ts";
import { VariableName } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const Variables = z
  .record(VariableName, Json)
  .refine((variables) => Object.keys(variables).length <= BOUNDS.variables, {
    error: `at most ${BOUNDS.variables} variables`,
  });

export const SetStep = strict("a SET step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("SET"),
  /** Name → value with expressions. */
  variables: Variables,
});
export type SetStep = z.infer<typeof SetStep>;
