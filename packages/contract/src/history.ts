import * as z from "zod";
import { Json } from "./json.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { strict } from "./schema-problems.ts";
import { Timestamp } from "./text.ts";

/** One change of an instance, in the order in which they were committed. */
export const HistoryEntry = z
  .object({
    seq: z.int(),
    version: z.int().optional().meta({ description: "the instance's, after this change" }),
    at: Timestamp,
    type: z.string(),
    stepId: z.string().nullable().optional(),
    path: z.string().optional().meta({
      description: "of a step in a branch or an item, as ship[3].label",
    }),
    iteration: z.int().optional().meta({ description: "from the second pass on" }),
    actor: z.string(),
    data: Json,
  })
  .meta({ id: "HistoryEntry" });
export type HistoryEntry = z.infer<typeof HistoryEntry>;

export const HistoryPage = pageOf(HistoryEntry);
export type HistoryPage = z.infer<typeof HistoryPage>;

export const HistoryQuery = strict("a history query", pageQueryFields);
export type HistoryQuery = z.infer<typeof HistoryQuery>;
