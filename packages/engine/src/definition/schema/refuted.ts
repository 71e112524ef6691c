import type { Fields } from "../outline.ts";
import { fieldsOf, itemsOf } from "../outline.ts";
import { isAlwaysFit, ofType, sayOf } from "./keywords.ts";
import { keyOf } from "./kinds.ts";
import type { Kind } from "./kinds.ts";
import { fits } from "./outcomes.ts";
import { lookUp } from "./references.ts";

/** Ways for something to be so; in each all of its schemas fit. */
export type Alternatives = readonly (readonly unknown[])[];

const negated = new WeakMap<object, object>();

/** It is made once, so that what comes back to itself is seen to. */
export function not(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema === false;
  const found = negated.get(schema) ?? { not: schema };
  negated.set(schema, found);
  return found;
}

/**
 * What fits where a schema does not, as schemas of their own: one of its keywords fails.
 *
 * @param root Where references are looked up.
 * @returns Undefined where that is not known of one of them, so that it may be anything.
 */
export function openRefuted(root: unknown) {
  const known = new WeakMap<object, Map<string, Alternatives | undefined>>();
  return (schema: unknown, kind: Kind): Alternatives | undefined => {
    if (typeof schema !== "object" || schema === null) return schema === false ? undefined : [];
    const byKind = known.get(schema) ?? new Map<string, Alternatives | undefined>();
    known.set(schema, byKind);
    const key = `${kind.type}${String(kind.isInteger)}`;
    if (!byKind.has(key)) byKind.set(key, refuted(fieldsOf(schema), kind, root));
    return byKind.get(key);
  };
}

/** Of these nothing simpler is known to fail than a schema of the keyword alone. */
const plain: ReadonlySet<string> = new Set(["pattern", "format", "multipleOf", "uniqueItems"]);

function refuted(fields: Fields, kind: Kind, root: unknown): Alternatives | undefined {
  // What stands below another `$id` may refer to anything.
  if ("$id" in fields) return undefined;
  // No value that is not named fits these.
  if (ofType(fields, kind) !== fits || "const" in fields || "enum" in fields) return undefined;
  const keys = Object.keys(fields).filter(
    (key) => (key in applied || sayOf[kind.type].includes(key)) && !isIdle(key, fields, kind),
  );
  const found = keys.map((key) => {
    const ways = { ...applied, ...ofKind }[key]?.(fields[key], fields, root);
    if (!plain.has(key)) return ways;
    const itself = Object.keys(fields).length > 1 ? [not({ [key]: fields[key] })] : [];
    return [[...(ways?.[0] ?? []), ...itself]];
  });
  return found.includes(undefined) ? undefined : found.flatMap((each) => each ?? []);
}

/** Whether nothing of the kind fails by the keyword. */
function isIdle(key: string, fields: Fields, { type, isInteger }: Kind): boolean {
  const value = fields[key];
  if (key === "uniqueItems") return value !== true;
  // Halves and the like divide whole numbers without a loss.
  if (key === "multipleOf") return isInteger === true && isHalved(Number(value));
  if (key !== "format") return inner.has(key) && isAlwaysFit(value);
  const isOfNumbers = numberFormats.has(value);
  if (type === "string") return isOfNumbers;
  return (
    !isOfNumbers ||
    value === "float" ||
    value === "double" ||
    (value === "int64" && isInteger === true)
  );
}

/** Whether it is 1, a half, a quarter and so on. */
function isHalved(factor: number): boolean {
  return factor <= 1 && 2 ** Math.round(Math.log2(factor)) === factor;
}

const numberFormats: ReadonlySet<unknown> = new Set(["int32", "int64", "float", "double"]);

