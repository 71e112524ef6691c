/**
 * What values are and how operators see them.
 *
 * Nothing here calls a method found on a value: a property is read only when it is the value's own,
 * and an array or object never becomes a primitive through its valueOf or toString. Where JavaScript
 * would do that, the language differs on purpose:
 *
 * - as text, an array or object is its JSON (`"a" + [1]` is `a[1]`, JavaScript says `a1`);
 * - as a number it is NaN, so `[5] * 2` is NaN and `[5] > 3` is false;
 * - it equals nothing, itself included: what is read from the store is another object each time, so that
 *   being the same one would depend on when it was read. `equals()` compares what is in them.
 */
import { jsonText } from "./json.ts";
import { isForbidden, readProperty } from "./properties.ts";
import type { JsonObject } from "./properties.ts";
import { chargeNewText, chargeText, Failure } from "./run.ts";
import type { Run } from "./run.ts";

export type ValueType =
  | "undefined"
  | "null"
  | "boolean"
  | "number"
  | "string"
  | "array"
  | "object"
  | "foreign";

/** The type of a value as the language has it; `foreign` is what JSON has no form for. */
export function typeOf(value: unknown): ValueType {
  const type = typeof value;
  switch (type) {
    case "undefined":
    case "boolean":
    case "number":
    case "string":
      return type;
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "array" : "object";
    case "bigint":
    case "function":
    case "symbol":
      return "foreign";
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An array or object. */
export function isWhole(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

export function isMissing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** `value[key]` with a key known only now. */
export function readComputed(run: Run, value: unknown, key: unknown): unknown {
  if (typeof key === "number" && Array.isArray(value)) {
    return key >= 0 && key < value.length && Number.isInteger(key) ? value[key] : undefined;
  }
  const name = keyText(run, key);
  return name === undefined ? undefined : readProperty(value, name);
}

/** A computed key as text; undefined for an array or object, which is nobody's key. */
export function keyText(run: Run, key: unknown): string | undefined {
  if (typeof key === "object" && key !== null) return undefined;
  const name = toText(run, key);
  if (isForbidden(name)) {
    throw new Failure(
      "FORBIDDEN_PROPERTY",
      `the key ${JSON.stringify(name)} is never accessible; rename it where the data is made`,
    );
  }
  return name;
}

/** A value as text: as JavaScript has it, but arrays and objects as JSON. */
export function toText(run: Run, value: unknown): string {
  switch (typeof value) {
    case "string":
      return value;
    case "object":
      return value === null ? "null" : jsonText(run, value);
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    case "bigint":
    case "function":
    case "symbol":
      throw new Failure("NOT_JSON", `a ${typeof value} is not a JSON value`);
  }
}

/** A value as a number: as JavaScript has it, but arrays and objects are NaN. */
export function toNumber(run: Run, value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "string") {
    chargeText(run, value.length);
    return Number(value);
  }
  if (typeof value === "boolean") return value ? 1 : 0;
  return value === null ? 0 : Number.NaN;
}

/** A count or position as JavaScript's methods take it: truncated, NaN is 0, absent is `absent`. */
export function toInteger(run: Run, value: unknown, absent = 0): number {
  if (value === undefined) return absent;
  const number = Math.trunc(toNumber(run, value));
  return Number.isNaN(number) ? 0 : number;
}

/** `left + right` */
export function add(run: Run, left: unknown, right: unknown): unknown {
  if (typeof left === "number" && typeof right === "number") return left + right;
  if (!isTextual(left) && !isTextual(right)) return toNumber(run, left) + toNumber(run, right);
  return concatenate(run, toText(run, left), toText(run, right));
}

function isTextual(value: unknown): boolean {
  return typeof value === "string" || isWhole(value);
}

export function concatenate(run: Run, left: string, right: string): string {
  chargeNewText(run, left.length + right.length);
  return left + right;
}

/** `left == right` */
export function looselyEqual(run: Run, left: unknown, right: unknown): boolean {
  if (isMissing(left) || isMissing(right)) return isMissing(left) && isMissing(right);
  if (typeof left === typeof right) return strictlyEqual(run, left, right);
  if (typeof left === "object" || typeof right === "object") return false;
  // Two primitives of different types compare as numbers, in JavaScript as well.
  return toNumber(run, left) === toNumber(run, right);
}

/** `left === right`; an array or object equals nothing. */
export function strictlyEqual(run: Run, left: unknown, right: unknown): boolean {
  if (isWhole(left)) return false;
  if (typeof left === "string" && left.length > longText) chargeText(run, left.length);
  return left === right;
}

/** -1, 0 or 1 as `left` comes before, with or after `right`; NaN when they have no order. */
export function order(run: Run, left: unknown, right: unknown): number {
  if (typeof left === "string" && typeof right === "string") {
    if (left.length > longText) chargeText(run, left.length);
    return left < right ? -1 : left > right ? 1 : 0;
  }
  const first = toNumber(run, left);
  const second = toNumber(run, right);
  return first < second ? -1 : first > second ? 1 : first === second ? 0 : Number.NaN;
}

/** `key in value`, for own properties; false where `value` has no properties. */
export function hasOwn(run: Run, value: unknown, key: unknown): boolean {
  const name = keyText(run, key);
  if (typeof value !== "object" || value === null || name === undefined) return false;
  return Object.hasOwn(value, name);
}

/** Comparing texts up to this length is too cheap to count. */
const longText = 1_000;
