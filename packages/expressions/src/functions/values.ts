import { jsonText } from "../json.ts";
import { limits } from "../limits.ts";
import { charge, chargeNewText, chargeText, Failure } from "../run.ts";
import type { Run } from "../run.ts";
import { badArgument, text } from "../spec.ts";
import type { FunctionSpec } from "../spec.ts";
import { isMissing, toNumber, toText, typeOf } from "../values.ts";

export const valueFunctions: readonly FunctionSpec[] = [
  {
    name: "type",
    parameters: "value",
    summary: "undefined, null, boolean, number, string, array or object.",
    example: ["type([])", "array"],
    plain: true,
    call: (_run, value) => typeOf(value),
  },
  {
    name: "isDefined",
    parameters: "value",
    summary: "Whether a value is there; null is.",
    example: ["isDefined(null)", true],
    plain: true,
    call: (_run, value) => value !== undefined,
  },
  {
    name: "isEmpty",
    parameters: "value",
    summary: "Whether it is missing, null, or a text, list or object with nothing in it.",
    example: ["isEmpty({})", true],
    plain: true,
    call: (run, value) =>
      isMissing(value) ||
      ((typeof value === "string" || typeof value === "object") && sizeOf(run, value) === 0),
  },
  {
    name: "size",
    parameters: "value",
    summary: "Characters of a text, elements of a list, keys of an object; 0 when missing.",
    example: ["size(['a', 'b'])", 2],
    plain: true,
    call: sizeOf,
  },
  {
    name: "coalesce",
    parameters: "...values",
    summary: "The first value that is neither missing nor null.",
    example: ["coalesce(null, 0, 1)", 0],
    call: (_run, ...values) => values.find((value) => !isMissing(value)),
  },
  {
    name: "equals",
    parameters: "left, right",
    summary:
      "Whether two values are the same in content; by `===` a list or object equals nothing.",
    example: ["equals({ a: [1] }, { a: [1] })", true],
    plain: true,
    call: (run, left, right) => sameContent(run, left, right, 0),
  },
  {
    name: "string",
    parameters: "value",
    summary: "As text, lists and objects as JSON; missing stays missing.",
    example: ["string(1.5)", "1.5"],
    plain: true,
    call: (run, value) => (value === undefined ? undefined : toText(run, value)),
  },
  {
    name: "number",
    parameters: "value",
    summary: "A text or boolean as a number; NaN when it is none, a blank text included.",
    example: ["number(' 42 ')", 42],
    plain: true,
    call: (run, value) => {
      if (value === null || (typeof value === "string" && value.trim() === "")) return Number.NaN;
      return toNumber(run, value);
    },
  },
  {
    name: "boolean",
    parameters: "value",
    summary: "The texts true and false by what they say, anything else as a condition takes it.",
    example: ["boolean('false')", false],
    plain: true,
    call: (_run, value) => {
      if (typeof value !== "string" || value.length > 5) return Boolean(value);
      return value.toLowerCase() === "false" ? false : Boolean(value);
    },
  },
  {
    name: "json",
    parameters: "value",
    summary: "As JSON text; missing stays missing.",
    example: ["json({ a: [1, null] })", '{"a":[1,null]}'],
    plain: true,
    call: (run, value) => (value === undefined ? undefined : jsonText(run, value)),
  },
  {
    name: "parseJson",
    parameters: "text",
    summary: "The value of a JSON text; missing stays missing.",
    example: ["parseJson('[1, 2]')", [1, 2]],
    plain: true,
    call: (run, value) => (value === undefined ? undefined : parseJson(run, value)),
  },
  {
    name: "lower",
    parameters: "text",
    summary: "In lower case; missing stays missing.",
    example: ["lower('Ab')", "ab"],
    plain: true,
    call: (run, value) => onText(run, "lower", value, (given) => given.toLowerCase()),
  },
  {
    name: "upper",
    parameters: "text",
    summary: "In upper case; missing stays missing.",
    example: ["upper('Ab')", "AB"],
    plain: true,
    call: (run, value) => onText(run, "upper", value, (given) => given.toUpperCase()),
  },
  {
    name: "trim",
    parameters: "text",
    summary: "Without blanks at both ends; missing stays missing.",
    example: ["trim(' a ')", "a"],
    plain: true,
    call: (run, value) => onText(run, "trim", value, (given) => given.trim()),
  },
  {
    name: "urlEncode",
    parameters: "text",
    summary: "As it may stand in a part of a URL; missing stays missing.",
    example: ["urlEncode('a b/c')", "a%20b%2Fc"],
    plain: true,
    call: (run, value) => {
      if (value === undefined) return undefined;
      const given = toText(run, value);
      chargeNewText(run, given.length);
      return urlEncode(given);
    },
  },
];

