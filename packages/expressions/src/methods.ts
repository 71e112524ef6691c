/**
 * The methods of texts, lists and numbers. They are looked up by the type of the value and never on
 * the value, and none of them changes it. They do what JavaScript's do, except that a replacement
 * text is taken as it is, and arrays and objects become text as JSON.
 */
import { limits } from "./limits.ts";
import { charge, chargeNewElements, chargeText, Failure } from "./run.ts";
import type { Run } from "./run.ts";
import type { Documented, MethodSpec } from "./spec.ts";
import {
  chargeSearch,
  joinTexts,
  padding,
  repeatText,
  replaceEvery,
  replaceFirst,
  splitText,
} from "./texts.ts";
import { isWhole, toInteger, toNumber, toText } from "./values.ts";

type List = readonly unknown[];

// Called through the prototype, so that a list of any making has these methods and no others.
const arrays = Array.prototype as readonly unknown[];

const stringMethods: readonly MethodSpec<string>[] = [
  {
    name: "at",
    parameters: "position",
    summary: "The character at a position; a negative one counts from the end.",
    example: ["'abc'.at(-1)", "c"],
    call: (run, self, position) => self.at(toInteger(run, position)),
  },
  {
    name: "charAt",
    parameters: "position?",
    summary: "The character at a position, or an empty text.",
    example: ["'abc'.charAt(1)", "b"],
    call: (run, self, position) => self.charAt(toInteger(run, position)),
  },
  {
    name: "charCodeAt",
    parameters: "position?",
    summary: "The UTF-16 code unit at a position.",
    example: ["'abc'.charCodeAt(0)", 97],
    call: (run, self, position) => self.charCodeAt(toInteger(run, position)),
  },
  {
    name: "codePointAt",
    parameters: "position?",
    summary: "The Unicode code point at a position.",
    example: ["'abc'.codePointAt(0)", 97],
    call: (run, self, position) => self.codePointAt(toInteger(run, position)),
  },
  {
    name: "concat",
    parameters: "...texts",
    summary: "The texts one after the other.",
    example: ["'a'.concat('b', 1)", "ab1"],
    call: (run, self, ...texts) =>
      joinTexts(run, [self, ...texts.map((value) => toText(run, value))], ""),
  },
  {
    name: "endsWith",
    parameters: "text, end?",
    summary: "Whether it ends with a text.",
    example: ["'abc'.endsWith('bc')", true],
    call: (run, self, text, end) => {
      const wanted = toText(run, text);
      chargeText(run, wanted.length);
      return self.endsWith(wanted, toInteger(run, end, self.length));
    },
  },
  {
    name: "includes",
    parameters: "text, from?",
    summary: "Whether it holds a text.",
    example: ["'abc'.includes('b')", true],
    call: (run, self, text, from) => {
      const wanted = toText(run, text);
      chargeSearch(run, self, wanted);
      return self.includes(wanted, toInteger(run, from));
    },
  },
  {
    name: "indexOf",
    parameters: "text, from?",
    summary: "Where a text first occurs, or -1.",
    example: ["'abcabc'.indexOf('c')", 2],
    call: (run, self, text, from) => {
      const wanted = toText(run, text);
      chargeSearch(run, self, wanted);
      return self.indexOf(wanted, toInteger(run, from));
    },
  },
  {
    name: "lastIndexOf",
    parameters: "text, from?",
    summary: "Where a text last occurs, or -1.",
    example: ["'abcabc'.lastIndexOf('c')", 5],
    call: (run, self, text, from) => {
      const wanted = toText(run, text);
      chargeSearch(run, self, wanted);
      return self.lastIndexOf(wanted, fromEnd(run, from));
    },
  },
  {
    name: "padEnd",
    parameters: "length, filler?",
    summary: "At least `length` characters, filled at the end.",
    example: ["'a'.padEnd(3, '-')", "a--"],
    call: (run, self, length, filler) =>
      self + padding(run, self, toInteger(run, length), fillerText(run, filler)),
  },
  {
    name: "padStart",
    parameters: "length, filler?",
    summary: "At least `length` characters, filled at the start.",
    example: ["'7'.padStart(3, '0')", "007"],
    call: (run, self, length, filler) =>
      padding(run, self, toInteger(run, length), fillerText(run, filler)) + self,
  },
  {
    name: "repeat",
    parameters: "count",
    summary: "The text `count` times.",
    example: ["'ab'.repeat(2)", "abab"],
    call: (run, self, count) => repeatText(run, self, toInteger(run, count)),
  },
  {
    name: "replace",
    parameters: "text, replacement",
    summary: "Replaces the first occurrence of a text; `$` means nothing in the replacement.",
    example: ["'a-b-c'.replace('-', '+')", "a+b-c"],
    call: (run, self, text, replacement) =>
      replaceFirst(run, self, toText(run, text), toText(run, replacement)),
  },
  {
    name: "replaceAll",
    parameters: "text, replacement",
    summary: "Replaces every occurrence of a text; `$` means nothing in the replacement.",
    example: ["'a-b-c'.replaceAll('-', '+')", "a+b+c"],
    call: (run, self, text, replacement) =>
      replaceEvery(run, self, toText(run, text), toText(run, replacement)),
  },
  {
    name: "slice",
    parameters: "start?, end?",
    summary: "The part from `start` up to `end`; negative positions count from the end.",
    example: ["'abcd'.slice(1, -1)", "bc"],
    call: (run, self, start, end) =>
      self.slice(toInteger(run, start), toInteger(run, end, self.length)),
  },
  {
    name: "split",
    parameters: "separator?, limit?",
    summary: "The pieces between occurrences of a text.",
    example: ["'a,b'.split(',')", ["a", "b"]],
    call: (run, self, separator, limit) => {
      // JavaScript takes the limit modulo 2^32, so that a negative one is none.
      const most = limit === undefined ? Infinity : toInteger(run, limit) >>> 0;
      if (separator === undefined) return most === 0 ? [] : [self];
      return splitText(run, self, toText(run, separator), most);
    },
  },
  {
    name: "startsWith",
    parameters: "text, from?",
    summary: "Whether it starts with a text.",
    example: ["'abc'.startsWith('ab')", true],
    call: (run, self, text, from) => {
      const wanted = toText(run, text);
      chargeText(run, wanted.length);
      return self.startsWith(wanted, toInteger(run, from));
    },
  },
  {
    name: "substring",
    parameters: "start, end?",
    summary: "The part between two positions, in either order.",
    example: ["'abcd'.substring(1, 3)", "bc"],
    call: (run, self, start, end) =>
      self.substring(toInteger(run, start), toInteger(run, end, self.length)),
  },
  {
    name: "toLowerCase",
    parameters: "",
    summary: "In lower case.",
    example: ["'Ab'.toLowerCase()", "ab"],
    call: (run, self) => {
      chargeText(run, self.length);
      return self.toLowerCase();
    },
  },
  {
    name: "toUpperCase",
    parameters: "",
    summary: "In upper case.",
    example: ["'Ab'.toUpperCase()", "AB"],
    call: (run, self) => {
      chargeText(run, self.length);
      return self.toUpperCase();
    },
  },
  {
    name: "trim",
    parameters: "",
    summary: "Without blanks at both ends.",
    example: ["' a '.trim()", "a"],
    call: (run, self) => {
      chargeText(run, self.length);
      return self.trim();
    },
  },
  {
    name: "trimEnd",
    parameters: "",
    summary: "Without blanks at the end.",
    example: ["' a '.trimEnd()", " a"],
    call: (run, self) => {
      chargeText(run, self.length);
      return self.trimEnd();
    },
  },
  {
    name: "trimStart",
    parameters: "",
    summary: "Without blanks at the start.",
    example: ["' a '.trimStart()", "a "],
    call: (run, self) => {
      chargeText(run, self.length);
      return self.trimStart();
    },
  },
];

