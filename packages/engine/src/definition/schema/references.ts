import { fieldsOf } from "../outline.ts";

/**
 * What a reference in `schema` refers to by a JSON pointer below `#`; undefined for any other reference, which
 * may be to any schema.
 */
export function lookUp(schema: unknown, reference: unknown): unknown {
  if (typeof reference !== "string") return undefined;
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

/** The same for what is referred to by a name as well (`$anchor`, `$dynamicAnchor`, `$id`); of several it is the first. */
export function openReferences(schema: unknown): (reference: unknown) => unknown {
  const known = new Map<unknown, unknown>();
  return (reference) => {
    const found = known.get(reference) ?? lookUp(schema, reference) ?? named(schema, reference);
    known.set(reference, found);
    return found;
  };
}

function named(schema: unknown, reference: unknown): unknown {
  const [base = "", fragment = ""] = String(reference).split("#");
  const within = base === "" ? [schema, ...withIn(schema, "$id")] : withIn(schema, "$id", base);
  for (const each of within) {
    const inside = { ...fieldsOf(each), $id: undefined };
    const found = fragment === "" ? each : lookUp(inside, `#${fragment}`);
    if (found !== undefined) return found;
  }
  return ["$anchor", "$dynamicAnchor"].flatMap((key) => withIn(schema, key, fragment))[0];
}

/** All schemas inside of one that have such a name. */
function withIn(schema: unknown, key: string, name?: string): readonly unknown[] {
  if (typeof schema !== "object" || schema === null) return [];
  const own: unknown = Reflect.get(schema, key);
  const isOne = name === undefined ? own !== undefined : own === name;
  return [
    ...(isOne ? [schema] : []),
    ...Object.values(schema).flatMap((each) => withIn(each, key, name)),
  ];
}

/** What `%…` in a reference stands for. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
