import { BOUNDS } from "@millrace/contract";
import { charOf } from "./schema/characters.ts";
import type { Choose } from "./schema/characters.ts";
import { formatRuleOf } from "./schema/keywords.ts";
import type { Formats } from "./schema/keywords.ts";
import { NotWorkedOutError, openLanguage } from "./schema/language.ts";
import { boundsOfAll } from "./schema/numbers.ts";
import { readExpression } from "./schema/regular-expression.ts";
import type { Expression } from "./schema/regular-expression.ts";
import { rulesOf, setOf } from "./schema/texts.ts";
import type { Rule } from "./schema/texts.ts";
import type { Said } from "./schema/together.ts";

/** Steps that are taken to find out which texts fit, and for all that is asked of one schema. */
const maxSteps = 20_000;
const maxStepsOfAll = 200_000;
/** What is longer is too much for the body of a call. */
const mostChars = BOUNDS.bodyBytes;

/** Characters that a pattern is followed for. */
const mostSpelled = 10_000;

/** How a text is come by. */
export interface TextChoice {
  readonly choose: Choose;
  readonly canBe: (text: string) => boolean;
}

/** Makes up texts that may fit all that is said; undefined where none is known. */
export function openExampleTexts(formats: Formats) {
  const workedOut = new Map<string, (choose: Choose) => string | undefined>();
  const read = new Map<string, Expression | undefined>();
  let left = maxStepsOfAll;
  return exampleText;

  function exampleText(said: readonly Said[], { choose, canBe }: TextChoice): string | undefined {
    const bounds = boundsOfAll(said, "string");
    const [low, high] = [bounds.low.at, bounds.high.at];
    if (low > mostChars) return undefined;
    const rules = said.flatMap((by) => rulesOf(by, formats));
    const isPlain = rules.length === 0 && !said.some(({ fields }) => "format" in fields);
    if (isPlain) return plain(low, high, numbered(choose));
    const ways = [
      () => matching(rules, low, high)(choose),
      () => spelledBy(rules, low, choose),
      () => wellKnown(said, canBe, madeOf(rules, low, choose), choose),
    ];
    for (const way of [ways[choose(ways.length)], ...ways]) {
      const text = way?.();
      if (text !== undefined) return text;
    }
    return undefined;
  }

  function spelledBy(rules: readonly Rule[], low: number, choose: Choose): string | undefined {
    const patterns = rules.filter(({ isNot }) => !isNot);
    const rule = patterns[choose(patterns.length)];
    if (rule === undefined) return undefined;
    const { pattern, ignoreCase } = rule;
    const key = `${String(ignoreCase)} ${pattern}`;
    const expression = read.get(key) ?? readExpression(pattern, { ignoreCase, isRough: true });
    read.set(key, expression);
    return expression && spelled(expression, low, choose);
  }

  /** A text of a format, with what a pattern asks for before or behind it, or as long as it is to be. */
  function madeOf(rules: readonly Rule[], low: number, choose: Choose): (text: string) => string {
    const patterns = rules.filter(({ key }) => key === "pattern");
    const more = choose(2) === 0 ? "" : (spelledBy(patterns, 0, choose) ?? "");
    const isBefore = choose(2) === 0;
    const end = choose(2) === 0 ? "" : numbered(choose);
    return (text) => {
      const made = (isBefore ? more + text : text + more) + end;
      return end === "" ? made : made + "a".repeat(Math.max(low - made.length, 0));
    };
  }

  function matching(rules: readonly Rule[], low: number, high: number) {
    const parts = rules.map(({ by: _by, words: _words, ...rule }) => rule);
    const key = JSON.stringify([parts, low, high]);
    const found = workedOut.get(key) ?? textsOf(rules, low, high);
    workedOut.set(key, found);
    return found;
  }

  /** None where it takes too long to work them out. */
  function textsOf(
    rules: readonly Rule[],
    low: number,
    high: number,
  ): (choose: Choose) => string | undefined {
    if (left < maxSteps) return () => undefined;
    const language = openLanguage(maxSteps);
    try {
      const sets = rules.map((rule) => setOf(rule, language));
      return language.textsOf(language.all([...sets, language.sized(low, high)]));
    } catch (error) {
      if (error instanceof NotWorkedOutError) return () => undefined;
      throw error;
    } finally {
      left -= language.steps();
    }
  }
}

/** With the number at its end. */
function plain(low: number, high: number, number: string): string {
  const end = number.slice(0, high);
  return "a".repeat(Math.min(low, Math.max(high - end.length, 0))) + end;
}

function numbered(choose: Choose): string {
  const number = choose(10 ** (1 + choose(6)));
  return number === 0 ? "" : String(number);
}

function wellKnown(
  said: readonly Said[],
  canBe: (text: string) => boolean,
  made: (text: string) => string,
  choose: Choose,
): string | undefined {
  const limits = said.flatMap(({ fields }) => Object.values(formatRuleOf(fields)?.limits ?? {}));
  const fitting = [...limits, ...known.map(made)].filter(canBe);
  return fitting[choose(fitting.length)];
}

/**
 * What an expression may match, without what it asserts not to come. A group is the same text wherever it comes again.
 *
 * @param low So many characters are enough.
 */
function spelled(expression: Expression, low: number, choose: Choose): string {
  const groups = new Map<Expression, string>();
  let left = mostSpelled;
  return read(expression);

  function read(each: Expression): string {
    if (left <= 0) return "";
    switch (each.kind) {
      case "set":
        return take(charOf(each.ranges, choose) ?? "");
      case "sequence":
        return each.parts.map(read).join("");
      case "choice": {
        const known = groups.get(each);
        if (known !== undefined) return take(known);
        const part = each.parts[choose(each.parts.length)];
        const text = part === undefined ? "" : read(part);
        groups.set(each, text);
        return text;
      }
      case "repeat": {
        const { part, min, max } = each;
        let times = Math.min(Math.max(min, choose(3) === 0 ? low : choose(4)), max);
        let text = "";
        for (; times > 0 && left > 0; times -= 1) text += read(part);
        return text;
      }
      case "ahead":
        // What may come anywhere later may come here.
        return choose(2) === 0 ? "" : read(each.part);
      default:
        return "";
    }
  }

  function take(text: string): string {
    // An empty one is a step as well.
    left -= Math.max(text.length, 1);
    return text;
  }
}

/** Of formats that no pattern describes, and of patterns that are not worked out. */
const known: readonly string[] = [
  "a",
  "A1",
  "aA1!aA1!",
  "0",
  "",
  "2026-01-31",
  "12:00:00Z",
  "2026-01-31T12:00:00Z",
  "P1D",
  "https://example.com/a",
  "a@example.com",
  "example.com",
  "127.0.0.1",
  "::1",
  ":1",
  "123e4567-e89b-42d3-a456-426614174000",
  "urn:uuid:123e4567-e89b-42d3-a456-426614174000",
  "/a",
  "#/a",
  "0/a",
  "YQ==",
  "{a}",
];
