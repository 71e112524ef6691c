import { types } from "node:util";
import { checkJson } from "@millrace/store";
import type { Json } from "@millrace/store";
import { BadTaskValueError } from "./bad-task-value.ts";

/**
 * What a task gives away as it will be read back. JSON drops what it has no form for, or makes `{}` or null of
 * it, without a word: a result is refused for that, and what is only shown to people says so in its place.
 */

/** What a step may return, as JSON text (CONTRACT 1, limits; known fault C68). */
export const maxOutputBytes = 1_000_000;

/**
 * The result as it will be read back.
 *
 * @throws BadTaskValueError where a result has no exact JSON form, or is too large.
 */
export function asJson(result: unknown): Json {
  const text = stringify(result) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes > maxOutputBytes) {
    throw new BadTaskValueError(
      "PAYLOAD_TOO_LARGE",
      `the task returned ${bytes} bytes of JSON, and a step's output may have ${maxOutputBytes}; store the data elsewhere and return a reference`,
      { bytes, limit: maxOutputBytes },
      true,
    );
  }
  const value = JSON.parse(text) as Json;
  const faults = checkJson(value).map(({ path, message }) => `${path || "the result"}: ${message}`);
  if (faults.length > 0) throw notJson(faults);
  return value;
}

/** For people: what JSON has no form for is named in its place, and where nothing can be kept, why. */
export function asShownJson(value: unknown): Json {
  try {
    return asJson(JSON.parse(JSON.stringify(value, nameLost) ?? "null"));
  } catch (error) {
    return notStored(error instanceof Error ? error.message : String(error));
  }
}

/** Undefined for what JSON has no form for at all, such as a function. @throws BadTaskValueError */
function stringify(result: unknown): string | undefined {
  if (result === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(result) as string | undefined;
    if (text !== undefined && !isSurelyKept(result, 0)) JSON.stringify(result, refuseLost);
  } catch (error) {
    throw notJson([error instanceof Error ? error.message : String(error)]);
  }
  if (text === undefined) throw notJson([`the result is a ${typeof result}`]);
  return text;
}

/** Deeper values are refused anyway. */
const deepest = 100;

/** False means that it is to be looked at closely, which costs several times what making its text does. */
function isSurelyKept(value: unknown, depth: number): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) {
    return typeof value !== "function" && typeof value !== "symbol";
  }
  if (depth > deepest) return false;
  if (Array.isArray(value)) return value.every((item) => isSurelyKept(item, depth + 1));
  if (types.isDate(value)) return !Number.isNaN(Number(value));
  if (!isPlain(value) || "toJSON" in value) return false;
  for (const key in value) {
    if (!isSurelyKept((value as Record<string, unknown>)[key], depth + 1)) return false;
  }
  return true;
}

/** As a replacer: `value` is what `toJSON` has made of the member of `this`, which is null of a Date without a time. */
function refuseLost(this: object, key: string, value: unknown): unknown {
  const lost = lostOf(this, key, value);
  if (lost === undefined) return value;
  const { what, instead } = lost;
  const place = key === "" ? "the result" : JSON.stringify(key);
  throw new Error(`${place} is ${what}${instead === undefined ? "" : `; return ${instead}`}`);
}

function nameLost(this: object, key: string, value: unknown): unknown {
  const lost = lostOf(this, key, value);
  return lost === undefined ? value : notStored(lost.what);
}

function notStored(what: string): string {
  return `(not stored: ${what})`.slice(0, 1_000);
}

interface Lost {
  readonly what: string;
  /** What a task may return for it. */
  readonly instead?: string;
}

function lostOf(holder: object, key: string, value: unknown): Lost | undefined {
  const member = (holder as Record<string, unknown>)[key];
  const given = types.isDate(member) ? member : value;
  switch (typeof given) {
    case "number":
      return Number.isFinite(given) ? undefined : { what: String(given) };
    case "function":
    case "symbol":
      // Of an instance they are methods of its own, and no data.
      return Array.isArray(holder) || isPlain(holder) ? { what: `a ${typeof given}` } : undefined;
    case "object":
      return given === null ? undefined : lostObject(given);
    default:
      return undefined;
  }
}

function lostObject(value: object): Lost | undefined {
  if (types.isDate(value)) {
    return Number.isNaN(Number(value)) ? { what: "a Date without a time" } : undefined;
  }
  if (types.isAnyArrayBuffer(value) || types.isUint8Array(value)) {
    return { what: named(value), instead: 'text: Buffer.from(it).toString("base64")' };
  }
  if (types.isTypedArray(value)) return { what: named(value), instead: "[...it]" };
  if (Object.keys(value).length > 0 || Array.isArray(value) || isPlain(value)) return undefined;
  if (types.isBoxedPrimitive(value)) return undefined;
  if (types.isPromise(value)) return { what: "a promise that was not awaited" };
  if (types.isMap(value)) return { what: "a Map", instead: "Object.fromEntries(it), or [...it]" };
  if (types.isNativeError(value)) {
    return { what: "an Error", instead: "what matters of it: { message: it.message }" };
  }
  const instead = Symbol.iterator in value ? "[...it]" : undefined;
  return { what: named(value), ...(instead !== undefined && { instead }) };
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** As its class is called. */
function named(value: object): string {
  const { constructor } = value;
  const name = typeof constructor === "function" && constructor.name ? constructor.name : "object";
  return `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}`;
}

function notJson(faults: readonly string[]): BadTaskValueError {
  const message = `the task returned what JSON cannot carry: ${faults.join("; ")}`;
  return new BadTaskValueError("OUTPUT_NOT_JSON", message, faults, true);
}
