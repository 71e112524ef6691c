import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { strict } from "../schema-problems.ts";
import { DurationText, Expression, PatternText, StepId, VariableName } from "../text.ts";
import { stepFields, transitionFields } from "./common.ts";

export const EventTimeout = strict("an event timeout", {
  duration: DurationText,
  /** Absent: the timeout is an error TIMEOUT of the step. */
  timeoutHandlerStepId: StepId.optional(),
});
export type EventTimeout = z.infer<typeof EventTimeout>;

/** One of several events. */
const AwaitedEvent = strict("an awaited event", {
  eventPattern: PatternText,
  eventCondition: Expression.optional(),
  /** Of `mode` ANY: where to go when this one is the first. Absent: by the step's `transitions`. */
  to: StepId.optional(),
});

export const EventWaitStep = strict("an EVENT_WAIT step", {
  ...stepFields,
  ...transitionFields,
  type: z.literal("EVENT_WAIT"),
  eventPattern: PatternText.optional(),
  eventCondition: Expression.optional(),
  /** Several events in place of the one. */
  events: z.array(AwaitedEvent).min(1).max(BOUNDS.awaitedEvents).optional(),
  /** ANY (default): the first event completes the step. ALL: each must have come. */
  mode: z.enum(["ANY", "ALL"]).optional(),
  eventTimeout: EventTimeout.optional(),
  /** Variable → path in the event's payload. */
  eventPayloadMapping: z.record(VariableName, Expression).optional(),
  /** A duration, or `instance`: since the instance was created. Absent: no earlier event counts. */
  lookback: DurationText.optional(),
  deliver: z.enum(["ALL", "ONE"]).optional(),
})
  .refine((step) => step.eventPattern !== undefined || step.events !== undefined, {
    error: 'an EVENT_WAIT step needs "eventPattern", or "events" for several',
    path: ["eventPattern"],
    params: { isMissing: true },
    when: isObject,
  })
  .refine((step) => step.eventPattern === undefined || step.events === undefined, {
    error: 'an EVENT_WAIT step has either "eventPattern" or "events", not both',
    when: isObject,
  });
export type EventWaitStep = z.infer<typeof EventWaitStep>;

function isObject({ value }: z.core.ParsePayload): boolean {
  return typeof value === "object" && value !== null;
}
