/**
 * The border between an evaluation and the rest: what leaves is JSON, bounded in size and depth.
 */
import { limits } from "./limits.ts";
import { setOwn } from "./properties.ts";
import { chargeNewText, Failure } from "./run.ts";
import type { Run } from "./run.ts";

/** Approximate characters of JSON that may still leave. */
export interface Budget {
  left: number;
}

export function startBudget(): Budget {
  return { left: limits.resultSize };
}

/**
 * The value as JSON has it, by identity where it already is: undefined leaves its key out of an
 * object and is null in an array, -0 is 0. A value held twice counts twice.
 *
 * @throws Failure NOT_JSON, TOO_DEEP, RESULT_TOO_LARGE
 */
export function toJson(budget: Budget, value: unknown, depth = 0): unknown {
  switch (typeof value) {
    case "string":
      spend(budget, value.length + 2);
      requireStorable(value);
      return value;
    case "number":
      spend(budget, 8);
      if (!Number.isFinite(value)) {
        throw new Failure("NOT_JSON", `the result is or holds ${value}, which JSON cannot say`);
      }
      return value === 0 ? 0 : value;
    case "boolean":
      spend(budget, 5);
      return value;
    case "undefined":
      return value;
    case "object":
      spend(budget, 4);
      if (value === null) return value;
      if (depth >= limits.resultDepth) {
        throw new Failure("TOO_DEEP", `the result is nested deeper than ${limits.resultDepth}`);
      }
      if (Array.isArray(value)) return arrayToJson(budget, value, depth);
      return objectToJson(budget, value as Readonly<Record<string, unknown>>, depth);
    case "bigint":
    case "function":
    case "symbol":
      throw new Failure("NOT_JSON", `the result holds a ${typeof value}, which JSON cannot say`);
  }
}

/** PostgreSQL's jsonb refuses these: better here, with a name, than when the state is written. */
function requireStorable(text: string): void {
  if (!notStorable.test(text)) return;
  throw new Failure("NOT_JSON", "the result has a text with a NUL or half a character in it");
}

/** With the `u` flag a surrogate pair is one character, so that only a lone half is a surrogate. */
const notStorable = /[\0\p{Surrogate}]/u;

function arrayToJson(budget: Budget, array: readonly unknown[], depth: number): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < array.length; index++) {
    const element = array[index];
    const json = toJson(budget, element, depth + 1) ?? null;
    if (copy === undefined && !Object.is(json, element)) {
      copy = [];
      for (let earlier = 0; earlier < index; earlier++) copy.push(array[earlier]);
    }
    copy?.push(json);
  }
  return copy ?? array;
}

function objectToJson(
  budget: Budget,
  object: Readonly<Record<string, unknown>>,
  depth: number,
): Readonly<Record<string, unknown>> {
  if (!isPlain(object)) {
    throw new Failure("NOT_JSON", "the result holds an object that is not plain data");
  }
  const keys = Object.keys(object);
  let copy: Record<string, unknown> | undefined;
  for (const [index, key] of keys.entries()) {
    const member = object[key];
    const json = toJson(budget, member, depth + 1);
    if (copy === undefined && (json === undefined || !Object.is(json, member))) {
      copy = {};
      for (const earlier of keys.slice(0, index)) setOwn(copy, earlier, object[earlier]);
    }
    if (json === undefined) continue;
    spend(budget, key.length + 4);
    requireStorable(key);
    if (copy !== undefined) setOwn(copy, key, json);
  }
  return copy ?? object;
}

/** Data has no class. Checked by shape, so that data from another realm counts as well. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function spend(budget: Budget, characters: number): void {
  budget.left -= characters;
  if (budget.left < 0) {
    throw new Failure(
      "RESULT_TOO_LARGE",
      `the result is larger than ${limits.resultSize} characters; keep large data outside and pass a reference`,
    );
  }
}

/** JSON.stringify for a checked value: by then no toJSON can be found on it. */
export function jsonText(run: Run, value: unknown): string {
  const budget: Budget = { left: limits.stringLength };
  const json = toJson(budget, value);
  chargeNewText(run, limits.stringLength - budget.left);
  const text = JSON.stringify(json) ?? "";
  chargeNewText(run, text.length);
  return text;
}
