import type { Fields } from "./outline.ts";
import { below, fieldsOf, itemsOf } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import { decoded, lookUp } from "./schema-references.ts";

/**
 * Whether any input fits a schema. It is worked out for every kind of value that there is: those of each type,
 * and each one that the schema names itself. Where it depends on more what a keyword makes of a kind, both count
 * as possible, so that nothing is refused that some input passes.
 *
 * Keywords are looked at as the validator does it (Ajv with `allErrors`): all of them, and all alternatives, but
 * inside of `not` and `if` only up to the first that fails. What comes back to itself for the same value has no
 * end, whatever stands beside it.
 */

/**
 * A schema that no input fits would register a workflow that can never be started: its keywords rule each other
 * out, or its check never ends.
 */
export function checkSchemaFits(schema: unknown, list: ProblemList): void {
  const look = lookAt(schema);
  if (look.fits) return;
  const add = (path: string, message: string) =>
    list.add(`/inputSchema${path}`, "NOTHING_FITS", message);
  if (look.endless !== undefined) {
    const message =
      "it refers back to itself before any part of the input is looked at, so that its check never ends and no instance could start";
    add(look.endless, message);
  } else if (look.faults.size > 0) {
    for (const [path, fault] of look.faults) add(path, `${fault}; no instance could ever start`);
  } else {
    const message =
      "no input fits it, so that no instance could ever start; leave it out where any input is fine";
    add("", message);
  }
}

interface Look {
  readonly fits: boolean;
  /** JSON pointer of the keyword by which the schema comes back to itself. */
  readonly endless: string | undefined;
  /** By JSON pointer of a keyword, why nothing can fit it. */
  readonly faults: ReadonlyMap<string, string>;
}

/** What may come of a schema for a kind of value: one of these, or several of them as bits. */
const fits = 1;
const fails = 2;
const endless = 4;
const open = fits | fails;

/** A check that is made only when its turn comes. */
type Check = () => number;

/** Values of one type, or one value. */
interface Kind {
  readonly type: "null" | "boolean" | "number" | "string" | "array" | "object";
  readonly isInteger?: boolean;
  /** JSON of the value, with sorted keys; absent: it may be any that the schema does not name. */
  readonly key?: string;
  readonly value?: unknown;
}

/** All that there is where a schema names no values; what input there is most of comes first. */
const everyKind: readonly Kind[] = [
  { type: "object" },
  { type: "string" },
  { type: "array" },
  { type: "number", isInteger: true },
  { type: "number", isInteger: false },
  ...[true, false, null].map(kindOf),
];

/** Values that a schema names; of more each may be any. */
const maxNamed = 100;
/** Schemas that are looked at, all together; beyond that anything may fit. */
const maxLooks = 50_000;
/** Steps of a regular expression that take as long as a look at a schema. */
const stepsOfLook = 1_000;
/** Schemas that are looked at on the way to one, of its own value and of those around it. */
const maxDepth = 400;

/** How a schema is come to. */
interface Way {
  readonly kind: Kind;
  readonly path: string;
  /** The keyword that applies it. */
  readonly by: string;
  /** Keywords are looked at up to the first that fails, else all of them are. */
  readonly inOrder: boolean;
  /** What does not fit it does not fit the whole. */
  readonly isNeeded: boolean;
  /** Schemas of this same value that are being looked at. */
  readonly under: readonly Pick<Way & { schema: unknown }, "schema" | "inOrder">[];
}

