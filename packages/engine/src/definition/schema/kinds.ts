import { fieldsOf, itemsOf } from "../outline.ts";

/** Values of one type, or one value. */
export interface Kind {
  readonly type: "null" | "boolean" | "number" | "string" | "array" | "object";
  readonly isInteger?: boolean;
  /** JSON of the value, with sorted keys; absent: it may be any that the schema does not name. */
  readonly key?: string;
  readonly value?: unknown;
}

/** All that there is where a schema names no values; what input there is most of comes first. */
export const everyKind: readonly Kind[] = [
  { type: "object" },
  { type: "string" },
  { type: "array" },
  { type: "number", isInteger: true },
  { type: "number", isInteger: false },
  ...[true, false, null].map(kindOf),
];

/** Values that a schema names; of more each may be any. */
const maxNamed = 100;

/** The values that a schema names: each is a kind of its own. And the names of all that is in it. */
export function namedIn(root: unknown) {
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

export function kindOf(value: unknown): Kind & { readonly key: string } {
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const isInteger = Number.isInteger(value);
  return { type: type as Kind["type"], isInteger, key: keyOf(value), value };
}

/** The same for what is the same in content. */
export function keyOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const key =
    keys.get(value) ??
    JSON.stringify(value, (_key, each: unknown) =>
      typeof each === "object" && each !== null && !Array.isArray(each)
        ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        : each,
    );
  keys.set(value, key);
  return key;
}

const keys = new WeakMap<object, string>();
