import type { Json } from "@millrace/expressions";
import type { JsonObject } from "./snapshot.ts";
import { mapValues } from "./json-object.ts";

/**
 * Variables and payloads of events are kept as `jsonb`, which has an order of keys of its own: by their
 * length in UTF-8, and then byte by byte. Expressions can tell (`keys(variables.v)[0]`), so that values have
 * this order from the moment at which they come to be, and not only once they have been stored.
 */
export function inStoredOrder(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inStoredOrder);
  return withKeysInOrder(mapValues(value as JsonObject, inStoredOrder));
}

/** Of the object itself; what is in it stays as it is. */
export function withKeysInOrder(object: JsonObject): JsonObject {
  const entries = Object.entries(object).map(
    ([key, value]) => [key, pointsOf(key), value] as const,
  );
  return Object.fromEntries(
    entries.toSorted(([, a], [, b]) => byLength(a, b)).map(([key, , value]) => [key, value]),
  );
}

/** In UTF-8 bytes have the order of code points. */
function byLength(a: readonly number[], b: readonly number[]): number {
  const apart = bytesOf(a) - bytesOf(b);
  if (apart !== 0) return apart;
  const at = a.findIndex((point, index) => point !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

function pointsOf(text: string): readonly number[] {
  return Array.from(text, (character) => character.codePointAt(0) ?? 0);
}

function bytesOf(points: readonly number[]): number {
  return points.reduce((sum, point) => sum + bytesOfPoint(point), 0);
}

function bytesOfPoint(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x8_00) return 2;
  return point < 0x1_00_00 ? 3 : 4;
}