function sizeOf(run: Run, value: unknown): number {
  if (typeof value === "string") return value.length;
  if (Array.isArray(value)) return value.length;
  if (isMissing(value)) return 0;
  if (typeof value !== "object") throw badArgument("size", "a text, list or object", value);
  const { length } = Object.keys(value);
  charge(run, 4 * length);
  return length;
}

function onText(
  run: Run,
  name: string,
  value: unknown,
  operation: (given: string) => string,
): unknown {
  if (isMissing(value)) return value;
  const given = text(name, value);
  chargeText(run, given.length);
  return operation(given);
}

function urlEncode(given: string): string {
  try {
    return encodeURIComponent(given);
  } catch (cause) {
    if (cause instanceof URIError) {
      throw new Failure("BAD_ARGUMENT", "urlEncode got a text with half a character in it");
    }
    throw cause;
  }
}

function parseJson(run: Run, value: unknown): unknown {
  const given = text("parseJson", value);
  chargeNewText(run, given.length);
  // Nesting is counted first: deep JSON parses, and then breaks whoever walks over it.
  if (nestingOf(given) > limits.resultDepth) {
    throw new Failure("TOO_DEEP", `the JSON text is nested deeper than ${limits.resultDepth}`);
  }
  // Every value takes at least two characters, and is dearer than they are.
  charge(run, given.length / 2);
  try {
    return JSON.parse(given);
  } catch (cause) {
    if (cause instanceof SyntaxError) {
      throw new Failure("BAD_ARGUMENT", `parseJson got a text that is not JSON: ${cause.message}`);
    }
    throw cause;
  }
}

/** The most brackets open at once; brackets inside texts do not count. */
function nestingOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let index = 0; index < json.length; index++) {
    const character = json[index];
    if (quoted && character === "\\") index++;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && (character === "[" || character === "{")) {
      deepest = Math.max(deepest, ++depth);
    } else if (!quoted && (character === "]" || character === "}")) depth--;
  }
  return deepest;
}

/** Equality by content: NaN is itself, a key that is undefined is one that is not there. */
export function sameContent(run: Run, left: unknown, right: unknown, depth: number): boolean {
  charge(run, 1);
  if (typeof left === "string") {
    chargeText(run, left.length);
    return left === right;
  }
  if (left === right || (Number.isNaN(left) && Number.isNaN(right))) return true;
  if (typeof left !== "object" || typeof right !== "object") return false;
  if (left === null || right === null || Array.isArray(left) !== Array.isArray(right)) return false;
  if (depth >= limits.resultDepth) {
    throw new Failure("TOO_DEEP", `the values are nested deeper than ${limits.resultDepth}`);
  }
  if (Array.isArray(left)) {
    const other = right as readonly unknown[];
    if (left.length !== other.length) return false;
    for (let index = 0; index < left.length; index++) {
      if (!sameContent(run, left[index], other[index], depth + 1)) return false;
    }
    return true;
  }
  const first = left as Readonly<Record<string, unknown>>;
  const second = right as Readonly<Record<string, unknown>>;
  const keys = definedKeys(run, first);
  if (keys.length !== definedKeys(run, second).length) return false;
  return keys.every(
    (key) => Object.hasOwn(second, key) && sameContent(run, first[key], second[key], depth + 1),
  );
}

function definedKeys(run: Run, value: Readonly<Record<string, unknown>>): readonly string[] {
  const keys = Object.keys(value);
  charge(run, keys.length);
  return keys.filter((key) => value[key] !== undefined);
}
