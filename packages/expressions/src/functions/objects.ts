import { setOwn } from "../properties.ts";
import type { JsonObject } from "../properties.ts";
import { charge, chargeNewElements } from "../run.ts";
import type { Run } from "../run.ts";
import { badArgument, list, object } from "../spec.ts";
import type { FunctionSpec } from "../spec.ts";
import { hasOwn, keyText } from "../values.ts";

export const objectFunctions: readonly FunctionSpec[] = [
  {
    name: "keys",
    parameters: "object",
    summary: "The keys of an object.",
    example: ["keys({ a: 1, b: 2 })", ["a", "b"]],
    plain: true,
    call: (run, value) => keysOf(run, object("keys", value)),
  },
  {
    name: "values",
    parameters: "object",
    summary: "The values of an object.",
    example: ["values({ a: 1, b: 2 })", [1, 2]],
    call: (run, value) => {
      const given = object("values", value);
      return keysOf(run, given).map((key) => given[key]);
    },
  },
  {
    name: "entries",
    parameters: "object",
    summary: "The [key, value] pairs of an object.",
    example: ["entries({ a: 1 })", [["a", 1]]],
    call: (run, value) => {
      const given = object("entries", value);
      return keysOf(run, given).map((key) => [key, given[key]]);
    },
  },
  {
    name: "fromEntries",
    parameters: "pairs",
    summary: "The object of [key, value] pairs; the last of equal keys counts.",
    example: ["fromEntries([['a', 1]])", { a: 1 }],
    call: (run, value) => {
      const pairs = list("fromEntries", value);
      chargeNewElements(run, pairs.length);
      const result: Record<string, unknown> = {};
      for (const pair of pairs) {
        const key: unknown = Array.isArray(pair) ? pair[0] : undefined;
        const name = key === undefined ? undefined : keyText(run, key);
        if (name === undefined) throw badArgument("fromEntries", "[key, value] pairs", pair);
        result[name] = (pair as readonly unknown[])[1];
      }
      return result;
    },
  },
  {
    name: "has",
    parameters: "object, key",
    summary: "Whether an object has a key, or a list a position; also when the value is null.",
    example: ["has({ a: null }, 'a')", true],
    plain: true,
    call: (run, value, key) => hasOwn(run, value, key),
  },
  {
    name: "merge",
    parameters: "...objects",
    summary: "One object with the keys of all; the last of equal keys counts. Not deep.",
    example: ["merge({ a: 1, b: 1 }, { b: 2 })", { a: 1, b: 2 }],
    call: (run, ...values) => {
      const result: Record<string, unknown> = {};
      for (const value of values) copyMembers(run, result, object("merge", value));
      return result;
    },
  },
  {
    name: "pick",
    parameters: "object, keys",
    summary: "The object with only these keys.",
    example: ["pick({ a: 1, b: 2 }, ['a'])", { a: 1 }],
    call: (run, value, keys) => {
      const wanted = keySet(run, "pick", keys);
      return membersWhere(run, object("pick", value), (key) => wanted.has(key));
    },
  },
  {
    name: "omit",
    parameters: "object, keys",
    summary: "The object without these keys.",
    example: ["omit({ a: 1, b: 2 }, ['a'])", { b: 2 }],
    call: (run, value, keys) => {
      const unwanted = keySet(run, "omit", keys);
      return membersWhere(run, object("omit", value), (key) => !unwanted.has(key));
    },
  },
];

function keysOf(run: Run, value: JsonObject): readonly string[] {
  const keys = Object.keys(value);
  chargeNewElements(run, keys.length);
  // Measured: a key costs several times what an element of a list does.
  charge(run, 3 * keys.length);
  return keys;
}

/** Copies own members whatever their names. Also what `{...value}` does. */
export function copyMembers(run: Run, target: Record<string, unknown>, source: JsonObject): void {
  for (const key of keysOf(run, source)) setOwn(target, key, source[key]);
}

function keySet(run: Run, name: string, keys: unknown): ReadonlySet<string> {
  const names = list(name, typeof keys === "string" ? [keys] : keys);
  charge(run, names.length);
  return new Set(
    names.map((key) => {
      if (typeof key !== "string") throw badArgument(name, "a list of keys", key);
      return key;
    }),
  );
}

function membersWhere(
  run: Run,
  source: JsonObject,
  wanted: (key: string) => boolean,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of keysOf(run, source)) if (wanted(key)) setOwn(result, key, source[key]);
  return result;
}
