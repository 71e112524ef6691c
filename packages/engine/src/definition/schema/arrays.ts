import { below, itemsOf } from "../outline.ts";
import { narrowed } from "./keywords.ts";
import { elementSchemas } from "./members.ts";
import { boundsOfAll, isAnyLeft } from "./numbers.ts";
import { not } from "./refuted.ts";
import type { Inside, Place, Said } from "./together.ts";

/** Elements that are looked at one by one; where more are listed, only the first, and for themselves. */
const mostElements = 50;

/** At most how many arrays that no schema names fit all that is said: what must be inside, and cannot. */
export function countArrays(said: readonly Said[], inside: Inside): number {
  const containing = said.flatMap(({ fields, path }) => {
    const { contains, minContains = 1, maxContains = Infinity } = fields;
    const bounds = { least: Number(minContains), most: Number(maxContains) };
    return contains === undefined
      ? []
      : [{ ...bounds, place: { schema: contains, path: below(path, "contains") } }];
  });
  const bounds = containing.reduce(
    (soFar, { least }) =>
      narrowed(soFar, {
        low: { key: "contains", at: least, isOpen: false, said: `contains asks for ${least}` },
      }),
    boundsOfAll(said, "array"),
  );
  if (!isAnyLeft(said, bounds, inside)) return 0;
  const least = bounds.low.at;
  const listed = Math.max(...said.map(({ fields }) => itemsOf(fields["prefixItems"]).length));
  /** All elements behind these are alike. */
  const alike = Math.min(listed, mostElements);
  const needed = Array.from(
    { length: Math.min(Math.max(least, 0), alike + 1) },
    (_, index) => index,
  );
  if (!needed.every((index) => inside.anyFits(elementAt(index)))) return 0;
  if (listed > mostElements) return Infinity;
  const isAny = !lacksRoom() && containing.every((each) => canContain(each));
  const isUnique = said.some(({ fields }) => fields["uniqueItems"] === true);
  if (!isAny || (isUnique && lacksDifferent())) return 0;
  if (bounds.high.at > 0) return Infinity;
  return inside.look.named.keys.has("[]") ? 0 : 1;

  function elementAt(index: number): readonly Place[] {
    if (!inside.look.pay(said.length)) return [];
    return said.flatMap(({ fields, path, isNeeded }) =>
      elementSchemas(inside.look, fields, index)
        .filter(({ isSure }) => isSure)
        .map(({ schema, at }) => ({
          schema,
          path: below(path, ...at),
          isNeeded: isNeeded && index < least,
        })),
    );
  }

  /** Whether there must be more elements that cannot be the same than there may be. */
  function lacksRoom(): boolean {
    const apart: (typeof containing)[number][] = [];
    for (const each of containing) {
      const places = (other: (typeof containing)[number]) =>
        [each, other].map(({ place }) => ({ ...place, isNeeded: false }));
      if (apart.every((other) => !inside.anyFits(places(other)))) apart.push(each);
    }
    return apart.reduce((sum, each) => sum + each.least, 0) > bounds.high.at;
  }

  /** Whether enough elements can be so, and not too many must. */
  function canContain({ least: from, most: to, place }: (typeof containing)[number]): boolean {
    if (from > to) return false;
    const places = (index: number, schema: unknown) => [
      ...elementAt(index),
      { ...place, schema, isNeeded: false },
    ];
    const last = Math.min(bounds.high.at, alike + 1);
    const indices = Array.from({ length: last }, (_, index) => index);
    const can =
      from > 0 ? indices.filter((index) => inside.anyFits(places(index, place.schema))) : [];
    const isEnough = can.includes(alike)
      ? can.length - 1 + bounds.high.at - alike >= from
      : can.length >= from;
    if (!isEnough || to >= least) return isEnough;
    const must = needed.filter((index) => !inside.anyFits(places(index, not(place.schema))));
    const all = must.includes(alike) ? must.length - 1 + least - alike : must.length;
    return all <= to;
  }

  /** Whether there are fewer different values for some elements than there are of them. */
  function lacksDifferent(): boolean {
    const few = needed.filter((index) => inside.countOf(elementAt(index), least) < least);
    const count = few.length + (few.includes(alike) ? least - alike - 1 : 0);
    const each = few.map((index) => ({ allOf: elementAt(index).map(({ schema }) => schema) }));
    const any = { schema: { anyOf: each }, path: "", isNeeded: false };
    return few.length > 0 && inside.countOf([any], count) < count;
  }
}
