import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { strict } from "./schema-problems.ts";
import { DurationText, ErrorName } from "./text.ts";

/** A retry policy, or part of one: fields merge one by one with the outer policies. */
export const RetryDocument = strict("a retry policy", {
  maxAttempts: z.int().min(1).max(BOUNDS.attempts).optional(),
  initialInterval: DurationText.optional(),
  backoffCoefficient: z.number().min(1).max(1_000).optional(),
  maxInterval: DurationText.optional(),
  jitter: z.enum(["FULL", "NONE"]).optional(),
  nonRetryableErrors: z.array(ErrorName).max(BOUNDS.errorNames).optional(),
  /** PAUSE parks the instance for an operator instead of failing the step. */
  onExhausted: z.enum(["FAIL", "PAUSE"]).optional(),
});
export type RetryDocument = z.infer<typeof RetryDocument>;
