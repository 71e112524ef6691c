import * as z from "zod";
import { Json } from "../json.ts";
import { strict } from "../schema-problems.ts";
import { Expression } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const END_OUTCOMES = ["COMPLETED", "FAILED", "CANCELLED"] as const;

/** Its `transitions` matter only when its `condition` is false. */
export const EndStep = strict("an END step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("END"),
  outcome: z.enum(END_OUTCOMES),
  output: Json.optional(),
  /** A value with expressions, as a rule `{ type, message, details? }`. */
  error: Json.optional(),
  reason: Expression.optional(),
});
export type EndStep = z.infer<typeof EndStep>;
