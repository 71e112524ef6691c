import { below, fieldsOf, itemsOf } from "../outline.ts";
import type { Fields } from "../outline.ts";
import { countArrays } from "./arrays.ts";
import { isAlwaysFit } from "./keywords.ts";
import { everyKind, keyOf, kindOf } from "./kinds.ts";
import type { Kind } from "./kinds.ts";
import type { Look } from "./look.ts";
import { countNumbers } from "./numbers.ts";
import { countObjects } from "./objects.ts";
import type { Outcomes } from "./of-kind.ts";
import { fits } from "./outcomes.ts";
import { decoded, lookUp } from "./references.ts";
import { isImplied, not, openRefuted } from "./refuted.ts";
import { openTexts } from "./texts.ts";

// Values that no schema names: whether there are any that all schemas fit which apply to the same value. What
// there is to choose (`anyOf`, `oneOf`, `if`, `not`) is chosen in all ways; what then applies is looked at together.

/** A schema, and where it stands. */
export interface Place {
  readonly schema: unknown;
  readonly path: string;
  /** What does not fit it does not fit the whole. */
  readonly isNeeded: boolean;
}

/** A schema that applies, as the object that it is. */
export interface Said extends Place {
  readonly fields: Fields;
}

/** What is asked of what is inside. */
export interface Inside {
  readonly look: Look;
  /** Whether anything fits all of these schemas. */
  readonly anyFits: (places: readonly Place[]) => boolean;
  /** How many different values fit all of them, as far as that is known, up to `most`. */
  readonly countOf: (places: readonly Place[], most: number, type?: Kind["type"]) => number;
  readonly canBe: (place: Place, value: unknown) => boolean;
  /** Notes why nothing can fit, where all of it applies to the whole. */
  readonly blame: (said: readonly Place[], path: string, why: string) => void;
}

/** In each way all schemas of one of them fit. */
type Choice = readonly (readonly Place[])[];

/** Of more the others are not said not to fit. */
const maxOthers = 8;
/** Choices that are being made, for a value and for those around it. */
const maxDepth = 400;

