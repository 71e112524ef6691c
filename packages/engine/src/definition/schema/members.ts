import type { Fields } from "../outline.ts";
import { fieldsOf, itemsOf } from "../outline.ts";
import type { Look } from "./look.ts";
import { lookUp } from "./references.ts";

// Which schemas apply to what is inside a value.

/** A schema that applies to a member or element, and where it stands. */
export interface InnerSchema {
  readonly schema: unknown;
  readonly at: readonly string[];
  /** False where it is not known whether it applies. */
  readonly isSure: boolean;
}

/** @param name Undefined: any name that no schema mentions, and that no pattern matches. */
export function memberSchemas(
  look: Look,
  fields: Fields,
  name: string | undefined,
): readonly InnerSchema[] {
  const schemas: InnerSchema[] = [];
  const properties = fieldsOf(fields["properties"]);
  if (name !== undefined && Object.hasOwn(properties, name)) {
    schemas.push({ schema: properties[name], at: ["properties", name], isSure: true });
  }
  const patterns = name === undefined ? {} : fieldsOf(fields["patternProperties"]);
  for (const [pattern, schema] of Object.entries(patterns)) {
    const isMatching = look.matches(pattern, String(name));
    if (isMatching === false) continue;
    schemas.push({
      schema,
      at: ["patternProperties", pattern],
      isSure: isMatching === true,
    });
  }
  const { additionalProperties, unevaluatedProperties } = fields;
  if (additionalProperties !== undefined && schemas.every(({ isSure }) => !isSure)) {
    const isSure = schemas.length === 0;
    schemas.push({ schema: additionalProperties, at: ["additionalProperties"], isSure });
  }
  if (unevaluatedProperties !== undefined) {
    const isSure = unevaluatedBy(look.root, fields, name);
    schemas.push({ schema: unevaluatedProperties, at: ["unevaluatedProperties"], isSure });
  }
  return schemas;
}

/** The schema of all names of members. */
export function namesOf(fields: Fields): InnerSchema {
  return { schema: fields["propertyNames"], at: ["propertyNames"], isSure: true };
}

/** Schemas that apply to the element at an index. */
export function elementSchemas(look: Look, fields: Fields, index: number): readonly InnerSchema[] {
  const first = itemsOf(fields["prefixItems"]);
  const { items, unevaluatedItems } = fields;
  const schemas: InnerSchema[] = [];
  if (index < first.length) {
    schemas.push({ schema: first[index], at: ["prefixItems", String(index)], isSure: true });
  } else if (items !== undefined) {
    schemas.push({ schema: items, at: ["items"], isSure: true });
  }
  if (unevaluatedItems !== undefined) {
    const isSure = unevaluatedBy(look.root, fields, index);
    schemas.push({ schema: unevaluatedItems, at: ["unevaluatedItems"], isSure });
  }
  return schemas;
}

/**
 * Whether no other keyword could have looked at a member or element, so that `unevaluatedProperties` or
 * `unevaluatedItems` certainly applies to it.
 *
 * @param of The member's name, or the index of the element; undefined: a name that is mentioned nowhere.
 */
function unevaluatedBy(root: unknown, fields: Fields, of: string | number | undefined): boolean {
  const seen = new Set<unknown>();
  const rest = { ...fields, unevaluatedProperties: undefined, unevaluatedItems: undefined };
  return !mayEvaluate(rest);

  function mayEvaluate(schema: unknown): boolean {
    if (seen.has(schema)) return false;
    seen.add(schema);
    const each = fieldsOf(schema);
    if (each["$id"] !== undefined && schema !== rest) return true;
    if (each["$dynamicRef"] !== undefined) return true;
    if (typeof of === "number" ? looksAtElement(each, of) : looksAtMember(each, of)) return true;
    const { $ref } = each;
    const target = $ref === undefined ? undefined : lookUp(root, $ref);
    if ($ref !== undefined && target === undefined) return true;
    return [
      target,
      ...["allOf", "anyOf", "oneOf"].flatMap((key) => itemsOf(each[key])),
      ...["if", "then", "else"].map((key) => each[key]),
      ...["dependentSchemas", "dependencies"].flatMap((key) => Object.values(fieldsOf(each[key]))),
    ].some(mayEvaluate);
  }
}

function looksAtElement(fields: Fields, index: number): boolean {
  return (
    ["items", "contains", "unevaluatedItems"].some((key) => fields[key] !== undefined) ||
    index < itemsOf(fields["prefixItems"]).length
  );
}

function looksAtMember(fields: Fields, name: string | undefined): boolean {
  return (
    ["additionalProperties", "unevaluatedProperties", "patternProperties"].some(
      (key) => fields[key] !== undefined,
    ) ||
    (name !== undefined && Object.hasOwn(fieldsOf(fields["properties"]), name))
  );
}
