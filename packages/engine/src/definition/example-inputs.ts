import { BOUNDS } from "@millrace/contract";
import { spread } from "../retry.ts";
import type { Fields } from "./outline.ts";
import { fieldsOf, itemsOf } from "./outline.ts";
import type { Choose } from "./schema/characters.ts";
import { openExampleTexts } from "./example-texts.ts";
import { isMultiple, noFormats, ofType } from "./schema/keywords.ts";
import type { Formats } from "./schema/keywords.ts";
import { everyKind, keyOf, kindOf } from "./schema/kinds.ts";
import type { Kind } from "./schema/kinds.ts";
import { openLook } from "./schema/look.ts";
import type { Look } from "./schema/look.ts";
import { elementSchemas, memberSchemas } from "./schema/members.ts";
import { boundsOfAll, factorOf } from "./schema/numbers.ts";
import { requiredBy } from "./schema/objects.ts";
import { openOutcomes } from "./schema/of-kind.ts";
import { fits } from "./schema/outcomes.ts";
import { openReferences } from "./schema/references.ts";
import { openRefuted } from "./schema/refuted.ts";
import type { Said } from "./schema/together.ts";

/** Inputs that are made up of one schema. */
const mostInputs = 200;
/** Looks at schemas to make up all of them. */
const maxLooks = 100_000;
/** What takes longer to match is left to who holds the whole against the schema. */
const mostOfText = 50;
/** Characters that are made up in the time of a look. */
const charsOfLook = 20;
/** Values that are made up in one place until one fits. */
const mostTries = 8;
/** Of more alternatives it is left to chance that one alone fits. */
const mostRefuted = 8;
/** One `if` in so many is met: of many of them one or none, where each is of another case. */
const ifMet = [2, 8, 32] as const;
/** Values in one input. */
const mostValues = 100_000;

/**
 * Inputs that may fit a schema, of which one is to be shown to: its `examples` and `default` first, then made up, the
 * simplest first. They follow from the schema alone.
 *
 * @param formats Of who compiles the schema.
 */
export function* exampleInputs(schema: unknown, formats: Formats = noFormats): Generator {
  const { examples, default: given } = fieldsOf(schema);
  yield* [...itemsOf(examples), ...(given === undefined ? [] : [given])];
  const look = openLook(schema, formats, { most: maxLooks, mostOfText });
  const known = { referredTo: openReferences(schema), exampleText: openExampleTexts(formats) };
  for (let index = 0; index < mostInputs && look.pay(); index += 1) {
    const input = exampleInput(look, index, known);
    if (input !== undefined) yield input;
  }
}

/** A value does not come about as it was begun. */
class DeadEndError extends Error {}

/** Nor does any around it. */
class TooLargeError extends Error {}

/** What is found out of a schema once for all inputs. */
interface Known {
  readonly referredTo: ReturnType<typeof openReferences>;
  readonly exampleText: ReturnType<typeof openExampleTexts>;
}

