import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { strict } from "../schema-problems.ts";
import { RetryDocument } from "../retry.ts";
import { Description, DurationText, ErrorName, Expression, Name, StepId } from "../text.ts";

/** The first true condition, else the default; with neither the branch ends. */
export const Transitions = strict("transitions", {
  conditions: z
    .array(strict("a condition", { when: Expression, to: StepId }))
    .max(BOUNDS.conditions)
    .optional(),
  default: StepId.optional(),
});
export type Transitions = z.infer<typeof Transitions>;

/** Where to go on an error of one of these types or kinds (`*`: any), once retries are spent. */
export const ErrorHandler = strict("an error handler", {
  errors: z.array(ErrorName).min(1).max(BOUNDS.errorNames),
  to: StepId,
});
export type ErrorHandler = z.infer<typeof ErrorHandler>;

/** What a step of any type may have, `transitions` apart. */
export const stepFields = {
  stepId: StepId,
  name: Name.optional(),
  description: Description.optional(),
  /** False: the step is SKIPPED and the default transition is taken. */
  condition: Expression.optional(),
  onError: z.array(ErrorHandler).max(BOUNDS.errorHandlers).optional(),
  retry: RetryDocument.optional(),
  /** One attempt. */
  timeout: DurationText.optional(),
  /** All attempts and the waits between them. */
  totalTimeout: DurationText.optional(),
  /** Queued and not yet running. */
  scheduleTimeout: DurationText.optional(),
  /** Silence of a running task. */
  heartbeatTimeout: DurationText.optional(),
  /** Executions of this step in one instance; default 10,000. */
  maxIterations: z.int().min(1).max(BOUNDS.iterations).optional(),
} as const;

export const transitionFields = { transitions: Transitions.optional() } as const;

const StepCommonFields = z.object({ ...stepFields, ...transitionFields });
export interface StepCommon extends z.infer<typeof StepCommonFields> {}
