import * as z from "zod";
import { strict } from "../schema-problems.ts";
import { DurationText, Expression, PatternText, StepId, VariableName } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const EventTimeout = strict("an event timeout", {
  duration: DurationText,
  /** Absent: the timeout is an error TIMEOUT of the step. */
  timeoutHandlerStepId: StepId.optional(),
});
export type EventTimeout = z.infer<typeof EventTimeout>;

export const EventWaitStep = strict("an EVENT_WAIT step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("EVENT_WAIT"),
  eventPattern: PatternText,
  eventCondition: Expression.optional(),
  eventTimeout: EventTimeout.optional(),
  /** Variable → path in the event's payload. */
  eventPayloadMapping: z.record(VariableName, Expression).optional(),
  /** A duration, or `instance`: since the instance was created. Absent: no earlier event counts. */
  lookback: DurationText.optional(),
  deliver: z.enum(["ALL", "ONE"]).optional(),
});
export type EventWaitStep = z.infer<typeof EventWaitStep>;
