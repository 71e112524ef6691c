import type { Fields } from "./outline.ts";
import { below, fieldsOf, itemsOf } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import {
  boundsOf,
  isAlwaysFit,
  isMatch,
  leftOpen,
  lookInside,
  ofBounds,
  ofFormat,
  ofMultiples,
  ofType,
  requiredBy,
  stepsOf,
} from "./schema-keywords.ts";
import type { HasFormat } from "./schema-keywords.ts";
import { everyKind, keyOf, kindOf, namedIn } from "./schema-kinds.ts";
import type { Kind } from "./schema-kinds.ts";
import {
  all,
  both,
  endless,
  fails,
  fits,
  one,
  open,
  outcomeOf,
  some,
  turned,
} from "./schema-outcomes.ts";
import type { Check, Outcome } from "./schema-outcomes.ts";
import { decoded, lookUp } from "./schema-references.ts";

/**
 * Whether any input fits a schema. It is worked out for every kind of value that there is: those of each type,
 * and each one that the schema names itself. Where it depends on more what a keyword makes of a kind, both count
 * as possible, so that nothing is refused that some input passes.
 *
 * Keywords are looked at as the validator does it (Ajv with `allErrors`): all of them, and all alternatives, but
 * inside of `not` and `if` only up to the first that fails. What comes back to itself for the same value has no
 * end, whatever stands beside it.
 */

/**
 * A schema that no input fits would register a workflow that can never be started: its keywords rule each other
 * out, or its check never ends.
 *
 * @param hasFormat Knows the formats of texts, as who compiles the schema does.
 */
export function checkSchemaFits(
  schema: unknown,
  list: ProblemList,
  hasFormat: HasFormat = () => undefined,
): void {
  const look = lookAt(schema, hasFormat);
  if (look.fits) return;
  const add = (path: string, message: string) =>
    list.add(`/inputSchema${path}`, "NOTHING_FITS", message);
  if (look.endless !== undefined) {
    const message =
      "it refers back to itself before any part of the input is looked at, so that its check never ends and no instance could start";
    add(look.endless, message);
  } else if (look.faults.size > 0) {
    for (const [path, fault] of look.faults) add(path, `${fault}; no instance could ever start`);
  } else {
    const message =
      "no input fits it, so that no instance could ever start; leave it out where any input is fine";
    add("", message);
  }
}

interface Look {
  readonly fits: boolean;
  /** JSON pointer of the keyword by which the schema comes back to itself. */
  readonly endless: string | undefined;
  /** By JSON pointer of a keyword, why nothing can fit it. */
  readonly faults: ReadonlyMap<string, string>;
}

/** Schemas that are looked at, all together; beyond that anything may fit. */
const maxLooks = 50_000;
/** Steps of a regular expression that take as long as a look at a schema. */
const stepsOfLook = 1_000;
/** Schemas that are looked at on the way to one, of its own value and of those around it. */
const maxDepth = 400;

/** A schema that applies to a member, and where it stands. */
interface MemberSchema {
  readonly schema: unknown;
  readonly at: readonly string[];
  readonly isSure: boolean;
}

/** How a schema is come to. */
interface Way {
  readonly kind: Kind;
  readonly path: string;
  /** The keyword that applies it. */
  readonly by: string;
  /** Keywords are looked at up to the first that fails, else all of them are. */
  readonly inOrder: boolean;
  /** What does not fit it does not fit the whole. */
  readonly isNeeded: boolean;
  /** Schemas of this same value that are being looked at. */
  readonly under: readonly Pick<Way & { schema: unknown }, "schema" | "inOrder">[];
}

