import type { Fields } from "../outline.ts";
import { below, fieldsOf, itemsOf } from "../outline.ts";
import { narrowed } from "./keywords.ts";
import { memberSchemas, namesOf } from "./members.ts";
import { boundsOfAll, isAnyLeft } from "./numbers.ts";
import { not } from "./refuted.ts";
import type { Inside, Place, Said } from "./together.ts";

/** At most how many objects that no schema names fit all that is said: what must be inside, and cannot. */
export function countObjects(said: readonly Said[], inside: Inside): number {
  const required = requiredBy(said);
  const mentioned = new Set([
    ...required,
    ...said.flatMap(({ fields }) => Object.keys(fieldsOf(fields["properties"]))),
  ]);
  const count = required.size;
  const asked = { key: "required", at: count, isOpen: false, said: `required is ${count}` };
  const bounds = narrowed(boundsOfAll(said, "object"), { low: asked });
  if (!isAnyLeft(said, bounds, inside)) return 0;
  const names = said.map(({ fields, path, isNeeded }) => {
    const { schema, at } = namesOf(fields);
    return { schema: schema ?? true, path: below(path, ...at), isNeeded };
  });
  const isThere = [...required].every(
    (name) => names.every((place) => canBeNamed(place, name)) && canHave(name),
  );
  const least = bounds.low.at;
  if (!isThere || (least > count && lacksNames())) return 0;
  if (bounds.high.at > 0) return Infinity;
  return inside.look.named.keys.has("{}") ? 0 : 1;

  function canBeNamed(place: Place, name: string): boolean {
    if (inside.canBe(place, name)) return true;
    inside.blame([place], place.path, `${JSON.stringify(name)} is required, and may be no name`);
    return false;
  }

  function canHave(name: string): boolean {
    const member = memberOf(name);
    const closed = said.find(({ fields, path }) => {
      const at = below(path, "additionalProperties");
      return fields["additionalProperties"] === false && member.some((each) => each.path === at);
    });
    if (closed === undefined) return inside.anyFits(member);
    const why = `${JSON.stringify(name)} is required, and additionalProperties false allows none of that name`;
    const by = said.find(({ fields }) => itemsOf(fields["required"]).includes(name)) ?? closed;
    inside.blame([closed, by], below(by.path, "required"), why);
    return false;
  }

  /** @param name Undefined: any that is mentioned nowhere. */
  function memberOf(name: string | undefined): readonly Place[] {
    if (!inside.look.pay(said.length)) return [];
    return said.flatMap(({ fields, path, isNeeded }) =>
      memberSchemas(inside.look, fields, name)
        .filter(({ isSure }) => isSure)
        .map(({ schema, at }) => ({
          schema,
          path: below(path, ...at),
          isNeeded: isNeeded && name !== undefined && required.has(name),
        })),
    );
  }

  /** Whether there are fewer names than there must be members. */
  function lacksNames(): boolean {
    const patterns = said.flatMap(({ fields }) =>
      Object.entries(fieldsOf(fields["patternProperties"])),
    );
    const isClosed = !inside.anyFits(memberOf(undefined));
    const sets = said.filter(({ fields }) => fields["additionalProperties"] === false);
    const places = [
      ...names.map((place) => place.schema),
      ...sets.map(({ fields }) => allowed(Object.keys(fieldsOf(fields["properties"])), fields)),
      ...(isClosed
        ? [
            among(
              [...mentioned],
              patterns.map(([pattern]) => pattern),
            ),
          ]
        : []),
      ...[...mentioned]
        .filter((name) => !required.has(name) && !inside.anyFits(memberOf(name)))
        .map((name) => not({ const: name })),
      ...patterns.filter(([, schema]) => schema === false).map(([pattern]) => not({ pattern })),
    ];
    const found = inside.countOf(
      places.map((schema) => ({ schema, path: "", isNeeded: false })),
      least,
      "string",
    );
    return found < least;
  }
}

function allowed(names: readonly string[], fields: Fields): object {
  return among(names, Object.keys(fieldsOf(fields["patternProperties"])));
}

function among(names: readonly string[], patterns: readonly string[]): object {
  return { anyOf: [{ enum: names }, ...patterns.map((pattern) => ({ pattern }))] };
}

/** Members that an object must have, be it since it has another one. */
export function requiredBy(said: readonly Pick<Said, "fields">[]): ReadonlySet<string> {
  const required = new Set<string>();
  const dependents = said
    .flatMap(({ fields }) => [fields["dependentRequired"], fields["dependencies"]])
    .filter((each) => each !== undefined)
    .map(fieldsOf);
  const add = (names: unknown): void => {
    for (const name of itemsOf(names)) {
      if (typeof name !== "string" || required.has(name)) continue;
      required.add(name);
      for (const needed of dependents) if (Object.hasOwn(needed, name)) add(needed[name]);
    }
  };
  for (const { fields } of said) add(fields["required"]);
  return required;
}
