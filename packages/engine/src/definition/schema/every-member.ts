import { below } from "../outline.ts";
import { decoded } from "./references.ts";

/** One member of an object in a schema, or one element of an array. */
export interface SchemaMember {
  /** A JSON pointer below the schema. */
  readonly path: string;
  readonly key: string;
  readonly value: unknown;
  /** What it is a member of. */
  readonly beside: object;
}

/**
 * All that stands in a schema as a keyword of one, or an element, in the document's order: neither names that its
 * author chose nor what is in values, unless a reference makes a schema of them.
 */
export function everyMember(schema: unknown): readonly SchemaMember[] {
  const members = membersOf(schema, valuesBelow);
  return members.some(isReferenceToValue) ? membersOf(schema, new Set()) : members;
}

/** Below these the keys are names. */
const namesBelow: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "dependentRequired",
  "dependencies",
  "$defs",
  "definitions",
]);

/** What stands below is no schema. */
const valuesBelow: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

function isReferenceToValue({ key, value }: SchemaMember): boolean {
  if ((key !== "$ref" && key !== "$dynamicRef") || typeof value !== "string") return false;
  return decoded(value)
    .split("/")
    .some((part) => valuesBelow.has(part));
}

function membersOf(schema: unknown, plain: ReadonlySet<string>): readonly SchemaMember[] {
  const found: SchemaMember[] = [];
  const stack: (SchemaMember & { readonly isName: boolean })[] = [];
  add(schema, "", false);
  for (let each = stack.pop(); each !== undefined; each = stack.pop()) {
    const { path, key, value, isName } = each;
    if (!isName) found.push({ path, key, value, beside: each.beside });
    if (isName || !plain.has(key)) add(value, path, !isName && namesBelow.has(key));
  }
  return found;

  function add(value: unknown, path: string, isName: boolean): void {
    if (typeof value !== "object" || value === null) return;
    const members: readonly (readonly [string, unknown])[] = Object.entries(value);
    for (const [key, member] of members.toReversed()) {
      stack.push({ path: below(path, key), key, value: member, beside: value, isName });
    }
  }
}
