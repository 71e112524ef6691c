import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { Json, type JsonValue } from "./json.ts";
import { strict } from "./schema-problems.ts";

const Items = z.array(Json).min(1).max(BOUNDS.batch);

/**
 * The body of a `:batch` call: the list itself, or an object that holds it as `items`. The items
 * are not looked into: each is parsed alone, so that a bad one fails nobody else's.
 */
export const BatchRequest = z.union([Items, strict("a batch", { items: Items })], {
  error: `must be a list of 1 to ${BOUNDS.batch} items, or { "items": [ … ] }`,
});
export type BatchRequest = z.infer<typeof BatchRequest>;

export function batchItemsOf(request: BatchRequest): readonly JsonValue[] {
  return "items" in request ? request.items : request;
}
