import * as z from "zod";
import { Json } from "../json.ts";
import { strict } from "../schema-problems.ts";
import { PatternText } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const EmitEventStep = strict("an EMIT_EVENT step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("EMIT_EVENT"),
  eventPattern: PatternText,
  payload: Json,
});
export type EmitEventStep = z.infer<typeof EmitEventStep>;
