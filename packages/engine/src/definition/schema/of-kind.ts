import type { Fields } from "../outline.ts";
import { below, fieldsOf, itemsOf } from "../outline.ts";
import {
  boundsOf,
  formatRuleOf,
  isAlwaysFit,
  isMultiple,
  isWithin,
  ofType,
  sayOf,
} from "./keywords.ts";
import { keyOf, kindOf } from "./kinds.ts";
import type { Kind } from "./kinds.ts";
import type { Look } from "./look.ts";
import { elementSchemas, memberSchemas, namesOf } from "./members.ts";
import type { InnerSchema } from "./members.ts";
import { all, both, endless, fails, fits, one, open, outcomeOf, some, turned } from "./outcomes.ts";
import type { Check, Outcome } from "./outcomes.ts";
import { decoded, lookUp } from "./references.ts";

/**
 * What a schema makes of one kind of value: of one that is named all is known; of others their type alone, and
 * whatever says more of a type leaves it open.
 *
 * Keywords are looked at as the validator does it (Ajv with `allErrors`): all of them, and all alternatives, but
 * inside of `not` and `if` only up to the first that fails. What comes back to itself for the same value has no
 * end, whatever stands beside it.
 */
export interface Outcomes {
  of(schema: unknown, kind: Kind, path?: string): Outcome;
  /** JSON pointer of the keyword by which the schema comes back to itself. */
  back(): string | undefined;
}

/** Schemas that are looked at on the way to one, of its own value and of those around it. */
const maxDepth = 400;

/** How a schema is come to. */
interface Way {
  readonly kind: Kind;
  readonly path: string;
  /** The keyword that applies it. */
  readonly by: string;
  /** Keywords are looked at up to the first that fails, else all of them are. */
  readonly inOrder: boolean;
  /** Schemas of this same value that are being looked at. */
  readonly under: readonly Pick<Way & { schema: unknown }, "schema" | "inOrder">[];
}

