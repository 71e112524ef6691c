import * as z from "zod";
import { CONSISTENCY_CODES, type ConsistencyCode } from "./consistency-codes.ts";
import { InstanceId, Timestamp } from "./text.ts";

const codes = Object.keys(CONSISTENCY_CODES) as [ConsistencyCode, ...ConsistencyCode[]];

export const ConsistencyFindingView = z
  .object({
    code: z.enum(codes),
    severity: z.enum(["ERROR", "WARNING"]),
    message: z.string().meta({ description: "what is stored, and what should be" }),
    where: z.object({
      path: z.string().optional(),
      iteration: z.int().optional(),
      timer: z.string().optional(),
      version: z.int().optional(),
      childId: z.string().optional(),
      eventId: z.string().optional(),
    }),
    repairable: z.boolean(),
    repair: z.string().optional().meta({ description: "what a repair would do" }),
    advice: z
      .string()
      .optional()
      .meta({ description: "what an operator can do; without a repair" }),
  })
  .meta({ id: "ConsistencyFindingView" });
export type ConsistencyFindingView = z.infer<typeof ConsistencyFindingView>;

/** Whether what is stored of an instance agrees with itself. */
export const ConsistencyView = z
  .object({
    instanceId: InstanceId,
    version: z.int(),
    checkedAt: Timestamp,
    ok: z.boolean().meta({ description: "there is no finding" }),
    findings: z.array(ConsistencyFindingView),
    skipped: z.array(z.string()).meta({
      description:
        "what could not be looked at, in words: it was too large, or did not answer; mostly nothing",
    }),
  })
  .meta({ id: "ConsistencyView" });
export type ConsistencyView = z.infer<typeof ConsistencyView>;

export const RepairView = z
  .object({
    before: ConsistencyView,
    repaired: z.array(ConsistencyFindingView),
    after: ConsistencyView,
  })
  .meta({ id: "RepairView" });
export type RepairView = z.infer<typeof RepairView>;
