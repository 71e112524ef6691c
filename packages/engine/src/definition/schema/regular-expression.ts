/** A regular expression, as far as it is one in the sense of the theory: nothing is remembered. */
export type Expression =
  | { readonly kind: "set"; readonly ranges: CharSet }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly Expression[] }
  | {
      readonly kind: "repeat";
      readonly part: Expression;
      readonly min: number;
      readonly max: number;
    }
  | { readonly kind: "start" | "end" }
  | { readonly kind: "ahead" | "notAhead"; readonly part: Expression };

/** Code points, from and to, in their order, with room between. */
export type CharSet = readonly (readonly [from: number, to: number])[];

export const lastChar = 0x10ffff;
/** Any more are not read. */
const maxLength = 4_000;

export interface Reading {
  /** Of the letters of ASCII. */
  readonly ignoreCase?: boolean;
  /**
   * So that texts can be made up, some of which match: what is remembered, or looked for behind, is an expression of
   * its own, bounds of words are not looked at, and of a class by its name there are some characters.
   */
  readonly isRough?: boolean;
}

/**
 * Reads a pattern that the `u` flag accepts.
 *
 * @returns Undefined for what is not read: what is remembered, looked for behind, or a class by its name.
 */
export function readExpression(pattern: string, reading: Reading = {}): Expression | undefined {
  const { ignoreCase = false, isRough = false } = reading;
  if (pattern.length > maxLength) return undefined;
  const chars = Array.from(pattern);
  const groups: Expression[] = [];
  const names = new Map<string, number>();
  let at = 0;
  try {
    const found = choice();
    return at === chars.length ? found : undefined;
  } catch (error) {
    if (error instanceof NotReadError) return undefined;
    throw error;
  }

  function take(text: string): boolean {
    let isNext = true;
    for (let index = 0; index < text.length; index += 1) {
      if (chars[at + index] !== text[index]) isNext = false;
    }
    if (isNext) at += text.length;
    return isNext;
  }

  function choice(): Expression {
    const parts = [sequence()];
    while (take("|")) parts.push(sequence());
    return { kind: "choice", parts };
  }

  function sequence(): Expression {
    const parts: Expression[] = [];
    while (at < chars.length && chars[at] !== "|" && chars[at] !== ")") {
      parts.push(repeated(single()));
    }
    return { kind: "sequence", parts };
  }

  function single(): Expression {
    if (take("^")) return { kind: "start" };
    if (take("$")) return { kind: "end" };
    if (take("(?=")) return closed({ kind: "ahead", part: choice() });
    if (take("(?!")) return closed({ kind: "notAhead", part: choice() });
    if (take("(?:")) return closed(choice());
    if (take("(?<=")) return roughly(() => closed(choice()));
    if (take("(?<!")) return roughly(() => closed(choice()) && nothing);
    if (take("(?<")) names.set(upTo(">"), groups.length);
    else if (take("(?")) return notRead();
    else if (!take("(")) return character();
    const own = groups.push(nothing) - 1;
    const group = closed(choice());
    groups[own] = group;
    return group;
  }

  function character(): Expression {
    if (take("\\b") || take("\\B")) return roughly(() => nothing);
    if (take("\\k<")) return roughly(() => groups[names.get(upTo(">")) ?? -1] ?? nothing);
    if (/[1-9]/.test(chars[at + 1] ?? "") && take("\\")) {
      return roughly(() => groups[digits() - 1] ?? nothing);
    }
    if (take(".")) return { kind: "set", ranges: others(lineEnds) };
    if (take("[")) return { kind: "set", ranges: bracketed() };
    return { kind: "set", ranges: inCase(take("\\") ? escaped() : one(next())) };
  }

  function roughly(read: () => Expression): Expression {
    return isRough ? read() : notRead();
  }

  function upTo(end: string): string {
    const to = chars.indexOf(end, at);
    const text = chars.slice(at, to).join("");
    at = to + 1;
    return text;
  }

  function closed(found: Expression): Expression {
    return take(")") ? found : notRead();
  }

  function repeated(part: Expression): Expression {
    const [min, max] = times() ?? [1, 1];
    take("?");
    return min === 1 && max === 1 ? part : { kind: "repeat", part, min, max };
  }

  function times(): readonly [number, number] | undefined {
    if (take("*")) return [0, Infinity];
    if (take("+")) return [1, Infinity];
    if (take("?")) return [0, 1];
    if (!take("{")) return undefined;
    const min = digits();
    const max = take(",") ? (chars[at] === "}" ? Infinity : digits()) : min;
    return take("}") ? [min, max] : notRead();
  }

  function digits(): number {
    let text = "";
    while (/\d/.test(chars[at] ?? "")) text += next();
    return text === "" ? notRead() : Number(text);
  }

  function bracketed(): CharSet {
    const isOthers = take("^");
    const ranges: CharSet[number][] = [];
    while (!take("]")) {
      const first = member();
      const isRange = chars[at] === "-" && chars[at + 1] !== "]";
      if (isRange) at += 1;
      const last = isRange ? member() : first;
      if (isRange) ranges.push([first[0]?.[0] ?? 0, last[0]?.[0] ?? 0]);
      else ranges.push(...first);
    }
    const all = inCase(union(ranges));
    return isOthers ? others(all) : all;
  }

  function member(): CharSet {
    if (take("\\b")) return one("\b");
    return take("\\") ? escaped() : one(next());
  }

  function next(): string {
    const char = chars[at];
    at += 1;
    return char ?? notRead();
  }

  function escaped(): CharSet {
    const char = next();
    const named = classes[char] ?? classes[char.toLowerCase()];
    if (named !== undefined) return char === char.toLowerCase() ? named : others(named);
    const control = controls[char];
    if (control !== undefined) return one(control);
    if (char.toLowerCase() === "p" && isRough) return sampleOf(`\\${char}${upTo("}")}}`);
    if (char === "c") return one(String.fromCodePoint((next().codePointAt(0) ?? 0) % 32));
    if (char === "x") return code(2);
    if (char === "u") {
      if (!take("{")) return code(4);
      const to = chars.indexOf("}", at);
      const found = code(to - at);
      at += 1;
      return found;
    }
    return /[a-z\d]/i.test(char) ? notRead() : one(char);
  }

  function code(length: number): CharSet {
    const text = chars.slice(at, at + length).join("");
    at += length;
    const found = Number.parseInt(text, 16);
    // Two halves of one code point, each by its own escape.
    if (Number.isNaN(found) || (found >= 0xd800 && found <= 0xdfff)) return notRead();
    return [[found, found]];
  }

  /** With the other case of letters: those of ASCII alone have one in formats. */
  function inCase(set: CharSet): CharSet {
    if (!ignoreCase) return set;
    const more = set.flatMap(([from, to]) => [
      ...shifted(Math.max(from, 65), Math.min(to, 90), 32),
      ...shifted(Math.max(from, 97), Math.min(to, 122), -32),
    ]);
    return union([...set, ...more]);
  }
}