export function openOutcomes(look: Look): Outcomes {
  const { root, named } = look;
  // Where a reference has looked at every member and element, the validator spares alternatives beside it.
  const mayEvaluateAll =
    ["additionalProperties", "unevaluatedProperties"].some((name) => named.names.has(name)) &&
    ["items", "unevaluatedItems"].some((name) => named.names.has(name));
  const lists = new WeakMap<readonly unknown[], ReturnType<typeof listOf>>();
  let back: string | undefined;
  let depth = 0;
  return {
    of: (schema, kind, path = "") =>
      outcome(schema, { kind, path, by: path, inOrder: false, under: [] }),
    back: () => back,
  };

  function outcome(schema: unknown, way: Way): Outcome {
    const { by, inOrder, under } = way;
    if (schema === false) return fails;
    if (typeof schema !== "object" || schema === null) return fits;
    // What a reference below another `$id` means is not looked for.
    const isForeign = schema !== root && Object.hasOwn(schema, "$id");
    if (isForeign || depth >= maxDepth || !look.pay()) return open;
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
    const { kind, path, inOrder } = way;
    const { $ref } = fields;
    const apply = (value: unknown, at: string, isAsked = false): Outcome => {
      const to = `${path}${at}`;
      return outcome(value, { ...way, path: to, by: to, inOrder: inOrder || isAsked });
    };
    const each = (key: string): readonly Check[] =>
      itemsOf(fields[key]).map((value, index) => () => apply(value, `/${key}/${index}`));

    const checks: Check[] = [];
    const add = (key: string, check: Check): void => {
      if (fields[key] !== undefined) checks.push(check);
    };
    add("$dynamicRef", () => open);
    add("$ref", () => {
      const target = lookUp(root, $ref);
      if (target === undefined) return open;
      const at = decoded(String($ref).slice(1));
      return outcome(target, { ...way, path: at, by: `${path}/$ref`, inOrder: false });
    });
    add("const", () => isAmong([fields["const"]], kind));
    add("enum", () => isAmong(itemsOf(fields["enum"]), kind));
    add("not", () => turned(apply(fields["not"], "/not", true)));
    add("anyOf", () => some(each("anyOf"), $ref !== undefined && mayEvaluateAll));
    add("oneOf", () => one(each("oneOf")));
    add("allOf", () => all(each("allOf"), inOrder));
    const consequences = ["then", "else"].map((key) => isAlwaysFit(fields[key]));
    if (fields["if"] !== undefined && !consequences.every(Boolean)) {
      checks.push(() => {
        const met = apply(fields["if"], "/if", true);
        return (
          (met & endless) |
          (met & fits && apply(fields["then"], "/then")) |
          (met & fails && apply(fields["else"], "/else"))
        );
      });
    }
    if (!sayOf[kind.type].some((key) => fields[key] !== undefined)) return checks;
    return [...checks, ...(kind.key === undefined ? [() => open] : ofNamed(fields, way))];
  }

  function isAmong(values: readonly unknown[], kind: Kind): Outcome {
    const list = lists.get(values) ?? listOf(values);
    lists.set(values, list);
    if (kind.key !== undefined) return outcomeOf(list.keys.has(kind.key));
    return list.otherTypes.has(kind.type) ? open : fails;
  }

  function listOf(values: readonly unknown[]) {
    const others = values.filter((value) => !named.keys.has(keyOf(value)));
    return {
      keys: new Set(values.map(keyOf)),
      /** Of those that are not looked at one by one. */
      otherTypes: new Set(others.map((value) => kindOf(value).type)),
    };
  }

  // Values that are named: all that is inside is known

  function ofNamed(fields: Fields, way: Way): readonly Check[] {
    const { type, value } = way.kind;
    const within = () => outcomeOf(isWithin(boundsOf(fields, type), value));
    if (type === "number") return [within, ...numberChecks(fields, value as number)];
    if (type === "string") return [within, ...textChecks(fields, value as string)];
    if (type === "array") return [within, ...elementChecks(fields, value as unknown[], way)];
    return [within, ...memberChecks(fields, value as Fields, way)];
  }

  function numberChecks({ multipleOf, format }: Fields, value: number): readonly Check[] {
    // What is no factor is reported as such.
    const isFactor = typeof multipleOf === "number" && multipleOf > 0;
    const isWhole = format === "int32" || format === "int64";
    return [
      () => outcomeOf(!isFactor || isMultiple(value, multipleOf)),
      () => outcomeOf(!isWhole || Number.isInteger(value)),
    ];
  }

  function textChecks(fields: Fields, text: string): readonly Check[] {
    const { pattern } = fields;
    const format = formatRuleOf(fields);
    return [
      () => (typeof pattern === "string" ? outcomeOf(look.matches(pattern, text)) : fits),
      () => (format === undefined ? fits : outcomeOf(look.isOfFormat(format, text))),
    ];
  }

  function elementChecks(fields: Fields, value: readonly unknown[], way: Way): readonly Check[] {
    const checks = value.flatMap((element, index) =>
      elementSchemas(look, fields, index).map((inner) => () => ofInner(inner, element, way)),
    );
    if (fields["contains"] !== undefined) checks.push(() => ofContained(fields, value, way));
    if (fields["uniqueItems"] === true) {
      checks.push(() => outcomeOf(new Set(value.map(keyOf)).size === value.length));
    }
    return checks;
  }

  function ofContained(fields: Fields, value: readonly unknown[], way: Way): Outcome {
    const inner = { schema: fields["contains"], at: ["contains"], isSure: true };
    const { minContains = 1, maxContains = Infinity } = fields;
    const found = value.map((element) => ofInner(inner, element, way));
    const least = found.filter((each) => each === fits).length;
    const most = found.filter((each) => each & fits).length;
    if (most < Number(minContains) || least > Number(maxContains)) return fails;
    return least >= Number(minContains) && most <= Number(maxContains) ? fits : open;
  }

  function memberChecks(fields: Fields, value: Fields, way: Way): readonly Check[] {
    const names = Object.keys(value);
    const has = (name: unknown) => Object.hasOwn(value, String(name));
    return [
      () => outcomeOf(itemsOf(fields["required"]).every(has)),
      ...names.flatMap((name): readonly Check[] => [
        () => ofInner(namesOf(fields), name, way),
        ...memberSchemas(look, fields, name).map((inner) => () => ofInner(inner, value[name], way)),
      ]),
      ...["dependentRequired", "dependentSchemas", "dependencies"].flatMap((key) =>
        Object.entries(fieldsOf(fields[key]))
          .filter(([name]) => has(name))
          .map(([name, needed]): Check => {
            if (Array.isArray(needed)) return () => outcomeOf(needed.every(has));
            const at = below(way.path, key, name);
            return () => outcome(needed, { ...way, path: at, by: at });
          }),
      ),
    ];
  }

  /** What is made of a value inside. One whose check has no end may be anything. */
  function ofInner({ schema, at, isSure }: InnerSchema, value: unknown, way: Way): Outcome {
    const path = below(way.path, ...at);
    const found = outcome(schema, { ...way, kind: kindOf(value), path, by: path, under: [] });
    return found & endless || (found !== fits && !isSure) ? open : found;
  }
}
