import { sameJson } from "../state/json-object.ts";

/** Equal once both have been stored: times are texts, -0 is 0, and the order of keys says nothing. */
export function sameStored(one: unknown, other: unknown): boolean {
  return sameJson(asStored(one), asStored(other));
}

function asStored(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
