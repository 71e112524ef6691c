import type { Fields } from "../outline.ts";
import type { Kind } from "./kinds.ts";
import { fits, outcomeOf } from "./outcomes.ts";
import type { Outcome } from "./outcomes.ts";

// What single keywords of a schema, which apply no other schema, make of a kind of value.

export function ofType({ type, nullable }: Fields, kind: Kind): Outcome {
  if (type === undefined || (nullable === true && kind.type === "null")) return fits;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  // What is no type is reported as such.
  if (!types.every((each) => typeNames.has(each))) return fits;
  const isOne = types.includes(kind.type) || (kind.isInteger === true && types.includes("integer"));
  return outcomeOf(isOne);
}

const typeNames: ReadonlySet<unknown> = new Set([
  "null",
  "boolean",
  "number",
  "integer",
  "string",
  "array",
  "object",
]);

// Bounds

export interface Bounds {
  readonly low: Bound;
  readonly high: Bound;
}

/** One side of what a value, a length or a count lies between. */
export interface Bound {
  /** The keyword that sets it; empty: none does. */
  readonly key: string;
  readonly at: number;
  /** It is not itself among what it bounds. */
  readonly isOpen: boolean;
  /** In words. */
  readonly said: string;
}

export const noBounds: Bounds = {
  low: { key: "", at: -Infinity, isOpen: false, said: "" },
  high: { key: "", at: Infinity, isOpen: false, said: "" },
};

/** What each type is bounded in: numbers, lengths, counts of elements and members. */
const boundKeywords = {
  number: ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"],
  string: ["minLength", "maxLength"],
  array: ["minItems", "maxItems"],
  object: ["minProperties", "maxProperties"],
  boolean: [],
  null: [],
} as const satisfies Readonly<Record<Kind["type"], readonly string[]>>;

/** What bounds values of a type, the narrowest of each side. */
export function boundsOf(fields: Fields, type: Kind["type"]): Bounds {
  let bounds = noBounds;
  for (const key of boundKeywords[type]) {
    const at = fields[key];
    if (typeof at !== "number") continue;
    const isLow = /^(min|exclusiveMin)/.test(key);
    const said = `${key}${isLow ? " is" : ""} ${at}`;
    const bound = { key, at, isOpen: key.startsWith("exclusive"), said };
    bounds = narrowed(bounds, isLow ? { low: bound } : { high: bound });
  }
  const ofFormat = type === "number" ? numberFormats[String(fields["format"])] : undefined;
  return ofFormat === undefined ? bounds : narrowed(bounds, ofFormat);
}

/** Of two for each side the narrower one. */
export function narrowed(bounds: Bounds, { low, high }: Partial<Bounds>): Bounds {
  const isNarrower = (bound: Bound, than: Bound, sign: number): boolean =>
    isAbove(sign * bound.at, { at: sign * than.at, isOpen: !bound.isOpen });
  return {
    low: low && isNarrower(low, bounds.low, 1) ? low : bounds.low,
    high: high && isNarrower(high, bounds.high, -1) ? high : bounds.high,
  };
}

/** Numbers between which all of a format lie. */
const numberFormats: Readonly<Record<string, Bounds>> = {
  int32: {
    low: {
      key: "format",
      at: -(2 ** 31),
      isOpen: false,
      said: `the format "int32" begins at ${-(2 ** 31)}`,
    },
    high: {
      key: "format",
      at: 2 ** 31 - 1,
      isOpen: false,
      said: `the format "int32" ends at ${2 ** 31 - 1}`,
    },
  },
};

/** Whether there is anything between the bounds. */
export function isAnyWithin({ low, high }: Bounds): boolean {
  return isAbove(high.at, { ...low, isOpen: low.isOpen || high.isOpen });
}

/** Whether a value, or its size, is within the bounds. */
export function isWithin({ low, high }: Bounds, value: unknown): boolean {
  const size = sizeOf(value);
  return isAbove(size, low) && isAbove(-size, { ...high, at: -high.at });
}

/** Those within the bounds; undefined where they are too many to look at each. */
export function wholeNumbersIn({ low, high }: Bounds): readonly number[] | undefined {
  const first = low.isOpen ? Math.floor(low.at) + 1 : Math.ceil(low.at);
  const last = high.isOpen ? Math.ceil(high.at) - 1 : Math.floor(high.at);
  const count = Math.max(last - first + 1, 0);
  return count <= mostWhole
    ? Array.from({ length: count }, (_, index) => first + index)
    : undefined;
}

const mostWhole = 1_000;

function isAbove(value: number, { at, isOpen }: Pick<Bound, "at" | "isOpen">): boolean {
  return isOpen ? value > at : value >= at;
}

