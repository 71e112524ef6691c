import type { KnownType } from "./shape.ts";

/**
 * Types of functions and methods, for those where they are always the same: the rest takes and gives
 * anything, as far as anybody knows. A test calls each with values of every type.
 */
export interface Signature {
  /** Of every argument; of any other type the call fails. */
  readonly takes?: readonly KnownType[];
  readonly gives?: readonly KnownType[];
}

const missing = ["undefined", "null"] as const;
const list: Signature = { takes: ["array", ...missing] };
const toList: Signature = { ...list, gives: ["array"] };
const someObject: Signature = { takes: ["object", ...missing] };
const number: Signature = { takes: ["number"], gives: ["number"] };
const text: Signature = { takes: ["string", ...missing], gives: ["string", ...missing] };
const gives = (...types: readonly KnownType[]): Signature => ({ gives: types });

/** Only the first argument is looked at, unless all are of one kind. */
export const functionSignatures: ReadonlyMap<string, Signature> = new Map([
  ["first", list],
  ["last", list],
  ["reverse", toList],
  ["sort", toList],
  ["unique", toList],
  ["flatten", toList],
  ["pluck", toList],
  ["where", toList],
  ["find", list],
  ["fromEntries", { ...list, gives: ["object"] }],
  ["keys", { ...someObject, gives: ["array"] }],
  ["values", { ...someObject, gives: ["array"] }],
  ["entries", { ...someObject, gives: ["array"] }],
  ["pick", { ...someObject, gives: ["object"] }],
  ["omit", { ...someObject, gives: ["object"] }],
  ["merge", { ...someObject, gives: ["object"] }],
  ["sum", { takes: ["number", "array", ...missing], gives: ["number"] }],
  ["round", number],
  ["floor", number],
  ["ceil", number],
  ["abs", number],
  ["range", { takes: ["number"], gives: ["array"] }],
  ["lower", text],
  ["upper", text],
  ["trim", text],
  ["urlEncode", gives("string", "undefined")],
  ["string", gives("string", "undefined")],
  ["json", gives("string", "undefined")],
  ["size", { takes: ["string", "array", "object", ...missing], gives: ["number"] }],
  ["number", gives("number")],
  ["boolean", gives("boolean")],
  ["isDefined", gives("boolean")],
  ["isEmpty", gives("boolean")],
  ["equals", gives("boolean")],
  ["has", gives("boolean")],
  ["type", gives("string")],
  ["now", gives("string")],
  ["timestamp", gives("number", "undefined")],
  ["isoTime", { takes: ["number"], gives: ["string"] }],
  ["dateAdd", gives("string")],
  ["dateDiff", gives("number")],
]);

/** What methods give, whatever they are called on. */
export const methodResults: ReadonlyMap<string, readonly KnownType[]> = new Map<
  string,
  readonly KnownType[]
>([
  ["charAt", ["string"]],
  ["endsWith", ["boolean"]],
  ["includes", ["boolean"]],
  ["indexOf", ["number"]],
  ["join", ["string"]],
  ["lastIndexOf", ["number"]],
  ["padEnd", ["string"]],
  ["padStart", ["string"]],
  ["repeat", ["string"]],
  ["replace", ["string"]],
  ["replaceAll", ["string"]],
  ["split", ["array"]],
  ["startsWith", ["boolean"]],
  ["substring", ["string"]],
  ["toFixed", ["string"]],
  ["toLowerCase", ["string"]],
  ["toUpperCase", ["string"]],
  ["trim", ["string"]],
  ["trimEnd", ["string"]],
  ["trimStart", ["string"]],
]);
