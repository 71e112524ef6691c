import { BOUNDS } from "./bounds.ts";
import { pointer, type Problem } from "./schema-problems.ts";

/** Where a text stops being JSON. `position` counts UTF-16 code units from 0, the others from 1. */
export interface SyntaxFault {
  readonly position: number;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export type Scan = { readonly syntax: SyntaxFault } | { readonly faults: readonly Problem[] };

/** Faults reported at most; whoever sends more knows enough. */
const MAX_FAULTS = 100;

/**
 * Reads a JSON text token by token, for what a parsed value no longer shows: where exactly it is
 * malformed, where it is nested too deep, and which numbers JavaScript would change. Slower than
 * `JSON.parse`, so it runs only on texts that may hold such a thing.
 *
 * It keeps its own stack, and looks no further into a text that is nested too deep.
 */
export function scanJson(source: string): Scan {
  const faults: Problem[] = [];
  /** The containers around the place, each with the key or index of the member being read. */
  const path: (string | number)[] = [];
  let position = 0;

  const fail = (message: string): Scan => ({ syntax: syntaxFault(source, position, message) });
  const skipSpace = () => {
    while (SPACE.has(source.charCodeAt(position))) position += 1;
  };
  const match = (pattern: RegExp) => {
    pattern.lastIndex = position;
    const found = pattern.exec(source)?.[0];
    if (found !== undefined) position += found.length;
    return found;
  };
  const string = () => {
    const end = endOfString(source, position);
    if (end === undefined) return undefined;
    const found = source.slice(position, end);
    position = end;
    return found;
  };
  const key = () => {
    const found = string();
    if (found === undefined) return false;
    path.push(JSON.parse(found) as string);
    skipSpace();
    if (source[position] !== ":") return false;
    position += 1;
    return true;
  };

  for (;;) {
    skipSpace();
    const start = source[position];
    if (start === "{" || start === "[") {
      if (path.length >= BOUNDS.depth) {
        const message = `nested deeper than ${BOUNDS.depth} levels`;
        return { faults: [...faults, { path: pointer(path), code: "TOO_DEEP", message }] };
      }
      position += 1;
      skipSpace();
      const end = start === "{" ? "}" : "]";
      if (source[position] === end) {
        position += 1;
      } else if (start === "[") {
        path.push(0);
        continue;
      } else if (key()) {
        continue;
      } else {
        return fail('expected a member, as "name": value');
      }
    } else if (string() === undefined && match(WORD) === undefined) {
      const number = match(NUMBER);
      if (number === undefined) return fail(expectedValue(source, position));
      const message = faultOfNumber(number);
      if (message !== undefined && faults.length < MAX_FAULTS) {
        faults.push({ path: pointer(path), code: "BAD_NUMBER", message });
      }
    }

    // A value has ended: so may the containers around it.
    for (;;) {
      skipSpace();
      const member = path.at(-1);
      if (member === undefined) {
        return position < source.length ? fail("expected nothing more") : { faults };
      }
      const next = source[position];
      const isList = typeof member === "number";
      if (next === ",") {
        position += 1;
        skipSpace();
        path.pop();
        if (isList) path.push(member + 1);
        else if (!key()) return fail('expected a member, as "name": value');
        break;
      }
      if (next !== (isList ? "]" : "}")) return fail(`expected "," or "${isList ? "]" : "}"}"`);
      position += 1;
      path.pop();
    }
  }
}

const SPACE = new Set([0x20, 0x0a, 0x0d, 0x09]);
const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Where the string that begins here ends; `undefined` when none begins, or it is malformed. */
function endOfString(source: string, start: number): number | undefined {
  if (source[start] !== '"') return undefined;
  for (let index = start + 1; index < source.length; index += 1) {
    const found = source[index];
    if (found === '"') return index + 1;
    if (found === "\\") {
      ESCAPE.lastIndex = index;
      const escape = ESCAPE.exec(source)?.[0];
      if (escape === undefined) return undefined;
      index += escape.length - 1;
    } else if (source.charCodeAt(index) < 0x20) {
      return undefined;
    }
  }
  return undefined;
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

function expectedValue(source: string, position: number): string {
  const found = source[position];
  if (found === undefined) return "expected a value, found the end";
  if (found === '"') return "a string that does not end, or holds a bad escape or a line break";
  return `expected a value, found ${JSON.stringify(found)}`;
}

function syntaxFault(source: string, position: number, message: string): SyntaxFault {
  const before = source.slice(0, position);
  const line = before.split("\n").length;
  const column = position - (before.lastIndexOf("\n") + 1) + 1;
  return { position, line, column, message };
}

/**
 * Why a number would not come back as it was sent; `undefined` when it would. The same value in
 * another notation (`1.0`, `1e2`) is the same number.
 */
export function faultOfNumber(token: string): string | undefined {
  const value = Number(token);
  // Fifteen significant digits survive anywhere in the range of normal numbers.
  if (token.length <= 15 && Math.abs(value) > 1e-300 && Number.isFinite(value)) return undefined;
  const shown = token.length <= 40 ? token : `${token.slice(0, 37)}…`;
  if (!Number.isFinite(value)) return `${shown} is too large for a number; send it as a string`;
  if (Object.is(value, -0)) return "negative zero would come back as 0; send 0";
  return isSameDecimal(token, String(value))
    ? undefined
    : `${shown} would come back as ${value}; send it as a string`;
}

function isSameDecimal(a: string, b: string): boolean {
  const [left, right] = [decimalOf(a), decimalOf(b)];
  return left.digits === right.digits && left.exponent === right.exponent;
}

/** Sign and significant digits, and the power of ten of the last one. */
function decimalOf(token: string): { readonly digits: string; readonly exponent: number } {
  const [mantissa = "", power = "0"] = token.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const sign = whole.startsWith("-") ? "-" : "";
  const all = (whole + fraction).replace(/^-?0*/, "");
  const digits = all.replace(/0+$/, "");
  if (digits === "") return { digits: "0", exponent: 0 };
  const exponent = Number(power) - fraction.length + (all.length - digits.length);
  return { digits: sign + digits, exponent };
}
