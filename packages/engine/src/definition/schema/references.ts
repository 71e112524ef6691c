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

/** What `%…` in a reference stands for. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