function lookAt(root: unknown, hasFormat: HasFormat): Look {
  const named = namedIn(root);
  const kinds = [...everyKind, ...named.kinds];
  const faults = new Map<string, string>();
  /** Schemas of what must be inside, that something fits. */
  const fitting = new Set<unknown>();
  /** Those that have been looked at since the last of them was found to fit, and whether that is over. */
  const looked = new Map<unknown, "NOW" | "DONE">();
  /** Those of which it is being found out how many values fit, or which together with others. */
  const counted = new Set<unknown>();
  // Where a reference has looked at every member and element, the validator spares alternatives beside it.
  const mayEvaluateAll =
    ["additionalProperties", "unevaluatedProperties"].some((name) => named.names.has(name)) &&
    ["items", "unevaluatedItems"].some((name) => named.names.has(name));
  let back: string | undefined;
  let left = maxLooks;
  let depth = 0;
  return { fits: root === undefined || rootFits(), endless: back, faults };

  /**
   * Input has an end, so that what must have its own kind inside fits nothing, unless there is another way:
   * nothing fits at first, and it is looked at again until no more does.
   */
  function rootFits(): boolean {
    for (;;) {
      const before = fitting.size;
      looked.clear();
      faults.clear();
      if (anyFits(root, "")) return true;
      if (fitting.size === before) return false;
    }
  }

  function anyFits(schema: unknown, path: string, isNeeded = true): boolean {
    return kinds.some((kind) => canBe(schema, kind, path, isNeeded));
  }

  function canBe(schema: unknown, kind: Kind, path = "", isNeeded = false): boolean {
    const way = { kind, path, by: path, inOrder: false, isNeeded, under: [] };
    return (outcome(schema, way) & fits) !== 0;
  }

  function outcome(schema: unknown, way: Way): Outcome {
    const { path, by, inOrder, under, isNeeded } = way;
    if (schema === false && isNeeded) faults.set(path, "nothing fits false");
    if (schema === false) return fails;
    if (typeof schema !== "object" || schema === null) return fits;
    // What a reference below another `$id` means is not looked for.
    const isForeign = schema !== root && Object.hasOwn(schema, "$id");
    if (isForeign || depth >= maxDepth || left <= 0) return open;
    left -= 1;
    if (under.some((each) => each.schema === schema && each.inOrder === inOrder)) {
      back ??= by;
      return endless;
    }
    const inside = { ...way, under: [...under, { schema, inOrder }] };
    const fields = fieldsOf(schema);
    // A value of another type is looked at all the same.
    depth += 1;
    const rest = all(checksOf(fields, inside), inOrder);
    depth -= 1;
    return both(ofType(fields, way.kind), rest);
  }

  /** In the order in which they are made. */
  function checksOf(fields: Fields, way: Way): readonly Check[] {
    const { kind, path, inOrder, isNeeded } = way;
    const { $ref } = fields;
    const apply = (value: unknown, at: string, more: Partial<Way> = {}): Outcome =>
      outcome(value, { ...way, path: `${path}${at}`, by: `${path}${at}`, ...more });
    const each = (key: string, more?: Partial<Way>): readonly Check[] =>
      itemsOf(fields[key]).map((value, index) => () => apply(value, `/${key}/${index}`, more));
    const asked = { inOrder: true, isNeeded: false };
    const oneOfSome = { isNeeded: false };

    const checks: Check[] = [];
    const add = (key: string, check: Check): void => {
      if (fields[key] !== undefined) checks.push(check);
    };
    add("$dynamicRef", () => open);
    add("$ref", () => {
      const target = lookUp(root, String($ref));
      if (target === undefined) return open;
      const at = decoded(String($ref).slice(1));
      return outcome(target, { ...way, path: at, by: `${path}/$ref`, inOrder: false });
    });
    add("const", () => isAmong([fields["const"]], kind));
    add("enum", () => isAmong(itemsOf(fields["enum"]), kind));
    add("not", () => turned(apply(fields["not"], "/not", asked)));
    add("anyOf", () => some(each("anyOf", oneOfSome), $ref !== undefined && mayEvaluateAll));
    add("oneOf", () => one(each("oneOf", oneOfSome)));
    add("allOf", () => all(each("allOf"), inOrder));
    const consequences = ["then", "else"].map((key) => isAlwaysFit(fields[key]));
    if (fields["if"] !== undefined && !consequences.every(Boolean)) {
      checks.push(() => {
        const met = apply(fields["if"], "/if", asked);
        return (
          (met & endless) |
          (met & fits && apply(fields["then"], "/then", oneOfSome)) |
          (met & fails && apply(fields["else"], "/else", oneOfSome))
        );
      });
    }
    checks.push(() => withinBounds(fields, kind, path, isNeeded));
    if (kind.type === "number") add("multipleOf", () => ofMultiples(fields, kind));
    if (kind.type === "string") add("pattern", () => ofPattern(fields["pattern"], kind));
    if (kind.type === "number" || kind.type === "string") {
      add("format", () => ofFormat(fields["format"], kind, formatOf));
    }
    if (kind.type === "array" || kind.type === "object") {
      checks.push(() => (kind.key === undefined ? ofAny(fields, way) : ofInside(fields, way)));
    }
    if (leftOpen[kind.type].some((key) => fields[key] !== undefined)) checks.push(() => open);
    return checks;
  }

  /** Of texts that no schema names nothing is known. */
  function ofPattern(pattern: unknown, { value }: Kind): Outcome {
    return typeof value === "string" && typeof pattern === "string"
      ? outcomeOf(matches(pattern, value))
      : open;
  }

  function matches(pattern: string, text: string): boolean | undefined {
    return isPaidFor(stepsOf(pattern, text)) ? isMatch(pattern, text) : undefined;
  }

  function formatOf(format: string, text: string): boolean | undefined {
    // None takes longer than that.
    return isPaidFor(text.length ** 2) ? hasFormat(format, text) : undefined;
  }

  /** Whether there is time left for so many steps. */
  function isPaidFor(steps: number): boolean {
    const looks = Math.ceil(steps / stepsOfLook);
    if (looks >= left) return false;
    left -= looks;
    return true;
  }

  function isAmong(values: readonly unknown[], kind: Kind): Outcome {
    const keys = values.map(keyOf);
    if (kind.key !== undefined) return outcomeOf(keys.includes(kind.key));
    const mayBe = keys.some((key, index) => {
      return !named.keys.has(key) && kindOf(values[index]).type === kind.type;
    });
    return mayBe ? open : fails;
  }

  function withinBounds(fields: Fields, kind: Kind, path: string, isNeeded: boolean): Outcome {
    const found = boundsOf(fields, kind.type);
    if (found === undefined) return fits;
    const within = ofBounds(found, kind);
    const { low, high } = found;
    if (within === fails && kind.key === undefined && isNeeded && high.at <= low.at) {
      faults.set(below(path, low.key), `${low.said}, and ${high.said}`);
    }
    return within;
  }

  // Arrays and objects that are not named: what must be inside, and cannot

  function ofAny(fields: Fields, way: Way): Outcome {
    const { type } = way.kind;
    const lacks = type === "array" ? lacksElement(fields, way) : lacksMember(fields, way);
    if (lacks) return fails;
    const keys = type === "array" ? lookInside.array : lookInside.object;
    return keys.some((key) => fields[key] !== undefined) ? open : fits;
  }

  /** Whether there must be one that nothing fits, or more than there can be. */
  function lacksElement(fields: Fields, { path, isNeeded }: Way): boolean {
    const { contains, minContains, maxContains, uniqueItems, items } = fields;
    const first = itemsOf(fields["prefixItems"]);
    const least = boundsOf(fields, "array")?.low.at ?? 0;
    const needed: (readonly [unknown, ...string[]])[] = first
      .slice(0, Math.max(least, 0))
      .map((schema, index) => [schema, "prefixItems", String(index)] as const);
    if (least > first.length) needed.push([items, "items"]);
    const mustContain = contains !== undefined && minContains !== 0;
    if (mustContain) needed.push([contains, "contains"]);
    if (contains !== undefined && Number(minContains ?? 1) > Number(maxContains ?? Infinity)) {
      return true;
    }
    if (uniqueItems === true && least > first.length + differentOf(items)) return true;
    if (mustContain && first.length === 0 && !fitTogether([items, contains])) return true;
    return needed.some(([schema, ...at]) => !innerFits(schema, below(path, ...at), isNeeded));
  }

  /** Whether one value can fit all of them. */
  function fitTogether(schemas: readonly unknown[]): boolean {
    const given = schemas.filter((schema) => schema !== undefined);
    if (given.length < 2 || counted.has(given[0])) return true;
    counted.add(given[0]);
    const can = kinds.some((kind) => given.every((schema) => canBe(schema, kind)));
    counted.delete(given[0]);
    return can;
  }

  /** How many different values fit a schema, of one type or any. */
  function differentOf(schema: unknown, type?: Kind["type"]): number {
    if (schema === undefined || counted.has(schema)) return Infinity;
    counted.add(schema);
    const can = kinds.filter((kind) => kind.type === (type ?? kind.type) && canBe(schema, kind));
    counted.delete(schema);
    return can.every(({ key }) => key !== undefined) ? can.length : Infinity;
  }

  /** Whether one is required that can never be there, or more than there can be. */
  function lacksMember(fields: Fields, way: Way): boolean {
    if ((boundsOf(fields, "object")?.low.at ?? 0) > mostMembers(fields, way)) return true;
    return [...requiredBy(fields)].some(
      (name) =>
        isNoName(fields, name, way) ||
        hasNoValue(fields, name, way) ||
        isRuledOut(fields, name, way),
    );
  }

  /** How many members there can be, as far as their names are known. */
  function mostMembers(fields: Fields, way: Way): number {
    const { additionalProperties, patternProperties, propertyNames } = fields;
    const loose = { ...way, isNeeded: false };
    if (additionalProperties === false && patternProperties === undefined) {
      const names = Object.keys(fieldsOf(fields["properties"]));
      return names.filter(
        (name) => !isNoName(fields, name, loose) && !hasNoValue(fields, name, loose),
      ).length;
    }
    return propertyNames === undefined ? Infinity : differentOf(propertyNames, "string");
  }

  function isNoName({ propertyNames }: Fields, name: string, way: Way): boolean {
    return !(ofInner(propertyNames, name, way, ["propertyNames"]) & fits);
  }

  function hasNoValue(fields: Fields, name: string, { path, isNeeded }: Way): boolean {
    const schemas = schemasOfMember(fields, name).filter(({ isSure }) => isSure);
    const isRefused = schemas.some(({ schema, at }) => {
      if (schema === false && at[0] === "additionalProperties") {
        const fault = `${JSON.stringify(name)} is required, and additionalProperties false allows none of that name`;
        if (isNeeded) faults.set(below(path, "required"), fault);
        return true;
      }
      return !innerFits(schema, below(path, ...at), isNeeded);
    });
    return isRefused || !fitTogether(schemas.map(({ schema }) => schema));
  }

  /** By what the object must be where it has the member. Without it, it may be without an end or not. */
  function isRuledOut({ dependentSchemas }: Fields, name: string, way: Way): boolean {
    const dependent = fieldsOf(dependentSchemas);
    if (!Object.hasOwn(dependent, name)) return false;
    const at = below(way.path, "dependentSchemas", name);
    return outcome(dependent[name], { ...way, path: at, by: at }) === fails;
  }

  // Arrays and objects that are named: all that is inside is known

  function ofInside(fields: Fields, way: Way): Outcome {
    const { type, value } = way.kind;
    const checks =
      type === "array"
        ? elementChecks(fields, value as readonly unknown[], way)
        : memberChecks(fields, value as Fields, way);
    return all(checks, way.inOrder);
  }

  function elementChecks(fields: Fields, value: readonly unknown[], way: Way): readonly Check[] {
    const first = itemsOf(fields["prefixItems"]);
    const checks = value.map((element, index): Check => {
      const isFirst = index < first.length;
      const at = isFirst ? ["prefixItems", String(index)] : ["items"];
      return () => ofInner(isFirst ? first[index] : fields["items"], element, way, at);
    });
    if (fields["contains"] !== undefined) checks.push(() => ofContained(fields, value, way));
    if (fields["uniqueItems"] === true) {
      checks.push(() => outcomeOf(new Set(value.map(keyOf)).size === value.length));
    }
    return checks;
  }

  function ofContained(fields: Fields, value: readonly unknown[], way: Way): Outcome {
    const { contains, minContains = 1, maxContains = Infinity } = fields;
    const found = value.map((element) => ofInner(contains, element, way, ["contains"]));
    const least = found.filter((each) => each === fits).length;
    const most = found.filter((each) => each & fits).length;
    if (most < Number(minContains) || least > Number(maxContains)) return fails;
    return least >= Number(minContains) && most <= Number(maxContains) ? fits : open;
  }

  function memberChecks(fields: Fields, value: Fields, way: Way): readonly Check[] {
    const names = Object.keys(value);
    const has = (name: unknown) => Object.hasOwn(value, String(name));
    const needed = fieldsOf(fields["dependentRequired"]);
    const dependent = fieldsOf(fields["dependentSchemas"]);
    return [
      () => outcomeOf(itemsOf(fields["required"]).every(has)),
      ...names.flatMap((name): readonly Check[] => [
        () => ofInner(fields["propertyNames"], name, way, ["propertyNames"]),
        () => outcomeOf(!Object.hasOwn(needed, name) || itemsOf(needed[name]).every(has)),
        ...schemasOfMember(fields, name).map(
          ({ schema, at, isSure }): Check =>
            () =>
              isSure ? ofInner(schema, value[name], way, at) : open,
        ),
      ]),
      ...Object.keys(dependent)
        .filter(has)
        .map((name): Check => {
          const at = below(way.path, "dependentSchemas", name);
          return () => outcome(dependent[name], { ...way, path: at, by: at });
        }),
    ];
  }

  /** What is made of a value inside. One whose check has no end may be anything. */
  function ofInner(schema: unknown, value: unknown, way: Way, at: readonly string[]): Outcome {
    if (schema === undefined) return fits;
    const path = below(way.path, ...at);
    const inner = { ...way, kind: kindOf(value), path, by: path, isNeeded: false, under: [] };
    const found = outcome(schema, inner);
    return found & endless ? open : found;
  }

  /** Schemas that apply to a member of that name; not sure where a pattern was not tried. */
  function schemasOfMember(fields: Fields, name: string): readonly MemberSchema[] {
    const properties = fieldsOf(fields["properties"]);
    const schemas: MemberSchema[] = [];
    if (Object.hasOwn(properties, name)) {
      schemas.push({ schema: properties[name], at: ["properties", name], isSure: true });
    }
    for (const [pattern, schema] of Object.entries(fieldsOf(fields["patternProperties"]))) {
      const isMatching = matches(pattern, name);
      if (isMatching === false) continue;
      const at = ["patternProperties", pattern];
      schemas.push({ schema, at, isSure: isMatching === true });
    }
    const { additionalProperties } = fields;
    if (additionalProperties !== undefined && schemas.every(({ isSure }) => !isSure)) {
      const isSure = schemas.length === 0;
      schemas.push({ schema: additionalProperties, at: ["additionalProperties"], isSure });
    }
    return schemas;
  }

  function innerFits(schema: unknown, path: string, isNeeded: boolean): boolean {
    if (schema === undefined || fitting.has(schema)) return true;
    const look = looked.get(schema);
    if (look === "NOW" && isNeeded)
      faults.set(path, "what fits it must have the same inside again");
    if (look !== undefined) return false;
    looked.set(schema, "NOW");
    const can = anyFits(schema, path, isNeeded);
    looked.set(schema, "DONE");
    if (can) fitting.add(schema);
    return can;
  }
}