const arrayMethods: readonly MethodSpec<List>[] = [
  {
    name: "at",
    parameters: "position",
    summary: "The element at a position; a negative one counts from the end.",
    example: ["[1, 2, 3].at(-1)", 3],
    call: (run, self, position) => arrays.at.call(self, toInteger(run, position)),
  },
  {
    name: "concat",
    parameters: "...values",
    summary: "The list followed by the values; lists among them are taken apart.",
    example: ["[1].concat([2, 3], 4)", [1, 2, 3, 4]],
    call: (run, self, ...values) => {
      const length = values.reduce<number>(
        (sum, value) => sum + (Array.isArray(value) ? value.length : 1),
        self.length,
      );
      chargeNewElements(run, length);
      const result: unknown[] = [];
      for (const value of [self, ...values]) {
        if (Array.isArray(value)) for (const element of value) result.push(element);
        else result.push(value);
      }
      return result;
    },
  },
  {
    name: "flat",
    parameters: "depth?",
    summary: "With the elements of lists inside it in their place, `depth` levels down (1).",
    example: ["[1, [2, [3]]].flat()", [1, 2, [3]]],
    call: (run, self, depth) => flatten(run, self, toInteger(run, depth, 1)),
  },
  {
    name: "includes",
    parameters: "value, from?",
    summary: "Whether a plain value is among the elements; where() and find() look into objects.",
    example: ["['a', 'b'].includes('b')", true],
    call: (run, self, value, from) => {
      chargeElements(run, self, value);
      return !isWhole(value) && arrays.includes.call(self, value, toInteger(run, from));
    },
  },
  {
    name: "indexOf",
    parameters: "value, from?",
    summary: "Where a plain value first occurs, or -1.",
    example: ["['a', 'b'].indexOf('b')", 1],
    call: (run, self, value, from) => {
      chargeElements(run, self, value);
      return isWhole(value) ? -1 : arrays.indexOf.call(self, value, toInteger(run, from));
    },
  },
  {
    name: "join",
    parameters: "separator?",
    summary: "The elements as one text; a missing one is empty.",
    example: ["['a', 1, null].join('-')", "a-1-"],
    call: (run, self, separator) =>
      joinTexts(run, self, separator === undefined ? "," : toText(run, separator)),
  },
  {
    name: "lastIndexOf",
    parameters: "value, from?",
    summary: "Where a plain value last occurs, or -1.",
    example: ["['a', 'b', 'a'].lastIndexOf('a')", 2],
    call: (run, self, value, from) => {
      chargeElements(run, self, value);
      if (isWhole(value)) return -1;
      return arrays.lastIndexOf.call(
        self,
        value,
        from === undefined ? Infinity : toInteger(run, from),
      );
    },
  },
  {
    name: "slice",
    parameters: "start?, end?",
    summary: "The part from `start` up to `end`; negative positions count from the end.",
    example: ["[1, 2, 3].slice(1)", [2, 3]],
    call: (run, self, start, end) => {
      const first = fromStart(toInteger(run, start), self.length);
      const behind = fromStart(toInteger(run, end, self.length), self.length);
      chargeNewElements(run, Math.max(0, behind - first));
      const part: unknown[] = [];
      for (let index = first; index < behind; index++) part.push(self[index]);
      return part;
    },
  },
  {
    name: "toReversed",
    parameters: "",
    summary: "The elements in reverse order.",
    example: ["[1, 2].toReversed()", [2, 1]],
    call: (run, self) => {
      chargeNewElements(run, self.length);
      return arrays.toReversed.call(self);
    },
  },
];