function sizeOf(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "string") return Array.from(value).length;
  return Object.keys(value as object).length;
}

// Numbers

/** How far from a whole number a quotient may be, as the validator is set (`multipleOfPrecision`). */
const precision = 1e-9;

export function isMultiple(value: number, factor: number): boolean {
  const quotient = value / factor;
  return Math.abs(Math.round(quotient) - quotient) <= precision;
}

/** Whether a number within the bounds may be a multiple of all factors. */
export function multiplesIn({ low, high }: Bounds, factors: readonly number[]): boolean {
  const [first, ...others] = factors.toSorted((a, b) => b - a);
  if (first === undefined) return true;
  const from = Math.ceil(low.at / first - precision);
  const to = Math.floor(high.at / first + precision);
  // Quotients that large are not precise enough to tell.
  if (to - from > mostWhole || Math.abs(from) > 1e6 || Math.abs(to) > 1e6) return true;
  for (let times = from; times <= to; times += 1) {
    // With room for what is lost in the division.
    const [least, most] = [(times - 2 * precision) * first, (times + 2 * precision) * first];
    const isOne = others.every((factor) => {
      const quotient = most / factor;
      if (Math.abs(quotient) > 1e6) return true;
      return Math.ceil(least / factor - 2 * precision) <= Math.floor(quotient + 2 * precision);
    });
    if (isOne) return true;
  }
  return false;
}

// Texts and formats

/** What the keywords of one schema say of a format. */
export interface FormatRule {
  readonly format: string;
  /** By keyword, as `formatMinimum`. */
  readonly limits: Readonly<Record<string, string>>;
}

/** What is known of formats by who compiles schemas. */
export interface Formats {
  /** Whether a text is of a format, and within its limits; undefined where that is not known. */
  has(rule: FormatRule, text: string): boolean | undefined;
  /** What all texts of a format match; others may too. */
  patternOf(format: string): TextPattern | undefined;
}

export interface TextPattern {
  readonly pattern: string;
  /** Of the letters of ASCII. */
  readonly ignoreCase: boolean;
  /** Its limits are those of the order of texts. */
  readonly isOrdered: boolean;
}

export const noFormats: Formats = {
  has: () => undefined,
  patternOf: () => undefined,
};

const limitKeywords = [
  "formatMinimum",
  "formatMaximum",
  "formatExclusiveMinimum",
  "formatExclusiveMaximum",
];

export function formatRuleOf(fields: Fields): FormatRule | undefined {
  const { format } = fields;
  if (typeof format !== "string") return undefined;
  const limits = limitKeywords.flatMap((key) => {
    const limit = fields[key];
    return typeof limit === "string" ? [[key, limit] as const] : [];
  });
  return { format, limits: Object.fromEntries(limits) };
}

/** How many steps matching takes at most: without a bound where a group is repeated, or gone back to. */
export function stepsOf(pattern: string, text: string): number {
  const bare = pattern
    .replace(/\\[^1-9k]/gu, "a")
    .replace(/\[[^\]]*\]/gu, "a")
    .replace(/\(\?[:=!]/gu, "(");
  if (/\)[*+{]|\\|\(\?/u.test(bare)) return Infinity;
  const repetitions = bare.match(/[*+?{]/gu)?.length ?? 0;
  return pattern.length * (text.length + 1) ** (repetitions + 1);
}

/** Whether a text matches; undefined for what is no regular expression, which is reported as such. */
export function isMatch(pattern: string, text: string): boolean | undefined {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return undefined;
  }
}

// Which keywords there are

/** Such a schema is not even looked at. */
export function isAlwaysFit(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return schema !== false;
  return Object.keys(schema).every((key) => !keywords.has(key));
}

/** Those that say more of the values of a type. */
export const sayOf: Readonly<Record<Kind["type"], readonly string[]>> = {
  null: [],
  boolean: [],
  number: [...boundKeywords.number, "multipleOf", "format"],
  string: [...boundKeywords.string, "pattern", "format", ...limitKeywords],
  array: [
    ...boundKeywords.array,
    "items",
    "prefixItems",
    "contains",
    "uniqueItems",
    "unevaluatedItems",
  ],
  object: [
    ...boundKeywords.object,
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
  ],
};

const keywords: ReadonlySet<string> = new Set([
  "type",
  "const",
  "enum",
  "nullable",
  "$ref",
  "$dynamicRef",
  "$dynamicAnchor",
  "not",
  "anyOf",
  "oneOf",
  "allOf",
  "if",
  "then",
  "else",
  ...Object.values(sayOf).flat(),
]);