/** Keywords of one schema for what is inside. */
const inner: ReadonlySet<string> = new Set([
  "items",
  "additionalProperties",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

type Refute = (value: unknown, fields: Fields, root: unknown) => Alternatives | undefined;

/** Of more it is not said which two of them fit. */
const maxOneOf = 8;

const applied: Readonly<Record<string, Refute>> = {
  not: (schema) => [[schema]],
  allOf: (schemas) => itemsOf(schemas).map((each) => [not(each)]),
  anyOf: (schemas) => [itemsOf(schemas).map(not)],
  oneOf: (schemas) => {
    const each = itemsOf(schemas);
    if (each.length > maxOneOf) return undefined;
    const two = each.flatMap((one, index) => each.slice(index + 1).map((other) => [one, other]));
    return [each.map(not), ...two];
  },
  if: (schema, { then, else: otherwise }) => [
    ...(then === undefined ? [] : [[schema, not(then)]]),
    ...(otherwise === undefined ? [] : [[not(schema), not(otherwise)]]),
  ],
  $ref: ($ref, _fields, root) => {
    const target = lookUp(root, $ref);
    return target === undefined ? undefined : [[not(target)]];
  },
  $dynamicRef: () => undefined,
};

const least = (key: string, at: unknown): Alternatives | undefined =>
  typeof at === "number" ? [[{ [key]: at }]] : undefined;

function dependents(needed: unknown): Alternatives {
  return Object.entries(fieldsOf(needed)).flatMap(([name, each]) =>
    Array.isArray(each)
      ? each.map((other) => [{ required: [name], properties: { [String(other)]: false } }])
      : [[{ required: [name] }, not(each)]],
  );
}

const ofKind: Readonly<Record<string, Refute>> = {
  minimum: (at) => [[{ exclusiveMaximum: at }]],
  maximum: (at) => [[{ exclusiveMinimum: at }]],
  exclusiveMinimum: (at) => [[{ maximum: at }]],
  exclusiveMaximum: (at) => [[{ minimum: at }]],
  minLength: (at) => least("maxLength", Number(at) - 1),
  maxLength: (at) => least("minLength", Number(at) + 1),
  minItems: (at) => least("maxItems", Number(at) - 1),
  maxItems: (at) => least("minItems", Number(at) + 1),
  minProperties: (at) => least("maxProperties", Number(at) - 1),
  maxProperties: (at) => least("minProperties", Number(at) + 1),
  uniqueItems: () => [[{ minItems: 2 }]],
  prefixItems: (schemas) =>
    itemsOf(schemas).map((each, index, all) => [
      { minItems: index + 1, prefixItems: [...all.slice(0, index).map(() => true), not(each)] },
    ]),
  items: (schema, { prefixItems }) =>
    prefixItems === undefined ? [[{ contains: not(schema) }]] : [[{ minItems: 1 }]],
  contains: (schema, { minContains = 1, maxContains }) => [
    [{ contains: schema, minContains: 0, maxContains: Number(minContains) - 1 }],
    ...(maxContains === undefined
      ? []
      : [[{ contains: schema, minContains: Number(maxContains) + 1 }]]),
  ],
  required: (names) => itemsOf(names).map((name) => [{ properties: { [String(name)]: false } }]),
  properties: (schemas) =>
    Object.entries(fieldsOf(schemas)).map(([name, schema]) => [
      { required: [name], properties: { [name]: not(schema) } },
    ]),
  ...Object.fromEntries(
    ["additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"].map(
      (key) => [key, () => [[{ minProperties: 1 }]]],
    ),
  ),
  unevaluatedItems: () => [[{ minItems: 1 }]],
  ...Object.fromEntries(
    ["dependentRequired", "dependentSchemas", "dependencies"].map((key) => [key, dependents]),
  ),
};

/** Keywords that mean something else beside one another. */
const groups: readonly (readonly string[])[] = [
  ["properties", "patternProperties", "additionalProperties"],
  ["prefixItems", "items"],
  ["contains", "minContains", "maxContains"],
  ["if", "then", "else"],
];

/** Whether all that a schema says of a kind is also among what others say. */
export function isImplied(schema: unknown, others: readonly Fields[], kind: Kind): boolean {
  if (typeof schema !== "object") return false;
  const own = fieldsOf(schema);
  if ("$id" in own || ofType(own, kind) !== fits) return false;
  return Object.keys(own).every((key) => {
    if (key === "type" || key === "nullable" || isAlwaysFit({ [key]: own[key] })) return true;
    const group = groups.find((each) => each.includes(key)) ?? [key];
    const isSame = (fields: Fields) => (each: string) =>
      own[each] === fields[each] || keyOf(own[each]) === keyOf(fields[each]);
    return (
      !key.startsWith("unevaluated") &&
      others.some((fields) => key in fields && group.every(isSame(fields)))
    );
  });
}