export function openTogether(look: Look, outcomes: Outcomes) {
  const { root, named } = look;
  const kinds = [...everyKind, ...named.kinds];
  const faults = new Map<string, string>();
  /** Schemas, all together, that something fits. */
  const fitting = new Set<string>();
  /** Those that have been looked at since the last of them was found to fit, and whether that is over. */
  const looked = new Map<string, "NOW" | "DONE">();
  /** Those of which it is being found out how many values fit. */
  const counted = new Set<string>();
  const ids = new Map<unknown, number>();
  const refuted = openRefuted(root);
  let depth = 0;
  const inside: Inside = {
    look,
    anyFits,
    countOf: countDifferent,
    canBe: ({ schema, path }, value) => (outcomes.of(schema, kindOf(value), path) & fits) !== 0,
    blame: (said, path, why) => {
      if (said.every(({ isNeeded }) => isNeeded)) faults.set(path, why);
    },
  };
  const countTexts = openTexts(inside);
  return { faults, rootFits };

  /**
   * Input has an end, so that what must have its own kind inside fits nothing, unless there is another way:
   * nothing fits at first, and it is looked at again until no more does.
   */
  function rootFits(): boolean {
    for (;;) {
      const before = fitting.size;
      looked.clear();
      faults.clear();
      if (anyFits([{ schema: root, path: "", isNeeded: true }])) return true;
      if (fitting.size === before) return false;
    }
  }

  function anyFits(places: readonly Place[]): boolean {
    const key = keyOfAll(places);
    if (fitting.has(key)) return true;
    const state = looked.get(key);
    if (state === "NOW") {
      inside.blame(places, places[0]?.path ?? "", "what fits it must have the same inside again");
    }
    if (state !== undefined) return false;
    looked.set(key, "NOW");
    const before = new Set(faults.keys());
    const can = kinds.some((kind) => count(places, kind, 1) > 0);
    looked.set(key, "DONE");
    if (can) {
      fitting.add(key);
      for (const path of faults.keys()) if (!before.has(path)) faults.delete(path);
    } else if (faults.size === before.size && places.length > 1) {
      blameAll(places);
    }
    return can;
  }

  function blameAll(places: readonly Place[]): void {
    const others = places.slice(1).map(({ path }) => path);
    const [first] = places;
    if (first === undefined) return;
    inside.blame(places, first.path, `nothing fits it that also fits ${others.join(", ")}`);
  }

  function keyOfAll(places: readonly Place[]): string {
    const own = places.map(({ schema }) => {
      const id = ids.get(schema) ?? ids.size;
      ids.set(schema, id);
      return id;
    });
    return [...new Set(own)].toSorted((a, b) => a - b).join();
  }

  function countDifferent(places: readonly Place[], most: number, type?: Kind["type"]): number {
    const key = keyOfAll(places);
    if (counted.has(key)) return most;
    counted.add(key);
    let found = 0;
    for (const kind of kinds) {
      if (found < most && kind.type === (type ?? kind.type)) {
        found += count(places, kind, most - found);
      }
    }
    counted.delete(key);
    return found;
  }

  /** How many values of a kind fit all of them, as far as that is known, up to `most`. */
  function count(places: readonly Place[], kind: Kind, most: number): number {
    return countIn([[places]], [], kind, most);
  }

  function countIn(
    choices: readonly Choice[],
    said: readonly Said[],
    kind: Kind,
    most: number,
  ): number {
    if (depth >= maxDepth || !look.pay()) return most;
    const at = Math.max(
      choices.findIndex((choice) => choice.length < 2),
      0,
    );
    const choice = choices[at];
    if (choice === undefined) return Math.min(countSaid(said, kind, most), most);
    if (choice.length > 1 && countSaid(said, kind, 1) === 0) return 0;
    const rest = choices.filter((_, index) => index !== at);
    let found = 0;
    for (const places of choice) {
      if (found >= most) break;
      const added = saidBy(places, said, kind);
      if (added === undefined) continue;
      const more = kind.key === undefined ? added.flatMap((each) => choicesOf(each, kind)) : [];
      depth += 1;
      found += countIn([...rest, ...more], [...said, ...added], kind, most - found);
      depth -= 1;
    }
    return found;
  }

  /** Those that are not said already; undefined where one certainly does not fit. */
  function saidBy(
    places: readonly Place[],
    said: readonly Said[],
    kind: Kind,
  ): readonly Said[] | undefined {
    const added: Said[] = [];
    for (const place of places) {
      const { schema, path } = place;
      if (schema === false) inside.blame([place], path, "nothing fits false");
      if (!(outcomes.of(schema, kind, path) & fits)) return undefined;
      const isKnown = [...said, ...added].some((each) => each.schema === schema);
      // What stands below another `$id` may refer to anything.
      const isForeign = schema !== root && Object.hasOwn(fieldsOf(schema), "$id");
      if (!isKnown && !isForeign) added.push({ ...place, fields: fieldsOf(schema) });
    }
    return added;
  }

  function choicesOf({ fields, path, isNeeded }: Said, kind: Kind): readonly Choice[] {
    const at = (schema: unknown, to: string, needed: boolean): Place => {
      return { schema, path: `${path}${to}`, isNeeded: needed && isNeeded };
    };
    const each = (key: string): readonly Place[] =>
      itemsOf(fields[key]).map((schema, index) => at(schema, `/${key}/${index}`, key === "allOf"));
    const choices: Choice[] = each("allOf").map((place) => [[place]]);
    const { $ref, anyOf, oneOf } = fields;
    const target = $ref === undefined ? undefined : lookUp(root, $ref);
    if (target !== undefined) {
      choices.push([[{ schema: target, path: decoded(String($ref).slice(1)), isNeeded }]]);
    }
    if (anyOf !== undefined) choices.push(each("anyOf").map((place) => [place]));
    if (oneOf !== undefined) {
      choices.push(
        each("oneOf").map((place, index, all) => {
          const others = all.length > maxOthers ? [] : all.filter((_, other) => other !== index);
          return [place, ...others.map((other) => ({ ...other, schema: not(other.schema) }))];
        }),
      );
    }
    const { if: asked, then, else: otherwise } = fields;
    if (asked !== undefined && !(isAlwaysFit(then) && isAlwaysFit(otherwise))) {
      const met = [at(asked, "/if", false), at(then ?? true, "/then", false)];
      const unmet = [at(not(asked), "/if", false), at(otherwise ?? true, "/else", false)];
      choices.push([met, unmet]);
    }
    const alternatives = fields["not"] === undefined ? undefined : refuted(fields["not"], kind);
    if (alternatives !== undefined) {
      const isOnly = alternatives.length === 1;
      choices.push(
        alternatives.map((schemas) => schemas.map((schema) => at(schema, "/not", isOnly))),
      );
    }
    return kind.type === "object" ? [...choices, ...dependents(fields, path)] : choices;
  }

  /** What hangs on a member: it is not there, or a schema applies. */
  function dependents(fields: Fields, path: string): readonly Choice[] {
    return ["dependentSchemas", "dependencies"].flatMap((key) =>
      Object.entries(fieldsOf(fields[key]))
        .filter(([, schema]) => !Array.isArray(schema))
        .map(([name, schema]) => {
          const place = { path: below(path, key, name), isNeeded: false };
          return [
            [{ ...place, schema: { properties: { [name]: false } } }],
            [
              { ...place, schema: { required: [name] } },
              { ...place, schema },
            ],
          ];
        }),
    );
  }

  /** At most how many values of a kind fit all that is said. */
  function countSaid(said: readonly Said[], kind: Kind, most: number): number {
    if (kind.key !== undefined) return 1;
    if (!look.pay(said.length)) return most;
    if (said.some((each) => isDenied(each, said, kind))) return 0;
    const { fields = {} } =
      said.find(({ fields: { const: value, enum: values } }) => {
        return value !== undefined || values !== undefined;
      }) ?? {};
    const listed =
      fields["enum"] ?? (fields["const"] === undefined ? undefined : [fields["const"]]);
    if (listed !== undefined) {
      const values = new Map(itemsOf(listed).map((value) => [keyOf(value), value]));
      return [...values].filter(
        ([key, value]) =>
          !named.keys.has(key) &&
          isOfKind(value, kind) &&
          said.every((each) => inside.canBe(each, value)),
      ).length;
    }
    if (kind.type === "number") return countNumbers(said, kind, inside);
    if (kind.type === "string") return countTexts(said, most);
    return kind.type === "array" ? countArrays(said, inside) : countObjects(said, inside);
  }
}

/** Whether the schema of its `not` is said as well. */
function isDenied({ fields }: Said, said: readonly Said[], kind: Kind): boolean {
  const all = () => said.map((each) => each.fields);
  return fields["not"] !== undefined && isImplied(fields["not"], all(), kind);
}

function isOfKind(value: unknown, { type, isInteger }: Kind): boolean {
  const own = kindOf(value);
  return own.type === type && (type !== "number" || own.isInteger === isInteger);
}
