import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { instanceFilterFields, whoAndWhy } from "./instances.ts";
import { Json } from "./json.ts";
import { ProblemDetails } from "./problem.ts";
import { strict } from "./schema-problems.ts";
import { InstanceId } from "./text.ts";

export const BULK_ACTIONS = ["cancel", "pause", "resume", "retry"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/** Instances that one call acts on, where it does not say how many. */
export const DEFAULT_BULK_LIMIT = 100;

/** As the query of a list, with the variables as JSON, by their paths. */
export const BulkFilter = strict("a filter", {
  ...instanceFilterFields,
  variables: z
    .record(z.string().min(1).max(BOUNDS.expression), Json)
    .refine((variables) => Object.keys(variables).length <= BOUNDS.filterVariables, {
      error: `at most ${BOUNDS.filterVariables} variables`,
    })
    .optional(),
});
export type BulkFilter = z.infer<typeof BulkFilter>;

export const BulkRequest = strict("a bulk request", {
  action: z.enum(BULK_ACTIONS),
  /** An empty one means all of the tenant. */
  filter: BulkFilter,
  /** Default 100; the oldest first. */
  limit: z.int().min(1).max(BOUNDS.batch).optional(),
  /** The `nextCursor` of the call before. */
  cursor: z.string().min(1).max(BOUNDS.cursor).optional(),
  /** Shows what would be done, and does nothing. */
  dryRun: z.boolean().optional(),
  ...whoAndWhy,
  /** Of a cancel; default true. */
  shouldCompensate: z.boolean().optional(),
});
export type BulkRequest = z.infer<typeof BulkRequest>;

export const BulkAnswer = z.object({
  action: z.enum(BULK_ACTIONS),
  dryRun: z.boolean(),
  matched: z.int().meta({ description: "instances that were acted on, or would be" }),
  succeeded: z.int(),
  refused: z.int(),
  ids: z.array(InstanceId).meta({
    description: "those it was done to; of a dry run those it would be",
  }),
  refusals: z.array(z.object({ id: InstanceId, problem: ProblemDetails })),
  nextCursor: z.string().nullable().meta({
    description: "where the next call goes on; null where no more match",
  }),
});
export type BulkAnswer = z.infer<typeof BulkAnswer>;
