import type { KnownType, PlainValue, Shape } from "@millrace/expressions";
import {
  absent,
  anything,
  both,
  either,
  ofType,
  oneOf,
  once,
  optional,
  remembered,
} from "@millrace/expressions";
import { fieldsOf, itemsOf } from "../outline.ts";
import type { Fields } from "../outline.ts";
import { lookUp } from "./references.ts";

// What a JSON Schema proves of a value that fits it. Keywords that are not looked at (formats, `not`,
// `if`, …) only make what is possible narrower, so leaving them out claims nothing that is not so.

/** What is there: JSON has no other types. */
const present = ofType("null", "boolean", "number", "string", "array", "object");

/** Schemas that are looked at on the way to one shape; what lies deeper may be anything. */
const maxDepth = 64;
/** Alternatives of one `anyOf` or `oneOf`; more are taken for anything. */
const maxAlternatives = 50;

/** The shape of what fits a schema, whose references are looked up in itself. */
export function shapeOfSchema(schema: unknown): Shape {
  const known = new Map<object, Shape>();

  /** @param under Schemas of this same value that are being looked at: a reference may go round. */
  const shapeOf = (value: unknown, under: readonly object[]): Shape => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return anything;
    // What a reference below another `$id` means is not looked for.
    if (value !== schema && Object.hasOwn(value, "$id")) return anything;
    const found = known.get(value);
    if (found !== undefined) return found;
    if (under.includes(value) || under.length > maxDepth) return anything;
    const fields = fieldsOf(value);
    const inside = [...under, value];
    const parts = [own(fields), ...applied(fields, inside)];
    const shape = parts.reduce(both);
    known.set(value, shape);
    return shape;
  };

  /** What the keywords beside it say of the same value. */
  const applied = (fields: Fields, under: readonly object[]): readonly Shape[] => {
    const { $ref, allOf, anyOf, oneOf: one } = fields;
    const all = itemsOf(allOf).map((each) => shapeOf(each, under));
    const any = [anyOf, one].flatMap((alternatives) => {
      const list = itemsOf(alternatives);
      if (list.length === 0 || list.length > maxAlternatives) return [];
      return [list.map((each) => shapeOf(each, under)).reduce(either)];
    });
    const referred = typeof $ref === "string" ? [shapeOf(lookUp(schema, $ref), under)] : [];
    return [...all, ...any, ...referred];
  };

  const own = (fields: Fields): Shape => {
    const values = plainValues(fields);
    const types = typesOf(fields);
    const base = values === undefined ? anything : oneOf(...values);
    const typed = types === undefined ? base : both(base, ofType(...types));
    const element = elementOf(fields);
    const members = membersOf(fields);
    if (element === undefined && members === undefined) return typed;
    return {
      types: typed.types,
      ...(typed.weight !== undefined && { weight: typed.weight }),
      ...(typed.values && { values: typed.values }),
      ...members,
      ...(element && { element }),
    };
  };

  const membersOf = (fields: Fields): Pick<Shape, "member" | "names"> | undefined => {
    const properties = fieldsOf(fields["properties"]);
    const required = new Set(
      itemsOf(fields["required"]).filter((name) => typeof name === "string"),
    );
    const patterns = Object.keys(fieldsOf(fields["patternProperties"]));
    const mayMatch = patterns.every((pattern) => plainPattern.test(pattern))
      ? patterns.map((pattern) => new RegExp(pattern, "u"))
      : undefined;
    const isOpen = fields["additionalProperties"] !== false || mayMatch === undefined;
    const names = [...new Set([...Object.keys(properties), ...required])];
    if (isOpen && names.length === 0) return undefined;
    return {
      names,
      member: remembered((key) => {
        const others = isOpen || mayMatch.some((pattern) => pattern.test(key)) ? anything : absent;
        const shape = Object.hasOwn(properties, key) ? shapeOf(properties[key], []) : others;
        return required.has(key) ? both(shape, present) : optional(shape);
      }),
    };
  };

  const elementOf = (fields: Fields): (() => Shape) | undefined => {
    if (fields["prefixItems"] !== undefined || Array.isArray(fields["items"])) return undefined;
    const { items } = fields;
    return items === undefined ? undefined : once(() => shapeOf(items, []));
  };

  return shapeOf(schema, []);
}

/** Patterns of names that are matched in no time: others are taken to match any name. */
const plainPattern = /^\^?[\w-]*\$?$/;

/** Of `enum` and `const`; undefined where anything else than plain values is among them. */
function plainValues(fields: Fields): readonly PlainValue[] | undefined {
  const given = Object.hasOwn(fields, "const") ? [fields["const"]] : fields["enum"];
  if (!Array.isArray(given) || given.length > 200) return undefined;
  const plain = given.filter((value) => typeof value !== "object" || value === null);
  return plain.length === given.length && plain.length > 0 ? (plain as PlainValue[]) : undefined;
}

const typeNames: ReadonlyMap<unknown, KnownType> = new Map<unknown, KnownType>([
  ["null", "null"],
  ["boolean", "boolean"],
  ["number", "number"],
  ["integer", "number"],
  ["string", "string"],
  ["array", "array"],
  ["object", "object"],
]);

function typesOf(fields: Fields): readonly KnownType[] | undefined {
  const { type, nullable } = fields;
  const named = (Array.isArray(type) ? type : [type]).map((each) => typeNames.get(each));
  const types = named.filter((each) => each !== undefined);
  if (types.length === 0 || types.length < named.length) return undefined;
  return nullable === true ? [...types, "null"] : types;
}
