import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { Json } from "../json.ts";
import { strict } from "../schema-problems.ts";
import { Reference } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const SubWorkflowStep = strict("a SUB_WORKFLOW step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("SUB_WORKFLOW"),
  workflowId: Reference,
  version: z.int().min(1).max(BOUNDS.version).optional(),
  input: Json.optional(),
  /** True: started and not waited for. */
  detached: z.boolean().optional(),
});
export type SubWorkflowStep = z.infer<typeof SubWorkflowStep>;
