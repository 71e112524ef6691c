import type { Fields } from "./outline.ts";
import { fieldsOf, itemsOf } from "./outline.ts";
import type { Kind } from "./schema-kinds.ts";
import { fails, fits, open, outcomeOf } from "./schema-outcomes.ts";
import type { Outcome } from "./schema-outcomes.ts";

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

interface Bound {
  /** The keyword that sets it; empty: none does. */
  readonly key: string;
  readonly at: number;
  /** It is not itself among what it bounds. */
  readonly isOpen: boolean;
  /** In words. */
  readonly said: string;
}

const noBounds: Bounds = {
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

/** What bounds values of a type, the narrowest of each side; undefined where nothing does. */
export function boundsOf(fields: Fields, type: Kind["type"]): Bounds | undefined {
  const given = boundKeywords[type].map((key) => ({ key, at: fields[key] }));
  const lows = given
    .filter(({ key }) => /^(min|exclusiveMin)/.test(key))
    .map((each) => ({ ...each, said: `${each.key} is ${String(each.at)}` }));
  const highs = given
    .filter(({ key }) => /^(max|exclusiveMax)/.test(key))
    .map((each) => ({ ...each, said: `${each.key} ${String(each.at)}` }));
  const { least, most } = impliedBounds(fields, type);
  let { low, high } = noBounds;
  for (const { key, at, said } of [...lows, ...least]) {
    const isOpen = key.startsWith("exclusive");
    if (typeof at === "number" && isAbove(at, { ...low, isOpen: !isOpen })) {
      low = { key, at, isOpen, said };
    }
  }
  for (const { key, at, said } of [...highs, ...most]) {
    const isOpen = key.startsWith("exclusive");
    if (typeof at === "number" && isAbove(-at, { at: -high.at, isOpen: !isOpen })) {
      high = { key, at, isOpen, said };
    }
  }
  return low.key === "" && high.key === "" ? undefined : { low, high };
}

interface Implied {
  readonly key: string;
  readonly at: number;
  readonly said: string;
}

/** Bounds that other keywords come to. */
function impliedBounds(
  fields: Fields,
  type: Kind["type"],
): { readonly least: readonly Implied[]; readonly most: readonly Implied[] } {
  const format = formatBounds[type]?.[String(fields["format"])];
  if (format !== undefined) {
    const [from, to] = format;
    const name = JSON.stringify(fields["format"]);
    return {
      least: [{ key: "format", at: from, said: `the format ${name} begins at ${from}` }],
      most: [{ key: "format", at: to, said: `the format ${name} ends at ${to}` }],
    };
  }
  if (type === "array" && fields["contains"] !== undefined) {
    const { minContains = 1 } = fields;
    if (typeof minContains !== "number") return { least: [], most: [] };
    const said = `contains asks for ${minContains}`;
    return { least: [{ key: "contains", at: minContains, said }], most: [] };
  }
  if (type !== "object") return { least: [], most: [] };
  const required = requiredBy(fields).size;
  const allowed = Object.keys(fieldsOf(fields["properties"])).length;
  const isClosed =
    fields["additionalProperties"] === false && fields["patternProperties"] === undefined;
  return {
    least: required > 0 ? [{ key: "required", at: required, said: `required is ${required}` }] : [],
    most: isClosed
      ? [{ key: "additionalProperties", at: allowed, said: `there can be ${allowed}` }]
      : [],
  };
}

/** Members that an object must have, be it since it has another one. */
export function requiredBy(fields: Fields): ReadonlySet<string> {
  const dependent = fieldsOf(fields["dependentRequired"]);
  const required = new Set<string>();
  const add = (names: unknown): void => {
    for (const name of itemsOf(names)) {
      if (typeof name !== "string" || required.has(name)) continue;
      required.add(name);
      if (Object.hasOwn(dependent, name)) add(dependent[name]);
    }
  };
  add(fields["required"]);
  return required;
}

/** Numbers and lengths between which all values of a format lie. */
const formatBounds: Readonly<
  Partial<Record<Kind["type"], Readonly<Record<string, readonly [number, number]>>>>
> = {
  number: { int32: [-(2 ** 31), 2 ** 31 - 1] },
  string: {
    date: [10, 10],
    time: [9, Infinity],
    "date-time": [20, Infinity],
    ipv4: [7, 15],
    ipv6: [2, 45],
    uuid: [36, 45],
    email: [5, Infinity],
  },
};

/** Whether the bounds leave anything. */
export function ofBounds(found: Bounds, kind: Kind): Outcome {
  const { low, high } = found;
  if (kind.key !== undefined) {
    const size = sizeOf(kind.value);
    return outcomeOf(isAbove(size, low) && isAbove(-size, { ...high, at: -high.at }));
  }
  const isAny = isAbove(high.at, { ...low, isOpen: low.isOpen || high.isOpen });
  if (isAny && kind.isInteger === true && wholeNumbersIn(found)?.length === 0) return fails;
  return isAny ? open : fails;
}

/** Those within the bounds; undefined where they are too many to look at each. */
function wholeNumbersIn({ low, high }: Bounds): readonly number[] | undefined {
  const first = low.isOpen ? Math.floor(low.at) + 1 : Math.ceil(low.at);
  const last = high.isOpen ? Math.ceil(high.at) - 1 : Math.floor(high.at);
  const count = Math.max(last - first + 1, 0);
  return count <= mostWhole
    ? Array.from({ length: count }, (_, index) => first + index)
    : undefined;
}

const mostWhole = 100;

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

export function ofMultiples(fields: Fields, { value, isInteger }: Kind): Outcome {
  const factor = fields["multipleOf"];
  // What is no factor is reported as such.
  if (typeof factor !== "number" || factor <= 0) return open;
  if (value !== undefined) return outcomeOf(isMultiple(value as number, factor));
  const found = boundsOf(fields, "number");
  if (found === undefined) return open;
  const [low, high] = [found.low.at / factor, found.high.at / factor];
  if (Math.ceil(low - precision) > Math.floor(high + precision)) return fails;
  const whole = isInteger === true ? wholeNumbersIn(found) : undefined;
  return whole?.every((each) => !isMultiple(each, factor)) === true ? fails : open;
}

function isMultiple(value: number, factor: number): boolean {
  const quotient = value / factor;
  return Math.abs(Math.round(quotient) - quotient) <= precision;
}

// Texts and formats

/** Whether a text that a schema names is of a format; undefined where that is not known. */
export type HasFormat = (format: string, text: string) => boolean | undefined;

/** Of texts that no schema names all that is known are their lengths. */
export function ofFormat(format: unknown, { value, isInteger }: Kind, has: HasFormat): Outcome {
  if (typeof format !== "string") return open;
  if (typeof value === "string") return outcomeOf(has(format, value));
  // Its bounds are looked at as such.
  const isWhole = format === "int32" || format === "int64";
  if (isInteger !== undefined && isWhole) return outcomeOf(isInteger);
  return value === undefined ? open : fits;
}

/** How many steps matching takes at most: without a bound where a group is repeated, or gone back to. */
export function stepsOf(pattern: string, text: string): number {
  const bare = pattern
    .replace(/\\[^1-9k]/gu, "a")
    .replace(/\[[^\]]*\]/gu, "a")
    .replace(/\(\?[:=!]/gu, "(");
  if (/\)[*+?{]|\\|\(\?/u.test(bare)) return Infinity;
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

/** Those that say more of any value of a type than is worked out. */
export const leftOpen: Readonly<Record<Kind["type"], readonly string[]>> = {
  null: [],
  boolean: [],
  number: [],
  string: ["formatMinimum", "formatMaximum", "formatExclusiveMinimum", "formatExclusiveMaximum"],
  array: ["unevaluatedItems"],
  object: ["unevaluatedProperties", "dependencies"],
};

/** Those that look into a value, which are worked out for one that the schema names. */
export const lookInside: Readonly<Record<"array" | "object", readonly string[]>> = {
  array: ["items", "prefixItems", "contains", "uniqueItems"],
  object: [
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
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
  "multipleOf",
  "pattern",
  "format",
  ...Object.values(leftOpen).flat(),
  ...Object.values(lookInside).flat(),
  ...Object.values(boundKeywords).flat(),
]);
