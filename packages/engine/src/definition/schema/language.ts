import { charOf, has, rankOf, readable } from "./characters.ts";
import type { Choose } from "./characters.ts";
import { lastChar } from "./regular-expression.ts";
import type { CharSet, Expression } from "./regular-expression.ts";

// Sets of texts, by what regular expressions match, how many texts are in one, and some of them. A set is followed from one
// character to the next (Brzozowski's derivatives): what is left to come after it is a set again, and there are only so
// many different ones.

/** A set of texts. The same set of the same parts is one object. */
export interface Texts {
  readonly id: number;
  readonly kind: "chars" | "chain" | "any" | "all" | "not" | "repeat";
  readonly chars: CharSet;
  readonly parts: readonly Texts[];
  readonly min: number;
  readonly max: number;
  /** The empty text is in it. */
  readonly hasEmpty: boolean;
}

export type Language = ReturnType<typeof openLanguage>;

/** Whether anything of the text comes before, and of what matches. */
type Place = "START" | "LATER" | "INSIDE" | "UNSURE";

/** Thrown where it takes too many steps, or where an assertion stands where it is not worked out. */
export class NotWorkedOutError extends Error {}

/** Characters of a text that are chosen; then it goes on to its nearest end. */
const mostChosen = 50;

/** All that is made of sets of texts, in no more than so many steps. */
export function openLanguage(maxSteps: number) {
  let steps = 0;
  const known = new Map<string, Texts>();
  const after = new Map<Texts, Map<number, Texts>>();
  const sets: CharSet[] = [];
  const none = make("any", []);
  const every = make("not", [none]);
  const empty = make("repeat", [none], { min: 0, max: 0 });
  const char = chars([[0, lastChar]]);
  return {
    every,
    matching,
    sized,
    words,
    atLeast,
    not,
    any,
    all,
    count,
    textsOf,
    steps: () => steps,
  };

  function take(more: number): void {
    steps += more;
    if (steps > maxSteps) throw new NotWorkedOutError();
  }

  function make(
    kind: Texts["kind"],
    parts: readonly Texts[],
    { chars: own = [], min = 1, max = 1 }: Partial<Texts> = {},
  ): Texts {
    take(1 + parts.length);
    const key = `${kind} ${parts.map(({ id }) => id).join()} ${own.join()} ${min} ${max}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const hasEmpty = {
      chars: () => false,
      chain: () => parts.every((part) => part.hasEmpty),
      any: () => parts.some((part) => part.hasEmpty),
      all: () => parts.every((part) => part.hasEmpty),
      not: () => parts[0]?.hasEmpty === false,
      repeat: () => min === 0 || parts[0]?.hasEmpty === true,
    }[kind]();
    const made = { id: known.size, kind, chars: own, parts, min, max, hasEmpty };
    known.set(key, made);
    return made;
  }

  function chars(set: CharSet): Texts {
    if (set.length === 0) return none;
    sets.push(set);
    return make("chars", [], { chars: set });
  }

  function then(first: Texts, second: Texts): Texts {
    if (first === none || second === none) return none;
    if (first === empty) return second;
    if (second === empty) return first;
    if (first === every && second.hasEmpty) return every;
    const [head, tail] = first.parts;
    if (first.kind === "chain" && head && tail) return then(head, then(tail, second));
    return make("chain", [first, second]);
  }

  function any(parts: readonly Texts[]): Texts {
    const own = flat("any", parts).filter((part) => part !== none);
    if (own.includes(every)) return every;
    return own.length === 1 && own[0] ? own[0] : make("any", own);
  }

  function all(parts: readonly Texts[]): Texts {
    const own = flat("all", parts).filter((part) => part !== every);
    if (own.includes(none)) return none;
    if (own.includes(empty)) return own.every(({ hasEmpty }) => hasEmpty) ? empty : none;
    if (own.length === 0) return every;
    return own.length === 1 && own[0] ? own[0] : make("all", own);
  }

  function flat(kind: Texts["kind"], parts: readonly Texts[]): readonly Texts[] {
    const own = parts.flatMap((part) => (part.kind === kind ? part.parts : [part]));
    return [...new Set(own)].toSorted((a, b) => a.id - b.id);
  }

  function not(part: Texts): Texts {
    return part.kind === "not" && part.parts[0] ? part.parts[0] : make("not", [part]);
  }

  function repeat(part: Texts, min: number, max: number): Texts {
    if (max === 0 || part === empty) return empty;
    if (part === none) return min === 0 ? empty : none;
    if (min === 1 && max === 1) return part;
    return make("repeat", [part], { min, max });
  }

  /** Texts of so many code points. */
  function sized(min: number, max: number): Texts {
    return repeat(char, Math.max(min, 0), max);
  }

  function words(texts: readonly string[]): Texts {
    return any(
      texts.map((text) =>
        Array.from(text).reduceRight((rest: Texts, each) => {
          const code = each.codePointAt(0) ?? 0;
          return then(chars([[code, code]]), rest);
        }, empty),
      ),
    );
  }

  /** Texts that do not come before another one, by their characters. */
  function atLeast(text: string): Texts {
    return Array.from(text).reduceRight((rest: Texts, each) => {
      const code = each.codePointAt(0) ?? 0;
      const above = code < lastChar ? chars([[code + 1, lastChar]]) : none;
      return any([then(above, every), then(chars([[code, code]]), rest)]);
    }, every);
  }

  /** Texts of which some part matches. */
  function matching(expression: Expression): Texts {
    const later = read(expression, every, "LATER");
    return any([read(expression, every, "START"), then(char, then(every, later))]);
  }

  /** @param rest What comes behind. */
  function read(expression: Expression, rest: Texts, place: Place): Texts {
    switch (expression.kind) {
      case "set":
        return then(chars(expression.ranges), rest);
      case "choice":
        return any(expression.parts.map((part) => read(part, rest, place)));
      case "sequence":
        return readAll(expression.parts, rest, place);
      case "start":
        if (place === "UNSURE") throw new NotWorkedOutError();
        return place === "START" ? rest : none;
      case "end":
        return all([rest, empty]);
      case "ahead":
        return all([rest, read(expression.part, every, place)]);
      case "notAhead":
        // V8 also looks between the two halves of a code point, where no character is.
        if (place === "LATER") throw new NotWorkedOutError();
        return all([rest, not(read(expression.part, every, place))]);
      case "repeat":
        return readRepeated(expression, rest, place);
    }
  }

  function readAll(parts: readonly Expression[], rest: Texts, place: Place): Texts {
    const places: Place[] = [];
    let at = place;
    for (const part of parts) {
      if (part.kind === "start" && (at === "LATER" || at === "INSIDE")) return none;
      places.push(at);
      const width = widthOf(part);
      if (width === "SOME") at = "INSIDE";
      if (width === "ANY" && at === "START") at = "UNSURE";
    }
    return parts.reduceRight(
      (behind, part, index) => read(part, behind, places[index] ?? "UNSURE"),
      rest,
    );
  }

  function readRepeated(
    { part, min, max }: Extract<Expression, { kind: "repeat" }>,
    rest: Texts,
    place: Place,
  ): Texts {
    if (!isAsserting(part)) return then(repeat(read(part, empty, "INSIDE"), min, max), rest);
    // What an assertion looks at is behind the repetitions too.
    if (max > 1) throw new NotWorkedOutError();
    const once = read(part, rest, place);
    return min === 0 ? any([once, rest]) : once;
  }

  /** What is left to come after a character. */
  function afterChar(texts: Texts, code: number): Texts {
    const byChar = after.get(texts) ?? new Map<number, Texts>();
    after.set(texts, byChar);
    const found = byChar.get(code) ?? derived(texts, code);
    byChar.set(code, found);
    return found;
  }

  function derived({ kind, chars: own, parts, min, max }: Texts, code: number): Texts {
    const each = () => parts.map((part) => afterChar(part, code));
    const [first = none, second = none] = parts;
    switch (kind) {
      case "chars":
        return has(own, code) ? empty : none;
      case "chain": {
        const behind = then(afterChar(first, code), second);
        return first.hasEmpty ? any([behind, afterChar(second, code)]) : behind;
      }
      case "any":
        return any(each());
      case "all":
        return all(each());
      case "not":
        return not(afterChar(first, code));
      case "repeat":
        return then(afterChar(first, code), repeat(first, Math.max(min - 1, 0), max - 1));
    }
  }

  /** How many texts there are, up to `most`. */
  function count(texts: Texts, most: number): number {
    const next = followed(texts, kindsOfChars(differentSets()), most <= 1);
    return next === undefined ? most : countIn(next, texts, most);
  }

  /** Texts of the set that can be stored, one for each call; with 0 for each choice it is a shortest one. */
  function textsOf(texts: Texts): (choose: Choose) => string | undefined {
    const kinds = kindsOfChars([...readable, ...differentSets()])
      .filter(({ code }) => rankOf(code) < readable.length)
      .toSorted((a, b) => rankOf(a.code) - rankOf(b.code));
    const next = followed(texts, kinds) ?? new Map<Texts, readonly Way[]>();
    const distances = distancesIn(next);
    const distanceOf = (each: Texts) => distances.get(each) ?? Infinity;
    return (choose) => {
      let text = "";
      for (let at = texts; distances.has(at);) {
        const isLong = text.length >= mostChosen;
        if (at.hasEmpty && (isLong || choose(3) === 0)) return text;
        const ways = (next.get(at) ?? []).filter(({ to }) => distances.has(to));
        const nearer = ways.filter(({ to }) => distanceOf(to) < distanceOf(at));
        const among = nearer.length > 0 && (isLong || choose(2) === 0) ? nearer : ways;
        const way = among[choose(among.length)];
        if (way === undefined) return text;
        text += charOf(way.kind.ranges, choose) ?? "";
        at = way.to;
      }
      return undefined;
    };
  }

  /** From each set to those that are left after one more character. @returns Undefined at the first text, where that is enough. */
  function followed(
    texts: Texts,
    kinds: readonly CharKind[],
    isFirstEnough = false,
  ): ReadonlyMap<Texts, readonly Way[]> | undefined {
    const next = new Map<Texts, readonly Way[]>();
    const stack = [texts];
    for (let each = stack.pop(); each !== undefined; each = stack.pop()) {
      if (each.hasEmpty && isFirstEnough) return undefined;
      if (next.has(each)) continue;
      take(kinds.length);
      const own = each;
      const found = kinds.map((kind) => ({ kind, to: afterChar(own, kind.code) }));
      next.set(each, found);
      stack.push(...found.map(({ to }) => to));
    }
    return next;
  }

  function differentSets(): readonly CharSet[] {
    const different = [...new Map(sets.map((set) => [set.join(), set])).values()];
    take(different.length * different.reduce((sum, set) => sum + set.length, 1));
    return different;
  }
}

/** One more character, and what is left to come after it. */
interface Way {
  readonly kind: CharKind;
  readonly to: Texts;
}

/** Follows all ways that lead on to a text; where one comes back there is no end of them. */
function countIn(next: ReadonlyMap<Texts, readonly Way[]>, texts: Texts, most: number): number {
  const live = distancesIn(next);
  let at = new Map(live.has(texts) ? [[texts, 1]] : []);
  let found = 0;
  for (let length = 0; at.size > 0; length += 1) {
    if (length > live.size) return most;
    const behind = new Map<Texts, number>();
    for (const [each, times] of at) {
      if (each.hasEmpty) found += times;
      for (const { to, kind } of next.get(each) ?? []) {
        if (live.has(to)) behind.set(to, (behind.get(to) ?? 0) + times * kind.size);
      }
    }
    if (found >= most) return most;
    at = behind;
  }
  return found;
}

/** How many characters the shortest text has that is in each; those with no text have none. */
function distancesIn(next: ReadonlyMap<Texts, readonly Way[]>): ReadonlyMap<Texts, number> {
  const distances = new Map(
    [...next.keys()].filter(({ hasEmpty }) => hasEmpty).map((each) => [each, 0]),
  );
  for (let before = -1, length = 1; before < distances.size; length += 1) {
    before = distances.size;
    const found = [...next].filter(
      ([each, ways]) =>
        !distances.has(each) && ways.some(({ to }) => distances.get(to) === length - 1),
    );
    for (const [each] of found) distances.set(each, length);
  }
  return distances;
}

/** Characters of which all sets have all or none. */
interface CharKind {
  readonly code: number;
  /** How many there are. */
  size: number;
  readonly ranges: CharSet[number][];
}

function kindsOfChars(sets: readonly CharSet[]): readonly CharKind[] {
  const starts = sets.flatMap((set) => set.flatMap(([from, to]) => [from, to + 1]));
  const codes = [...new Set([0, ...starts])].toSorted((a, b) => a - b);
  const kinds = new Map<string, CharKind>();
  for (const [index, code] of codes.entries()) {
    if (code > lastChar) continue;
    const key = sets.map((set) => (has(set, code) ? "1" : "0")).join("");
    const kind = kinds.get(key) ?? { code, size: 0, ranges: [] };
    const behind = codes[index + 1] ?? lastChar + 1;
    kind.size += behind - code;
    kind.ranges.push([code, behind - 1]);
    kinds.set(key, kind);
  }
  return [...kinds.values()];
}

/** How many characters it takes for certain. */
function widthOf(expression: Expression): "NONE" | "SOME" | "ANY" {
  switch (expression.kind) {
    case "set":
      return "SOME";
    case "start":
    case "end":
    case "ahead":
    case "notAhead":
      return "NONE";
    case "repeat": {
      const width = widthOf(expression.part);
      return width === "SOME" && expression.min === 0 ? "ANY" : width;
    }
    case "sequence": {
      const widths = expression.parts.map(widthOf);
      if (widths.includes("SOME")) return "SOME";
      return widths.includes("ANY") ? "ANY" : "NONE";
    }
    case "choice": {
      const [first = "NONE", ...rest] = expression.parts.map(widthOf);
      return rest.every((width) => width === first) ? first : "ANY";
    }
  }
}

function isAsserting(expression: Expression): boolean {
  switch (expression.kind) {
    case "set":
      return false;
    case "repeat":
      return isAsserting(expression.part);
    case "sequence":
    case "choice":
      return expression.parts.some(isAsserting);
    default:
      return true;
  }
}
