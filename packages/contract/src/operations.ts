import * as z from "zod";
import { INSTANCE_STATUSES } from "./statuses.ts";
import { Timestamp } from "./text.ts";

/** `/healthz`: the process answers. */
export const HealthView = z.object({ status: z.literal("ok") });
export type HealthView = z.infer<typeof HealthView>;

/** `/readyz`: 200 when all dependencies answer, else 503 and which one does not. */
export const ReadinessView = z.object({
  status: z.enum(["ok", "unavailable"]),
  checks: z.record(
    z.string(),
    z.object({
      status: z.enum(["ok", "down"]),
      required: z.boolean().optional().meta({ description: "false: its loss only slows things" }),
      detail: z.string().optional(),
      latencyMs: z.number().optional(),
    }),
  ),
});
export type ReadinessView = z.infer<typeof ReadinessView>;

/** `/v1/stats`: figures over all instances, or those of one workflow. Times are in milliseconds. */
const figures = {
  instances: z.partialRecord(z.enum(INSTANCE_STATUSES), z.int()),
  successRate: z.number().nullable().meta({ description: "completed of all that ended, 0 to 1" }),
  executionTimeMs: z
    .object({ min: z.number(), mean: z.number(), max: z.number() })
    .nullable()
    .meta({ description: "null when none has ended" }),
  retries: z.int(),
} as const;

export const StatsView = z.object({
  ...figures,
  at: Timestamp,
  workflows: z.array(z.object({ workflowId: z.string(), ...figures })),
});
export type StatsView = z.infer<typeof StatsView>;
