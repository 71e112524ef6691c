import * as z from "zod";
import { BOUNDS } from "./bounds.ts";

export const DEFAULT_PAGE_SIZE = 50;

/** `limit` and `cursor` as they stand in a query string. A cursor is opaque: only hand it back. */
export const pageQueryFields = {
  limit: z.coerce
    .number<string | number>()
    .int()
    .min(1)
    .max(BOUNDS.pageSize)
    .optional()
    .meta({ description: `entries on a page at most; ${DEFAULT_PAGE_SIZE} where none is given` }),
  cursor: z
    .string()
    .min(1)
    .max(BOUNDS.cursor)
    .optional()
    .meta({ description: "`nextCursor` of the page before, as it is" }),
} as const;

export const PageQuery = z.strictObject(pageQueryFields);
export type PageQuery = z.infer<typeof PageQuery>;

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Null on the last page. */
  readonly nextCursor: string | null;
}

/** One page of a list. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() });
}
