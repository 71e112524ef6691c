import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { strict } from "./schema-problems.ts";
import { Timestamp } from "./text.ts";

/** Limits (CONTRACT 6): how many instances run at once, and who of those that wait is next. */

/** `type:` of a workflow, be it one of those that schedules make of a task. */
const LIMIT_ID_PATTERN =
  /^(?:global|tenant|type:(?:task:)?[A-Za-z][A-Za-z0-9_.-]{0,127}|user:[^\0]{1,500})$/su;

export const LimitId = z
  .string()
  .regex(LIMIT_ID_PATTERN, {
    error: "must be global, tenant, type: and the id of a workflow, or user: and the id of a user",
  })
  .meta({
    description:
      "`global` (all tenants together), `tenant` (the caller's own), `type:<workflow id>` or `user:<user id>`",
  });

export const LimitKind = z.enum(["GLOBAL", "TENANT", "TYPE", "USER"]);
export type LimitKind = z.infer<typeof LimitKind>;

const slots = z
  .int()
  .min(0)
  .max(BOUNDS.admitted)
  .meta({ description: "instances that run at once, at most; 0 admits nobody" });

const QueueOrder = z.enum(["FIFO", "PRIORITY", "DEADLINE"]);

export const LimitDocument = strict("a limit", {
  limit: slots,
  queue: QueueOrder.default("PRIORITY").meta({
    description:
      "who is admitted first: the oldest, the one of highest priority, or of the earliest deadline",
  }),
  maxQueued: z.int().min(0).max(BOUNDS.admitted).nullable().default(null).meta({
    description:
      "starts that may wait to be admitted; one beyond them is refused (429). null: any number",
  }),
}).meta({ id: "LimitDocument" });
export type LimitDocument = z.infer<typeof LimitDocument>;
/** With what may be left out of it. */
export type LimitSource = z.input<typeof LimitDocument>;

export const LimitView = z
  .object({
    id: LimitId,
    kind: LimitKind,
    workflowId: z.string().nullable().meta({ description: "TYPE: of which workflow" }),
    userId: z.string().nullable().meta({ description: "USER: of whom" }),
    source: z.enum(["SET", "DEFINITION"]).meta({
      description:
        "SET: by this API. DEFINITION: it is the `concurrency` of the workflow's latest version, and none was set",
    }),
    limit: slots,
    queue: QueueOrder,
    maxQueued: z.int().nullable(),
    usage: z.object({
      held: z.int().meta({ description: "instances that have a slot now" }),
      queued: z.int().meta({ description: "instances that wait for one" }),
    }),
    version: z.int().meta({ description: "from 1, one more with each change; 0: it was not set" }),
    createdAt: Timestamp.nullable(),
    updatedAt: Timestamp.nullable(),
  })
  .meta({ id: "LimitView" });
export type LimitView = z.infer<typeof LimitView>;

export const ListLimitsQuery = strict("a limit query", pageQueryFields);
export type ListLimitsQuery = z.infer<typeof ListLimitsQuery>;

export const LimitPage = pageOf(LimitView);
export type LimitPage = z.infer<typeof LimitPage>;
