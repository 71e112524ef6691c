import { flatten } from "../methods.ts";
import { isForbidden, readProperty } from "../properties.ts";
import { charge, chargeNewElements, chargeText, Failure } from "../run.ts";
import type { Run } from "../run.ts";
import { badArgument, list, number } from "../spec.ts";
import type { FunctionSpec } from "../spec.ts";
import { jsonText } from "../json.ts";
import { limits } from "../limits.ts";
import { toText } from "../values.ts";
import { sameContent } from "./values.ts";

export const listFunctions: readonly FunctionSpec[] = [
  {
    name: "first",
    parameters: "list",
    summary: "The first element.",
    example: ["first([1, 2])", 1],
    call: (_run, value) => list("first", value)[0],
  },
  {
    name: "last",
    parameters: "list",
    summary: "The last element.",
    example: ["last([1, 2])", 2],
    call: (_run, value) => {
      const elements = list("last", value);
      return elements[elements.length - 1];
    },
  },
  {
    name: "reverse",
    parameters: "list",
    summary: "The elements in reverse order, as a new list.",
    example: ["reverse([1, 2])", [2, 1]],
    call: (run, value) => copyOf(run, list("reverse", value)).toReversed(),
  },
  {
    name: "sort",
    parameters: "list, direction?",
    summary: "Numbers or texts in order, 'asc' (default) or 'desc', as a new list.",
    example: ["sort([10, 9, 1], 'desc')", [10, 9, 1]],
    plain: true,
    call: (run, value, direction) => sorted(run, list("sort", value), direction),
  },
  {
    name: "unique",
    parameters: "list",
    summary: "Each element once, compared by content, in the order they first occur.",
    example: ["unique([1, 2, 1, '1'])", [1, 2, "1"]],
    call: (run, value) => unique(run, list("unique", value)),
  },
  {
    name: "flatten",
    parameters: "list, depth?",
    summary: "With the elements of lists inside it in their place, `depth` levels down (1).",
    example: ["flatten([[1], [2, [3]]])", [1, 2, [3]]],
    call: (run, value, depth) =>
      flatten(run, list("flatten", value), depth === undefined ? 1 : number("flatten", depth)),
  },
  {
    name: "pluck",
    parameters: "list, key",
    summary: "The value of a key of each element; null where it has none.",
    example: ["sum(pluck([{ n: 1 }, { n: 2 }], 'n'))", 3],
    call: (run, value, key) => {
      const elements = list("pluck", value);
      const name = keyOf(run, "pluck", key);
      chargeNewElements(run, elements.length);
      return Array.from(elements, (element) => readProperty(element, name) ?? null);
    },
  },
  {
    name: "where",
    parameters: "list, key, value",
    summary: "The elements whose key has a value, compared by content.",
    example: ["where([{ n: 1 }, { n: 2 }], 'n', 2)", [{ n: 2 }]],
    call: (run, value, key, wanted) => {
      const name = keyOf(run, "where", key);
      return copyOf(run, list("where", value)).filter((element) =>
        sameContent(run, readProperty(element, name), wanted, 0),
      );
    },
  },
  {
    name: "find",
    parameters: "list, key, value",
    summary: "The first element whose key has a value, compared by content.",
    example: ["find([{ n: 1, s: 'a' }, { n: 2, s: 'b' }], 'n', 2).s", "b"],
    call: (run, value, key, wanted) => {
      const name = keyOf(run, "find", key);
      return copyOf(run, list("find", value)).find((element) =>
        sameContent(run, readProperty(element, name), wanted, 0),
      );
    },
  },
];

function copyOf(run: Run, elements: readonly unknown[]): unknown[] {
  chargeNewElements(run, elements.length);
  return Array.from(elements);
}

function keyOf(run: Run, name: string, key: unknown): string {
  if (typeof key !== "string" && typeof key !== "number") throw badArgument(name, "a key", key);
  const text = toText(run, key);
  if (isForbidden(text)) {
    throw new Failure("FORBIDDEN_PROPERTY", `the key ${JSON.stringify(text)} is never accessible`);
  }
  return text;
}

function sorted(run: Run, elements: readonly unknown[], direction: unknown): unknown[] {
  const sign = directionSign(direction);
  const copy = copyOf(run, elements);
  charge(run, copy.length * Math.ceil(Math.log2(copy.length + 1)));
  if (copy.every((element): element is number => typeof element === "number")) {
    return copy.toSorted((left, right) => sign * (left - right));
  }
  if (copy.every((element): element is string => typeof element === "string")) {
    for (const element of copy) chargeText(run, element.length);
    return copy.toSorted((left, right) => sign * (left < right ? -1 : left > right ? 1 : 0));
  }
  throw new Failure("BAD_ARGUMENT", "sort takes a list of numbers only, or of texts only");
}

function directionSign(direction: unknown): 1 | -1 {
  if (direction === undefined || direction === "asc") return 1;
  if (direction === "desc") return -1;
  throw badArgument("sort", "'asc' or 'desc'", direction);
}

function unique(run: Run, elements: readonly unknown[]): unknown[] {
  const seen = new Set<unknown>();
  const result: unknown[] = [];
  chargeNewElements(run, elements.length);
  for (const element of elements) {
    const identity = identityOf(run, element);
    if (!seen.has(identity)) {
      seen.add(identity);
      result.push(element);
    }
  }
  return result;
}

/** A primitive that is the same for values of the same content. */
function identityOf(run: Run, element: unknown): unknown {
  if (typeof element !== "object" || element === null) {
    if (typeof element === "string") chargeText(run, element.length);
    return typeof element === "string" ? `"${element}` : element;
  }
  return jsonText(run, sortKeys(run, element, 0));
}

function sortKeys(run: Run, value: unknown, depth: number): unknown {
  charge(run, 1);
  if (typeof value !== "object" || value === null || depth > limits.resultDepth) return value;
  if (Array.isArray(value))
    return Array.from(value, (element) => sortKeys(run, element, depth + 1));
  const object = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.keys(object)
      .toSorted()
      .map((key) => [key, sortKeys(run, object[key], depth + 1)]),
  );
}
