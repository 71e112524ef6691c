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
import { fieldsOf, itemsOf } from "./outline.ts";
import type { Fields } from "./outline.ts";
import type { ProblemList } from "./problem.ts";

// What a JSON Schema proves of a value that fits it. Keywords that are not looked at (formats, `not`,
// `if`, …) only make what is possible narrower, so leaving them out claims nothing that is not so.

/** Members of all objects in a schema and elements of all arrays: 0.3 s of compiling, 1.3 s at worst. */
const maxMembers = 5_000;

/** Nothing else happens in a process while it compiles a schema. */
export function checkSchemaSize(schema: unknown, list: ProblemList): void {
  let members = 0;
  const stack = [schema];
  for (let each = stack.pop(); each !== undefined; each = stack.pop()) {
    if (typeof each !== "object" || each === null) continue;
    const values: readonly unknown[] = Object.values(each);
    members += values.length;
    for (const value of values) stack.push(value);
  }
  if (members <= maxMembers) return;
  const message = `it has ${members} keywords, names and values, and at most ${maxMembers} are compiled; share parts by $ref, or check the rest in a first task`;
  list.add("/inputSchema", "SCHEMA_TOO_LARGE", message);
}

/**
 * A schema that no input fits would register a workflow that can never be started. Found are those that
 * are `false`, whose types and values rule each other out, and whose check comes back to itself without
 * having looked at anything, so that it never ends.
 */
export function checkSchemaFits(schema: unknown, list: ProblemList): void {
  const endless = endlessReference(schema);
  if (endless !== undefined) {
    const message =
      "it refers back to itself before any part of the input is looked at, so that its check never ends and no instance could start";
    list.add(`/inputSchema${endless}`, "NOTHING_FITS", message);
  } else if (isRefusal(schema) || isImpossible(shapeOfSchema(schema))) {
    const message =
      "no input fits it, so that no instance could ever start; leave it out where any input is fine";
    list.add("/inputSchema", "NOTHING_FITS", message);
  }
}

/** `false`, by any of its names. */
function isRefusal(schema: unknown): boolean {
  const { not } = fieldsOf(schema);
  return schema === false || not === true || JSON.stringify(not) === "{}";
}

function isImpossible({ types, values }: Shape): boolean {
  return types.length === 0 || values?.length === 0;
}

/** Keywords whose first schema is always applied to the very value that the schema around is for. */
const appliedToSame = ["allOf", "anyOf", "oneOf", "not", "if"];

/** JSON pointer of the keyword by which a schema comes back to itself; undefined where none does. */
function endlessReference(schema: unknown): string | undefined {
  const done = new Set<object>();

  /** @param by The keyword that applies the schema at `path`. */
  const find = (
    value: unknown,
    path: string,
    by: string,
    under: ReadonlySet<object>,
  ): string | undefined => {
    if (typeof value !== "object" || value === null || under.size > maxDepth) return undefined;
    if (under.has(value)) return by;
    if (done.has(value) || (value !== schema && Object.hasOwn(value, "$id"))) return undefined;
    const inside = new Set([...under, value]);
    const fields = fieldsOf(value);
    const { $ref } = fields;
    const ways = [
      ...(typeof $ref === "string"
        ? [{ to: lookUp(schema, $ref), at: decoded($ref.slice(1)), way: `${path}/$ref` }]
        : []),
      ...appliedToSame.flatMap((key) => appliedForCertain(fields[key], `${path}/${key}`, key)),
    ];
    for (const { to, at, way } of ways) {
      const found = find(to, at, way, inside);
      if (found !== undefined) return found;
    }
    done.add(value);
    return undefined;
  };
  return find(schema, "", "", new Set());
}

/** Of alternatives only the first one is looked at for certain. */
function appliedForCertain(value: unknown, path: string, key: string) {
  if (!Array.isArray(value)) return [{ to: value, at: path, way: path }];
  const schemas: readonly unknown[] = key === "allOf" ? value : value.slice(0, 1);
  return schemas.map((to, index) => ({ to, at: `${path}/${index}`, way: `${path}/${index}` }));
}

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
    const isOpen =
      fields["additionalProperties"] !== false ||
      Object.keys(fieldsOf(fields["patternProperties"])).length > 0;
    const names = [...new Set([...Object.keys(properties), ...required])];
    if (isOpen && names.length === 0) return undefined;
    return {
      names,
      member: remembered((key) => {
        const others = isOpen ? anything : absent;
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

/** By a JSON pointer below `#`; undefined for anything else, which may be any schema. */
function lookUp(schema: unknown, reference: string): unknown {
  if (reference === "#") return schema;
  if (!reference.startsWith("#/")) return undefined;
  let current: unknown = schema;
  for (const part of reference.slice(2).split("/")) {
    const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) {
      return undefined;
    }
    current = Reflect.get(current, key);
    // References in it would be meant below its own id.
    if (current !== schema && Object.hasOwn(fieldsOf(current), "$id")) return undefined;
  }
  return current;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
