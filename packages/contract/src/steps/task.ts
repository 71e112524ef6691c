import * as z from "zod";
import { Json } from "../json.ts";
import { strict } from "../schema-problems.ts";
import { Name, Priority, Reference } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const TaskStep = strict("a TASK step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("TASK"),
  taskId: Reference,
  /** A value with expressions, or one expression; default: the instance's input. */
  input: Json.optional(),
  queue: Name.optional(),
  priority: Priority.optional(),
});
export type TaskStep = z.infer<typeof TaskStep>;