const numberMethods: readonly MethodSpec<number>[] = [
  {
    name: "toFixed",
    parameters: "digits?",
    summary: "As text with a fixed number of digits behind the point, 0 to 100.",
    example: ["(2.5).toFixed(2)", "2.50"],
    call: (run, self, digits) => {
      const count = toInteger(run, digits);
      if (!(count >= 0 && count <= 100)) {
        throw new Failure("BAD_ARGUMENT", `toFixed takes 0 to 100 digits, not ${count}`);
      }
      return self.toFixed(count);
    },
  },
];

/** A list with lists inside it taken apart. Also what the function `flatten` does. */
export function flatten(run: Run, self: List, depth: number): unknown[] {
  const result: unknown[] = [];
  appendFlat(run, result, self, depth, limits.resultDepth);
  return result;
}

function appendFlat(
  run: Run,
  result: unknown[],
  source: List,
  depth: number,
  levels: number,
): void {
  if (levels < 0) throw new Failure("TOO_DEEP", "the list is nested too deep to be flattened");
  charge(run, source.length);
  for (const element of source) {
    if (depth > 0 && Array.isArray(element)) {
      appendFlat(run, result, element, depth - 1, levels - 1);
    } else {
      result.push(element);
      if (result.length > limits.arrayLength) chargeNewElements(run, result.length);
    }
  }
}

/** A position counted from the end when negative, kept inside the list. */
function fromStart(given: number, length: number): number {
  return given < 0 ? Math.max(0, length + given) : Math.min(given, length);
}

/** Searching a list for a long text compares it with each element. */
function chargeElements(run: Run, self: List, value: unknown): void {
  charge(run, 1 + self.length);
  if (typeof value === "string") charge(run, self.length * Math.floor(value.length / 1_024));
}

/** The start of a search from the end: NaN and absence mean the whole text. */
function fromEnd(run: Run, from: unknown): number {
  if (from === undefined) return Infinity;
  const position = toNumber(run, from);
  return Number.isNaN(position) ? Infinity : position;
}

function fillerText(run: Run, filler: unknown): string {
  return filler === undefined ? " " : toText(run, filler);
}

/** What a method name may mean, by the type of the value it is called on. */
export interface Method {
  readonly string: MethodSpec<string> | undefined;
  readonly array: MethodSpec<List> | undefined;
  readonly number: MethodSpec<number> | undefined;
}

export function findMethod(name: string): Method | undefined {
  return methodsByName.get(name);
}

export const methodNames: readonly string[] = [
  ...new Set([...stringMethods, ...arrayMethods, ...numberMethods].map(({ name }) => name)),
].toSorted();

const methodsByName: ReadonlyMap<string, Method> = new Map(
  methodNames.map((name) => [
    name,
    {
      string: stringMethods.find((method) => method.name === name),
      array: arrayMethods.find((method) => method.name === name),
      number: numberMethods.find((method) => method.name === name),
    },
  ]),
);

/** All methods, as documentation shows them. */
export const methods: readonly (Documented & { readonly on: "string" | "array" | "number" })[] = [
  ...stringMethods.map((method) => documented("string", method)),
  ...arrayMethods.map((method) => documented("array", method)),
  ...numberMethods.map((method) => documented("number", method)),
];

function documented<On extends "string" | "array" | "number">(
  on: On,
  { name, parameters, summary, example }: Documented,
): Documented & { readonly on: On } {
  return { on, name, parameters, summary, example };
}
