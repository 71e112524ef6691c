import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { type Parsed, parseWith, pointer, type Problem } from "./schema-problems.ts";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/**
 * Any JSON value, present but not looked into: `jsonFaults` walks whole bodies and documents once,
 * before their schema sees them, so that no schema has to recurse.
 */
export const Json = z
  .custom<JsonValue>((value) => value !== undefined, { error: "required" })
  .meta({ description: "any JSON value" });

/** A JSON object whose values are not looked into. */
export const JsonRecord: z.ZodType<JsonObject, JsonObject> = z.record(z.string(), Json);

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/**
 * Parses what came as JSON: whether it can be stored as such, and its schema. What is nested too
 * deep does not reach the schema, which may recurse.
 */
export function parseJson<T>(schema: z.ZodType<T>, value: unknown): Parsed<T> {
  const faults = jsonFaults(value);
  if (faults.some(({ code }) => code === "TOO_DEEP")) return { problems: faults };
  const parsed = parseWith(schema, value);
  return faults.length > 0 ? { problems: [...faults, ...(parsed.problems ?? [])] } : parsed;
}

/** How many faults one walk reports before it stops looking. */
const MAX_FAULTS = 100;

interface Visit {
  readonly value: unknown;
  readonly path: readonly (string | number)[];
}

/**
 * What would keep a value from being stored as JSON and read back unchanged: nesting deeper than
 * `BOUNDS.depth`, U+0000 and lone surrogates (jsonb refuses both), `__proto__` keys, values that
 * JSON has no form for. An object's `undefined` members count as absent.
 *
 * The walk keeps its own stack: input that is nested thousands deep must not exhaust the call stack.
 */
export function jsonFaults(value: unknown): Problem[] {
  const faults: Problem[] = [];
  const stack: Visit[] = [{ value, path: [] }];
  for (let visit = stack.pop(); visit && faults.length < MAX_FAULTS; visit = stack.pop()) {
    const fault = faultOf(visit);
    if (fault) {
      faults.push({ path: pointer(visit.path), ...fault });
    } else {
      stack.push(...membersOf(visit, faults).toReversed());
    }
  }
  return faults;
}

function faultOf({ value, path }: Visit): Omit<Problem, "path"> | undefined {
  switch (typeof value) {
    case "boolean":
      return undefined;
    case "string":
      return faultOfText(value);
    case "number":
      return Number.isFinite(value)
        ? undefined
        : { code: "NOT_JSON", message: `${value} is not a JSON number` };
    case "object":
      if (value === null) return undefined;
      if (!isPlain(value)) {
        return { code: "NOT_JSON", message: "only plain objects and arrays have a JSON form" };
      }
      return path.length < BOUNDS.depth
        ? undefined
        : { code: "TOO_DEEP", message: `nested deeper than ${BOUNDS.depth} levels` };
    case "undefined":
    case "bigint":
    case "symbol":
    case "function":
      return { code: "NOT_JSON", message: `a value of type ${typeof value} has no JSON form` };
  }
}

function faultOfText(text: string): Omit<Problem, "path"> | undefined {
  if (text.includes("\0")) {
    return { code: "BAD_CHARACTER", message: "the character U+0000 cannot be stored" };
  }
  if (LONE_SURROGATE.test(text)) {
    return { code: "BAD_CHARACTER", message: "a lone UTF-16 surrogate is not a character" };
  }
  return undefined;
}

/** With the `u` flag a surrogate pair is one character, so only a lone half has this category. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function membersOf({ value, path }: Visit, faults: Problem[]): Visit[] {
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => ({ value: item, path: [...path, index] }));
  }
  if (typeof value !== "object" || value === null) return [];

  const members: Visit[] = [];
  for (const [key, member] of Object.entries(value)) {
    const memberPath = [...path, key];
    const fault = key === "__proto__" ? PROTO_KEY : faultOfText(key);
    if (fault) faults.push({ path: pointer(memberPath), ...fault });
    else if (member !== undefined) members.push({ value: member, path: memberPath });
  }
  return members;
}

const PROTO_KEY = { code: "BAD_VALUE", message: 'the key "__proto__" is not allowed' } as const;