function lookAt(root: unknown): Look {
  const named = namedIn(root);
  const kinds = [...everyKind, ...named.kinds];
  const faults = new Map<string, string>();
  /** Schemas of what must be inside, that something fits. */
  const fitting = new Set<unknown>();
  /** Those that have been looked at since the last of them was found to fit, and whether that is over. */
  const looked = new Map<unknown, "NOW" | "DONE">();
  // Where a reference has looked at every member and element, the validator spares alternatives beside it.
  const mayEvaluateAll =
    ["additionalProperties", "unevaluatedProperties"].some((name) => named.names.has(name)) &&
    ["items", "unevaluatedItems"].some((name) => named.names.has(name));
  let back: string | undefined;
  let left = maxLooks;
  let depth = 0;
  return { fits: root === undefined || rootFits(), endless: back, faults };

  /**
   * Input has an end, so that what must have its own kind inside fits nothing, unless there is another way:
   * nothing fits at first, and it is looked at again until no more does.
   */
  function rootFits(): boolean {
    for (;;) {
      const before = fitting.size;
      looked.clear();
      faults.clear();
      if (anyFits(root, "")) return true;
      if (fitting.size === before) return false;
    }
  }

  function anyFits(schema: unknown, path: string, isNeeded = true): boolean {
    const way = { path, by: path, inOrder: false, isNeeded, under: [] };
    return kinds.some((kind) => (outcome(schema, { ...way, kind }) & fits) !== 0);
  }

  function outcome(schema: unknown, way: Way): number {
    const { path, by, inOrder, under, isNeeded } = way;
    if (schema === false && isNeeded) faults.set(path, "nothing fits false");
    if (schema === false) return fails;
    if (typeof schema !== "object" || schema === null) return fits;
    // What a reference below another `$id` means is not looked for.
    const isForeign = schema !== root && Object.hasOwn(schema, "$id");
    if (isForeign || depth >= maxDepth || left <= 0) return open;
    left -= 1;
    if (under.some((each) => each.schema === schema && each.inOrder === inOrder)) {
      back ??= by;
      return endless;
    }
    const inside = { ...way, under: [...under, { schema, inOrder }] };
    const fields = fieldsOf(schema);
    // A value of another type is looked at all the same.
    depth += 1;
    const rest = all(checksOf(fields, inside), inOrder);
    depth -= 1;
    return combined(ofType(fields, way.kind), rest, bothFit);
  }

  /** In the order in which they are made. */
  function checksOf(fields: Fields, way: Way): readonly Check[] {
    const { kind, path, inOrder, isNeeded } = way;
    const { $ref } = fields;
    const apply = (value: unknown, at: string, more: Partial<Way> = {}): number =>
      outcome(value, { ...way, path: `${path}${at}`, by: `${path}${at}`, ...more });
    const each = (key: string, more?: Partial<Way>): readonly Check[] =>
      itemsOf(fields[key]).map((value, index) => () => apply(value, `/${key}/${index}`, more));
    const asked = { inOrder: true, isNeeded: false };
    const oneOfSome = { isNeeded: false };

    const checks: Check[] = [];
    const add = (key: string, check: Check): void => {
      if (fields[key] !== undefined) checks.push(check);
    };
    add("$dynamicRef", () => open);
    add("$ref", () => {
      const target = lookUp(root, String($ref));
      if (target === undefined) return open;
      const at = decoded(String($ref).slice(1));
      return outcome(target, { ...way, path: at, by: `${path}/$ref`, inOrder: false });
    });
    add("const", () => isAmong([fields["const"]], kind));
    add("enum", () => isAmong(itemsOf(fields["enum"]), kind));
    add("not", () => turned(apply(fields["not"], "/not", asked)));
    add("anyOf", () => some(each("anyOf", oneOfSome), $ref !== undefined && mayEvaluateAll));
    add("oneOf", () => one(each("oneOf", oneOfSome)));
    add("allOf", () => all(each("allOf"), inOrder));
    const consequences = ["then", "else"].map((key) => isAlwaysFit(fields[key]));
    if (fields["if"] !== undefined && !consequences.every(Boolean)) {
      checks.push(() => {
        const met = apply(fields["if"], "/if", asked);
        return (
          (met & endless) |
          (met & fits && apply(fields["then"], "/then", oneOfSome)) |
          (met & fails && apply(fields["else"], "/else", oneOfSome))
        );
      });
    }
    checks.push(() => ofBounds(fields, kind, path, isNeeded));
    if (kind.type === "number") add("multipleOf", () => ofMultiples(fields, kind));
    if (kind.type === "string") add("pattern", () => ofPattern(fields["pattern"], kind));
    if (kind.type === "array" && kind.key === undefined) {
      checks.push(() => (lacksElement(fields, path, isNeeded) ? fails : fits));
    }
    if (kind.type === "object" && kind.key === undefined) {
      checks.push(() => (lacksMember(fields, path, isNeeded) ? fails : fits));
    }
    if (checkedFurther[kind.type].some((key) => fields[key] !== undefined)) checks.push(() => open);
    return checks;
  }

  /** Of texts that no schema names nothing is known. */
  function ofPattern(pattern: unknown, { value }: Kind): number {
    if (typeof value !== "string" || typeof pattern !== "string") return open;
    const looks = Math.ceil(stepsOf(pattern, value) / stepsOfLook);
    if (looks >= left) return open;
    left -= looks;
    try {
      return new RegExp(pattern, "u").test(value) ? fits : fails;
    } catch {
      // What is no regular expression is reported as such.
      return open;
    }
  }

  function isAmong(values: readonly unknown[], kind: Kind): number {
    const keys = values.map(keyOf);
    if (kind.key !== undefined) return keys.includes(kind.key) ? fits : fails;
    const mayBe = keys.some((key, index) => {
      return !named.keys.has(key) && kindOf(values[index]).type === kind.type;
    });
    return mayBe ? open : fails;
  }

  function ofBounds(fields: Fields, kind: Kind, path: string, isNeeded: boolean): number {
    const found = boundsOf(fields, kind.type);
    if (found === undefined) return fits;
    const { low, high } = found;
    if (kind.key !== undefined) {
      const size = sizeOf(kind.value);
      return isAbove(size, low) && isAbove(-size, { ...high, at: -high.at }) ? fits : fails;
    }
    const isAny = isAbove(high.at, { ...low, isOpen: low.isOpen || high.isOpen });
    if (isAny && kind.isInteger === true && wholeNumbersIn(found)?.length === 0) return fails;
    if (isAny) return open;
    const fault = `${low.key} is ${low.at}, and ${high.key} ${high.at}`;
    if (isNeeded) faults.set(below(path, low.key), fault);
    return fails;
  }

  /** Whether there must be one that nothing fits. */
  function lacksElement(fields: Fields, path: string, isNeeded: boolean): boolean {
    const first = itemsOf(fields["prefixItems"]);
    const least = boundsOf(fields, "array")?.low.at ?? 0;
    const needed: (readonly [unknown, ...string[]])[] = first
      .slice(0, Math.max(least, 0))
      .map((schema, index) => [schema, "prefixItems", String(index)] as const);
    if (least > first.length) needed.push([fields["items"], "items"]);
    if (fields["minContains"] !== 0) needed.push([fields["contains"], "contains"]);
    return needed.some(([schema, ...at]) => !innerFits(schema, below(path, ...at), isNeeded));
  }

  /** Whether one is required that can never be there. */
  function lacksMember(fields: Fields, path: string, isNeeded: boolean): boolean {
    const properties = fieldsOf(fields["properties"]);
    const mayMatch = Object.keys(fieldsOf(fields["patternProperties"])).length > 0;
    const names = itemsOf(fields["required"]).filter((name) => typeof name === "string");
    return names.some((name) => {
      const isNamed = Object.hasOwn(properties, name);
      if (!isNamed && mayMatch) return false;
      const key = isNamed ? "properties" : "additionalProperties";
      const schema = isNamed ? properties[name] : fields[key];
      if (!isNamed && schema === false && isNeeded) {
        const fault = `${JSON.stringify(name)} is required, and additionalProperties false allows none of that name`;
        faults.set(below(path, "required"), fault);
      }
      if (!isNamed && schema === false) return true;
      return !innerFits(schema, isNamed ? below(path, key, name) : below(path, key), isNeeded);
    });
  }

  function innerFits(schema: unknown, path: string, isNeeded: boolean): boolean {
    if (schema === undefined || fitting.has(schema)) return true;
    const look = looked.get(schema);
    if (look === "NOW" && isNeeded)
      faults.set(path, "what fits it must have the same inside again");
    if (look !== undefined) return false;
    looked.set(schema, "NOW");
    const can = anyFits(schema, path, isNeeded);
    looked.set(schema, "DONE");
    if (can) fitting.add(schema);
    return can;
  }
}

