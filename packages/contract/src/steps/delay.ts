import * as z from "zod";
import { strict } from "../schema-problems.ts";
import { CalendarId, DurationText, Expression } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const DelayStep = strict("a DELAY step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("DELAY"),
  duration: DurationText.optional(),
  /** An expression or an ISO 8601 time. */
  until: Expression.optional(),
  /** Counts `duration` in the working time of this calendar, and moves `until` into it. */
  calendarId: CalendarId.optional(),
}).refine((step) => (step.duration === undefined) !== (step.until === undefined), {
  error: 'a DELAY step has either "duration" or "until"',
  when: ({ value }) => typeof value === "object" && value !== null,
});
export type DelayStep = z.infer<typeof DelayStep>;
