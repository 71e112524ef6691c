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

/** An array or object on the way, and how it was come by: paths are only made for faults. */
interface Visit {
  readonly container: object;
  readonly key: string | number | undefined;
  readonly parent: Visit | undefined;
  /** From 1, for the outermost container. */
  readonly depth: number;
}

type Fault = Omit<Problem, "path">;

/**
 * What would keep a value from being stored as JSON and read back unchanged: nesting deeper than
 * `BOUNDS.depth`, U+0000 and lone surrogates (jsonb refuses both), `__proto__` keys, values that
 * JSON has no form for. An object's `undefined` members count as absent.
 *
 * The walk keeps its own stack: input that is nested thousands deep must not exhaust the call stack.
 */
export function jsonFaults(value: unknown): Problem[] {
  const faults: Problem[] = [];
  const stack: Visit[] = [];
  look(undefined, undefined, value);
  for (let visit = stack.pop(); visit && faults.length < MAX_FAULTS; visit = stack.pop()) {
    if (Array.isArray(visit.container)) {
      for (const [index, item] of visit.container.entries()) look(visit, index, item);
    } else {
      for (const [key, member] of Object.entries(visit.container)) {
        const fault = faultOfKey(key);
        if (fault) report(visit, key, fault);
        else if (member !== undefined) look(visit, key, member);
      }
    }
  }
  return faults;

  function look(parent: Visit | undefined, key: Visit["key"], found: unknown): void {
    const depth = (parent?.depth ?? 0) + 1;
    const fault = faultOf(found, depth);
    if (fault) report(parent, key, fault);
    else if (typeof found === "object" && found !== null) {
      stack.push({ container: found, key, parent, depth });
    }
  }

  function report(parent: Visit | undefined, key: Visit["key"], fault: Fault): void {
    if (faults.length < MAX_FAULTS) faults.push({ path: pathOf(parent, key), ...fault });
  }
}

function pathOf(parent: Visit | undefined, key: Visit["key"]): string {
  const keys = [key];
  for (let visit = parent; visit; visit = visit.parent) keys.push(visit.key);
  return pointer(keys.filter((each) => each !== undefined).toReversed());
}

function faultOf(value: unknown, depth: number): Fault | undefined {
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
      return depth <= BOUNDS.depth
        ? undefined
        : { code: "TOO_DEEP", message: `nested deeper than ${BOUNDS.depth} levels` };
    case "undefined":
    case "bigint":
    case "symbol":
    case "function":
      return { code: "NOT_JSON", message: `a value of type ${typeof value} has no JSON form` };
  }
}

function faultOfKey(key: string): Fault | undefined {
  if (key !== "__proto__") return faultOfText(key);
  return { code: "BAD_VALUE", message: 'the key "__proto__" is not allowed' };
}

/** With the `u` flag a surrogate pair is one character, so only a lone half has this category. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function faultOfText(text: string): Fault | undefined {
  if (text.includes("\0")) {
    return { code: "BAD_CHARACTER", message: "the character U+0000 cannot be stored" };
  }
  if (LONE_SURROGATE.test(text)) {
    return { code: "BAD_CHARACTER", message: "a lone UTF-16 surrogate is not a character" };
  }
  return undefined;
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