// Kinds of values

/** The values that a schema names: each is a kind of its own. And the names of all that is in it. */
function namedIn(root: unknown) {
  const kinds = new Map<string, Kind>();
  const keys = new Set(everyKind.flatMap(({ key }) => key ?? []));
  const names = new Set<string>();
  const stack = [root];
  for (let each = stack.pop(); each !== undefined; each = stack.pop()) {
    if (typeof each !== "object" || each === null) continue;
    const fields = fieldsOf(each);
    const constant = Object.hasOwn(fields, "const") ? [fields["const"]] : [];
    for (const value of [...constant, ...itemsOf(fields["enum"])]) {
      const kind = kindOf(value);
      if (kinds.size >= maxNamed || keys.has(kind.key)) continue;
      keys.add(kind.key);
      kinds.set(kind.key, kind);
    }
    for (const name of Object.keys(fields)) names.add(name);
    stack.push(...(Object.values(each) as unknown[]));
  }
  return { keys, kinds: [...kinds.values()], names };
}

function kindOf(value: unknown): Kind & { readonly key: string } {
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const isInteger = Number.isInteger(value);
  return { type: type as Kind["type"], isInteger, key: keyOf(value), value };
}

/** The same for what is the same in content. */
function keyOf(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}

// Keywords

function ofType({ type, nullable }: Fields, kind: Kind): number {
  if (type === undefined || (nullable === true && kind.type === "null")) return fits;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  // What is no type is reported as such.
  if (!types.every((each) => typeNames.has(each))) return fits;
  const isOne = types.includes(kind.type) || (kind.isInteger === true && types.includes("integer"));
  return isOne ? fits : fails;
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

/** Those that say more of values of a type than is looked at here. */
const checkedFurther: Readonly<Record<Kind["type"], readonly string[]>> = {
  null: [],
  boolean: [],
  number: ["format"],
  string: ["format"],
  array: ["items", "prefixItems", "contains", "uniqueItems", "unevaluatedItems"],
  object: [
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

const bounds: Readonly<Partial<Record<Kind["type"], readonly [string, string][]>>> = {
  number: [
    ["minimum", "maximum"],
    ["exclusiveMinimum", "exclusiveMaximum"],
  ],
  string: [["minLength", "maxLength"]],
  array: [["minItems", "maxItems"]],
  object: [["minProperties", "maxProperties"]],
};

/** How far from a whole number a quotient may be, as the validator is set (`multipleOfPrecision`). */
const precision = 1e-9;

function ofMultiples(fields: Fields, { value, isInteger }: Kind): number {
  const factor = fields["multipleOf"];
  // What is no factor is reported as such.
  if (typeof factor !== "number" || factor <= 0) return open;
  if (value !== undefined) return isMultiple(value as number, factor) ? fits : fails;
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

/**
 * How many steps matching takes at most: without a bound where a group is repeated, or gone back to.
 */
function stepsOf(pattern: string, text: string): number {
  const bare = pattern
    .replace(/\\[^1-9k]/gu, "a")
    .replace(/\[[^\]]*\]/gu, "a")
    .replace(/\(\?[:=!]/gu, "(");
  if (/\)[*+?{]|\\|\(\?/u.test(bare)) return Infinity;
  const repetitions = bare.match(/[*+?{]/gu)?.length ?? 0;
  return pattern.length * (text.length + 1) ** (repetitions + 1);
}

interface Bounds {
  readonly low: Bound;
  readonly high: Bound;
}

interface Bound {
  readonly key: string;
  readonly at: number;
  /** It is not itself among what it bounds. */
  readonly isOpen: boolean;
}

/** The narrowest; undefined where there is none. */
function boundsOf(fields: Fields, type: Kind["type"]): Bounds | undefined {
  let low: Bound = { key: "", at: -Infinity, isOpen: false };
  let high: Bound = { key: "", at: Infinity, isOpen: false };
  for (const [least, most] of bounds[type] ?? []) {
    const [from, to] = [fields[least], fields[most]];
    const isOpen = least.startsWith("exclusive");
    if (typeof from === "number" && isAbove(from, { ...low, isOpen: !isOpen })) {
      low = { key: least, at: from, isOpen };
    }
    if (typeof to === "number" && isAbove(-to, { at: -high.at, isOpen: !isOpen })) {
      high = { key: most, at: to, isOpen };
    }
  }
  return low.key === "" && high.key === "" ? undefined : { low, high };
}

/** Those within the bounds; undefined where they are too many to look at each. */
function wholeNumbersIn({ low, high }: Bounds): readonly number[] | undefined {
  const first = low.isOpen ? Math.floor(low.at) + 1 : Math.ceil(low.at);
  const last = high.isOpen ? Math.ceil(high.at) - 1 : Math.floor(high.at);
  const count = Math.max(last - first + 1, 0);
  return count <= maxNamed ? Array.from({ length: count }, (_, index) => first + index) : undefined;
}

function isAbove(value: number, { at, isOpen }: Pick<Bound, "at" | "isOpen">): boolean {
  return isOpen ? value > at : value >= at;
}

function sizeOf(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "string") return Array.from(value).length;
  return Object.keys(value as object).length;
}

/** Such a schema is not even looked at. */
function isAlwaysFit(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return schema !== false;
  return Object.keys(schema).every((key) => !keywords.has(key));
}

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
  ...Object.values(checkedFurther).flat(),
  ...Object.values(bounds).flat(2),
]);

// Outcomes of several checks

/** All fit; where they are made in their order, none after one that fails. */
function all(checks: readonly Check[], inOrder: boolean): number {
  let soFar = fits;
  for (const check of checks) {
    if (inOrder && (soFar & fits) === 0) break;
    const next = check();
    soFar = inOrder ? (soFar & ~fits) | next : combined(soFar, next, bothFit);
  }
  return soFar;
}

/** @param mayStop Those after one that fits may be left out. */
function some(checks: readonly Check[], mayStop: boolean): number {
  let soFar = fails;
  let stopped = 0;
  for (const check of checks) {
    if (mayStop) stopped |= soFar & fits;
    soFar = combined(soFar, check(), oneFits);
  }
  return soFar | stopped;
}

/** Exactly one; none is looked at after a second one that fits. */
function one(checks: readonly Check[]): number {
  let none = true;
  let single = false;
  let done = 0;
  for (const check of checks) {
    if (!none && !single) break;
    const next = check();
    done |= next & endless;
    if (single && next & fits) done |= fails;
    single = (single && (next & fails) !== 0) || (none && (next & fits) !== 0);
    none = none && (next & fails) !== 0;
  }
  return done | (none ? fails : 0) | (single ? fits : 0);
}

const bothFit = (left: boolean, right: boolean): boolean => left && right;
const oneFits = (left: boolean, right: boolean): boolean => left || right;

function turned(outcome: number): number {
  return (outcome & endless) | (outcome & fits && fails) | (outcome & fails && fits);
}

/** Of two that are both looked at: what has no end decides. */
function combined(
  left: number,
  right: number,
  join: (left: boolean, right: boolean) => boolean,
): number {
  let outcome = (left | right) & endless;
  for (const a of [fits, fails]) {
    for (const b of [fits, fails]) {
      if (left & a && right & b) outcome |= join(a === fits, b === fits) ? fits : fails;
    }
  }
  return outcome;
}
