import { createHash } from "node:crypto";
import type { Snapshot } from "@millrace/engine";

export type Json = Snapshot["input"];

/** JSON that Postgres would refuse, or would not give back as it went in. */
export interface JsonFault {
  /** JSON pointer; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** Nesting that a stored value may have. What serialises deeper ones may exhaust its stack. */
export const maxJsonDepth = 64;

const mostFaults = 20;

/**
 * What keeps a value from being stored as JSON and read back unchanged; empty for a good one. The walk
 * keeps its own stack: a value nested thousands deep must not exhaust the call stack.
 */
export function checkJson(value: unknown): readonly JsonFault[] {
  const faults: JsonFault[] = [];
  const left: { readonly value: unknown; readonly path: readonly string[] }[] = [
    { value, path: [] },
  ];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: current, path } = next;
    const message = faultOf(current, path.length);
    if (message !== undefined) {
      faults.push({ path: pointer(path), message });
      if (faults.length === mostFaults) return faults;
      continue;
    }
    if (typeof current !== "object" || current === null) continue;
    for (const [key, member] of Object.entries(current)) {
      if (unstorable.test(key)) {
        faults.push({ path: pointer(path), message: "has a key with a NUL or half a character" });
      } else if (member !== undefined || Array.isArray(current)) {
        left.push({ value: member, path: [...path, key] });
      }
    }
  }
  return faults;
}

/** With the `u` flag a surrogate pair is one character, so that only a lone half is a surrogate. */
const unstorable = /[\0\p{Surrogate}]/u;

function faultOf(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case "boolean":
      return undefined;
    case "string":
      return unstorable.test(value) ? "has a NUL or half a character in it" : undefined;
    case "number":
      return Number.isFinite(value) ? undefined : `is ${value}, which is no JSON number`;
    case "object":
      if (value === null) return undefined;
      if (depth >= maxJsonDepth) return `is nested deeper than ${maxJsonDepth} levels`;
      return isPlain(value) ? undefined : "is an object of a class, which has no JSON form";
    default:
      return `is of type ${typeof value}, which has no JSON form`;
  }
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function pointer(path: readonly string[]): string {
  return path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/**
 * One text for equal values: keys in order, no spaces. Types stay apart: 42 and "42" differ, and
 * 1 and 1.0 are the same number. An object's undefined members count as absent.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value instanceof Date) return JSON.stringify(value);
  const members: string[] = [];
  for (const [key, member] of Object.entries(value).toSorted(byKey)) {
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/**
 * The key by which waits are found: 64 bits of a hash over the typed values, as a signed integer in
 * decimal. A hit is a candidate: the whole condition is evaluated after it. Null where a value is an
 * object, which equals nothing.
 *
 * A hash, because a btree key over 2,704 bytes would fail the insert.
 */
export function keyHashOf(values: readonly Json[]): string | null {
  if (values.length === 0) return "0";
  if (values.some((value) => typeof value === "object" && value !== null)) return null;
  const digest = createHash("sha256").update(canonicalJson(values)).digest();
  return digest.readBigInt64BE(0).toString();
}

/**
 * JSON text as it is stored.
 *
 * @throws RangeError where Postgres would refuse it: `json` columns take \u0000 and half characters
 *   at first, and fail whoever looks inside later.
 */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  // JSON.stringify escapes exactly these two, so most texts are cleared by two fast searches.
  if ((text.includes("\\u0000") || text.includes("\\ud")) && escapedUnstorable.test(text)) {
    throw new RangeError("a text with U+0000 or half a surrogate pair in it cannot be stored");
  }
  return text;
}

/** After an even number of backslashes: the escape itself, and not an escaped backslash before a u. */
const escapedUnstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/;

/** The value of a `json` column; undefined where there is none. */
export function parseJson(text: string | null): Json | undefined {
  return text === null ? undefined : (JSON.parse(text) as Json);
}