const nothing: Expression = { kind: "sequence", parts: [] };

const samples = new Map<string, CharSet>();

/** Kept, as there are only so many names of classes. */
function sampleOf(name: string): CharSet {
  const sample = samples.get(name) ?? classSample(name);
  samples.set(name, sample);
  return sample;
}

/** Those of ASCII, Latin-1, and one or another of other scripts. */
function classSample(name: string): CharSet {
  const inClass = new RegExp(name, "u");
  const codes = [
    ...Array(0x100).keys(),
    ...Array.from("Ωжあ中א😀€").map((char) => char.codePointAt(0) ?? 0),
  ];
  const found = codes.filter((code) => inClass.test(String.fromCodePoint(code)));
  if (found.length === 0) return setOf(inClass.exec(rarer())?.[0] ?? "");
  return union(found.map((code) => [code, code] as const));
}

/** A class of which those have none is of some script before the Chinese ones, or a rare kind of letter. */
function rarer(): string {
  return String.fromCodePoint(...Array.from({ length: 0x2f00 }, (_, index) => 0x100 + index));
}

class NotReadError extends Error {}

function notRead(): never {
  throw new NotReadError();
}

function one(char: string): CharSet {
  const code = char.codePointAt(0) ?? 0;
  return [[code, code]];
}

function shifted(from: number, to: number, by: number): CharSet {
  return from <= to ? [[from + by, to + by]] : [];
}

function union(ranges: CharSet): CharSet {
  const all: [number, number][] = [];
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    const last = all.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
  }
  return all;
}

function others(set: CharSet): CharSet {
  const ends = [-1, ...set.map(([, to]) => to)];
  return ends.flatMap((end, index): CharSet => {
    const to = (set[index]?.[0] ?? lastChar + 1) - 1;
    return end < to ? [[end + 1, to]] : [];
  });
}

const setOf = (chars: string): CharSet => union(Array.from(chars).flatMap(one));

const lineEnds = setOf("\n\r\u2028\u2029");

const classes: Readonly<Record<string, CharSet>> = {
  d: [[48, 57]],
  w: [
    [48, 57],
    [65, 90],
    [95, 95],
    [97, 122],
  ],
  s: union([
    ...setOf("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"),
    [0x2000, 0x200a],
  ]),
};

const controls: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  f: "\f",
  "0": "\0",
};
