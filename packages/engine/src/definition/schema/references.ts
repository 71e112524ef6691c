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

/**
 * What references refer to, by a name as well (`$anchor`, `$dynamicAnchor`, `$id`): each is meant below the id around
 * it. A `$dynamicRef` is taken for one to the outermost schema, where that has the name.
 */
export function openReferences(root: unknown) {
  const bases = new Map<unknown, string>();
  const found = new Map<string, unknown>([[noBase, root]]);
  add(root, noBase);
  return (from: unknown, reference: unknown): unknown => {
    const { $dynamicAnchor } = fieldsOf(root);
    if (fieldsOf(from)["$dynamicRef"] === reference && reference === `#${String($dynamicAnchor)}`) {
      return root;
    }
    const uri = resolved(String(reference), bases.get(from) ?? noBase);
    const [base = "", fragment = ""] = uri.split("#");
    const within = found.get(base);
    if (!fragment.startsWith("/")) return fragment === "" ? within : found.get(uri);
    return lookUp({ ...fieldsOf(within), $id: undefined }, `#${fragment}`);
  };

  function add(schema: unknown, around: string): void {
    if (typeof schema !== "object" || schema === null || bases.has(schema)) return;
    const { $id, $anchor, $dynamicAnchor } = fieldsOf(schema);
    const base = typeof $id === "string" ? (resolved($id, around).split("#")[0] ?? around) : around;
    bases.set(schema, base);
    const names = [
      ...(base === around ? [] : [base]),
      ...[$anchor, $dynamicAnchor].map((name) => `${base}#${String(name)}`),
    ];
    for (const name of names) if (!found.has(name)) found.set(name, schema);
    for (const each of Object.values(schema)) add(each, base);
  }
}

/** Where no `$id` says another. */
const noBase = "schema:/";

function resolved(reference: string, base: string): string {
  return URL.canParse(reference, base) ? new URL(reference, base).href : reference;
}

/** What `%…` in a reference stands for. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
