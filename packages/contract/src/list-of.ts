import * as z from "zod";

/** A parameter with several values: repeated, separated by commas, or both. */
export function listOf<Item extends z.ZodType<unknown, string>>(item: Item, most: number) {
  return z
    .union([z.string(), z.array(z.string())])
    .transform((value) => [value].flat().flatMap((each) => each.split(",")))
    .pipe(z.array(item).max(most));
}