function exampleInput(look: Look, series: number, { referredTo, exampleText }: Known): unknown {
  const { root, pay } = look;
  let drawn = 0;
  const random = () => spread(`${series}.${(drawn += 1)}`);
  let isSimple = series === 0;
  const choose: Choose = (count) => (isSimple ? 0 : Math.floor(random() * count));
  const isChosen = (chance: number): boolean => !isSimple && random() < chance;
  const outcomes = openOutcomes(look);
  const refuted = openRefuted(root);
  const oneMetIn = ifMet[series % ifMet.length] ?? 2;
  const kinds = [...everyKind, ...look.named.kinds];
  let values = 0;
  try {
    return valueOf([root], 0);
  } catch (error) {
    if (error instanceof DeadEndError || error instanceof TooLargeError) return undefined;
    // A text is too long.
    if (error instanceof RangeError) return undefined;
    throw error;
  }

  function valueOf(schemas: readonly unknown[], depth: number): unknown {
    const wasSimple = isSimple;
    for (let tries = 1; ; tries += 1) {
      const value = begun(schemas, depth);
      const isFit = value !== undefined && schemas.every((each) => isPossible(each, kindOf(value)));
      isSimple = isFit && wasSimple;
      if (isFit) return value;
      if (tries < mostTries) continue;
      if (value === undefined) throw new DeadEndError();
      // How far it came is told.
      return value;
    }
  }

  function begun(schemas: readonly unknown[], depth: number): unknown {
    try {
      return made(schemas, depth);
    } catch (error) {
      if (error instanceof DeadEndError) return undefined;
      throw error;
    }
  }

  function isPossible(schema: unknown, kind: Kind): boolean {
    return (outcomes.of(schema, kind) & fits) !== 0;
  }

  function made(schemas: readonly unknown[], depth: number): unknown {
    values += 1;
    if (depth > BOUNDS.depth || values > mostValues || !pay()) throw new TooLargeError();
    const targets = schemas.flatMap(targetsOf);
    const isLike = (kind: Kind) => (schema: unknown) => ofType(fieldsOf(schema), kind) === fits;
    const possible = kinds.filter(
      (kind) => schemas.every((each) => isPossible(each, kind)) && targets.every(isLike(kind)),
    );
    const kind = possible[choose(possible.length)];
    if (kind === undefined) throw new DeadEndError();
    if (kind.key !== undefined) return kind.value;
    const said = saidOf(schemas, kind);
    if (kind.type === "number") return numberOf(said, kind.isInteger === true);
    if (kind.type === "string") return textOf(said);
    return kind.type === "array" ? arrayOf(said, depth) : objectOf(said, depth);
  }

  function targetsOf(schema: unknown): readonly unknown[] {
    const { $ref, $dynamicRef } = fieldsOf(schema);
    const references = [$ref, $dynamicRef].filter((each) => each !== undefined);
    return references.map((each) => referredTo(schema, each));
  }

  /** All that applies to the same value, once what there is to choose is chosen. */
  function saidOf(schemas: readonly unknown[], kind: Kind): readonly Said[] {
    const said: Said[] = [];
    const dependents: (readonly [name: string, schema: unknown])[] = [];
    schemas.forEach(add);
    for (let before = -1; before < said.length;) {
      before = said.length;
      const required = requiredBy(said);
      for (const [name, schema] of dependents.splice(0)) {
        if (required.has(name) || isChosen(0.5)) add(schema);
        else dependents.push([name, schema]);
      }
    }
    return said;

    function add(schema: unknown): void {
      if (schema === false) throw new DeadEndError();
      if (typeof schema !== "object" || schema === null) return;
      if (said.some((each) => each.schema === schema)) return;
      const fields = fieldsOf(schema);
      said.push({ schema, fields, path: "", isNeeded: false });
      if (ofType(fields, kind) !== fits) throw new DeadEndError();
      const { allOf, anyOf, oneOf, not } = fields;
      targetsOf(schema).forEach(add);
      itemsOf(allOf).forEach(add);
      addOne(itemsOf(anyOf));
      addOne(itemsOf(oneOf), isChosen(0.3));
      addAsked(fields);
      if (not !== undefined) addRefuted(not);
      for (const key of ["dependentSchemas", "dependencies"]) {
        const entries = Object.entries(fieldsOf(fields[key]));
        dependents.push(...entries.filter(([, each]) => !Array.isArray(each)));
      }
    }

    function addRefuted(schema: unknown): void {
      for (const each of oneIn(refuted(schema, kind) ?? []) ?? []) add(each);
    }

    function addOne(all: readonly unknown[], isAlone = false): void {
      if (all.length === 0) return;
      const possible = all.filter((each) => isPossible(each, kind));
      const chosen = oneIn(possible) ?? false;
      add(chosen);
      if (!isAlone || possible.length > mostRefuted) return;
      for (const other of possible) if (other !== chosen) addRefuted(other);
    }

    function addAsked({ if: asked, then, else: otherwise }: Fields): void {
      if (asked === undefined) return;
      const isMet = isPossible(asked, kind) && choose(oneMetIn) === 0;
      for (const each of isMet ? [asked, then] : [otherwise]) add(each);
    }
  }

  function oneIn<T>(all: readonly T[]): T | undefined {
    return all[choose(all.length)];
  }

  function numberOf(said: readonly Said[], isInteger: boolean): number {
    const { low, high } = boundsOfAll(said, "number");
    const factors = said.flatMap(({ fields }) => factorOf(fields) ?? []);
    const step = stepOf(factors, isInteger);
    if (step === undefined) return between(low.at, high.at);
    const [least, most] = [Math.ceil(low.at / step), Math.floor(high.at / step)];
    const isBelow = most < 0 || (least < 0 && isChosen(0.3));
    const from = isBelow ? Math.min(most, 0) : Math.max(least, 0);
    const room = Math.min(isBelow ? from - least : most - from, 10 ** (1 + choose(6)));
    const times = from + (isBelow ? -1 : 1) * choose(Math.max(room, 0) + 1);
    // Without what is lost in the multiplication, and without -0.
    return Number((times * step).toPrecision(15)) + 0;
  }

  function between(low: number, high: number): number {
    const from = Number.isFinite(low) ? low : Math.min(high, 1) - 1;
    const to = Number.isFinite(high) ? high : from + Math.max(1, Math.abs(from));
    return from + ((to - from) * (1 + choose(9))) / 10;
  }

  function textOf(said: readonly Said[]): string {
    const canBe = (text: string) => said.every(({ schema }) => isPossible(schema, kindOf(text)));
    const text = exampleText(said, { choose, canBe });
    if (text === undefined) throw new DeadEndError();
    if (!pay(Math.ceil(text.length / charsOfLook))) throw new TooLargeError();
    return text;
  }

  function arrayOf(said: readonly Said[], depth: number): unknown[] {
    const { low, high } = boundsOfAll(said, "array");
    const contained = said.flatMap(({ fields: { contains, minContains = 1 } }) =>
      contains === undefined
        ? []
        : Array.from({ length: Math.min(Number(minContains), mostValues) }, () => contains),
    );
    const least = Math.max(low.at, contained.length, isChosen(0.3) ? choose(4) : 0);
    if (least > mostValues) throw new TooLargeError();
    const length = Math.min(least, Math.max(high.at, low.at));
    const isUnique = said.some(({ fields }) => fields["uniqueItems"] === true);
    // Those that are contained may stand behind others, and one may be two of them.
    const first = choose(length - contained.length + 1);
    const listed = Math.max(...said.map(({ fields }) => itemsOf(fields["prefixItems"]).length));
    const keys = new Set<string>();
    let last: unknown;
    return Array.from({ length }, (_, index) => {
      if (!isUnique && index > Math.max(listed, first + contained.length)) return last;
      const own = contained[index - first];
      const schemas = said.flatMap(({ fields }) =>
        elementSchemas(look, fields, index)
          .filter(({ isSure }) => isSure)
          .map(({ schema }) => schema),
      );
      const all = own === undefined ? schemas : [...schemas, own];
      last = isUnique ? different(all, depth, keys) : valueOf(all, depth + 1);
      keys.add(keyOf(last));
      return last;
    });
  }

  function different(
    schemas: readonly unknown[],
    depth: number,
    keys: ReadonlySet<string>,
  ): unknown {
    const wasSimple = isSimple;
    let value = valueOf(schemas, depth + 1);
    isSimple = false;
    for (let tries = 0; tries < 5 * mostTries && keys.has(keyOf(value)); tries += 1) {
      value = valueOf(schemas, depth + 1);
    }
    isSimple = wasSimple;
    return value;
  }

  function objectOf(said: readonly Said[], depth: number): Fields {
    const { low, high } = boundsOfAll(said, "object");
    const ofAll = said.flatMap(({ fields }) => Object.entries(fieldsOf(fields["properties"])));
    const refused = new Set(ofAll.filter(([, each]) => each === false).map(([name]) => name));
    const listed = ofAll.map(([name]) => name).filter((name) => !refused.has(name));
    const isWanted = () => isChosen(1 / (2 + depth));
    // Where it takes long to match them, a name is more likely one of the patterns than not.
    const arePatterns = !isChosen(0.3);
    const names = new Set([...requiredBy(said), ...listed.filter(isWanted)]);
    if (low.at > mostValues) throw new TooLargeError();
    const least = isChosen(0.2) && names.size < high.at ? Math.max(low.at, names.size + 1) : low.at;
    for (let tries = 0; names.size < least && tries < mostTries * least; tries += 1) {
      names.add(oneMore());
    }
    return Object.fromEntries(
      [...names].map((name) => {
        const schemas = said.flatMap(({ fields }) =>
          memberSchemas(look, fields, name)
            .filter(({ isSure, at }) => isSure || (at[0] === "patternProperties" && arePatterns))
            .map(({ schema }) => schema),
        );
        return [name, valueOf(schemas, depth + 1)];
      }),
    );

    function oneMore(): string {
      const others = listed.filter((name) => !names.has(name));
      const patterns = said.flatMap(({ fields }) =>
        Object.keys(fieldsOf(fields["patternProperties"])),
      );
      const all = said.flatMap(({ fields }) => fields["propertyNames"] ?? []);
      const wasSimple = isSimple;
      const isClosed = said.some(({ fields }) => fields["additionalProperties"] === false);
      const isListed = isClosed && patterns.length === 0;
      const of = isListed ? 0 : choose(isClosed ? 2 : 3);
      isSimple = false;
      const pattern = oneIn(patterns);
      const name =
        of === 0 && others.length > 0
          ? oneIn(others)
          : valueOf(
              [
                { type: "string" },
                ...all,
                ...(pattern !== undefined && of < 2 ? [{ pattern }] : []),
              ],
              depth + 1,
            );
      isSimple = wasSimple;
      return String(name);
    }
  }
}

/** Of what a number is a multiple by all factors; undefined where it may be any. */
function stepOf(factors: readonly number[], isInteger: boolean): number | undefined {
  const all = isInteger ? [...factors, 1] : factors;
  const [first] = all.toSorted((a, b) => b - a);
  if (first === undefined) return undefined;
  for (let times = 1; times <= 1_000; times += 1) {
    const step = Number((first * times).toPrecision(15));
    if (all.every((factor) => isMultiple(step, factor))) return step;
  }
  return first;
}
