import { NotWorkedOutError, openLanguage } from "./language.ts";
import type { Language, Texts } from "./language.ts";
import { below, fieldsOf } from "../outline.ts";
import { readExpression } from "./regular-expression.ts";
import { formatRuleOf } from "./keywords.ts";
import type { Formats } from "./keywords.ts";
import { boundsOfAll, isAnyLeft } from "./numbers.ts";
import type { Inside, Said } from "./together.ts";

/** Steps that are taken at most to find out whether there is any text, and for all that is asked of one schema. */
const maxSteps = 20_000;
const maxStepsOfAll = 200_000;
/** Texts that are longer are not left out where others are counted. */
const maxLength = 100;

/** What is said of a text. */
export interface Rule {
  readonly pattern: string;
  readonly ignoreCase: boolean;
  /** It must not match. */
  readonly isNot: boolean;
  /** By keyword, as `formatMinimum`: where it lies in the order of texts. */
  readonly limits?: Readonly<Record<string, string>>;
  /** Where it stands, and in words. */
  readonly by: Said;
  readonly key: string;
  readonly words: string;
}

/** Counts the texts that no schema names, and that fit all that is said: at most so many, up to `most`. */
export function openTexts(inside: Inside) {
  const { formats, named, matches } = inside.look;
  let left = maxStepsOfAll;
  const known = new Map<string, number>();
  return countTexts;

  function countTexts(said: readonly Said[], most: number): number {
    const bounds = boundsOfAll(said, "string");
    if (!isAnyLeft(said, bounds, inside)) return 0;
    const rules = said.flatMap((by) => rulesOf(by, formats));
    const [low, high] = [bounds.low.at, bounds.high.at];
    if (rules.length === 0 && high > 0) return most;
    const parts = rules.map(({ pattern, ignoreCase, isNot, limits }) => [
      pattern,
      ignoreCase,
      isNot,
      limits,
    ]);
    const key = JSON.stringify([parts, low, high, most]);
    const count = known.get(key) ?? countOf(rules, low, high, most);
    known.set(key, count);
    const [first] = rules;
    if (count === 0 && first !== undefined) {
      const size = [
        ...(low > 0 ? [`${low} or more characters`] : []),
        ...(high < Infinity ? [`${high} or fewer characters`] : []),
      ];
      const all = [...rules.map(({ words }) => words), ...size].join(", and ");
      inside.blame(said, below(first.by.path, first.key), `no text has ${all}`);
    }
    return count;
  }

  function countOf(rules: readonly Rule[], low: number, high: number, most: number): number {
    if (left < maxSteps) return most;
    const language = openLanguage(maxSteps);
    try {
      const sets = rules.map((rule) => setOf(rule, language));
      const sized = language.sized(low, high);
      const others = language.not(language.words(namedBeside(rules)));
      return language.count(language.all([...sets, sized, others]), most);
    } catch (error) {
      if (error instanceof NotWorkedOutError) return most;
      throw error;
    } finally {
      left -= language.steps();
    }
  }

  /** Texts that are counted for themselves. */
  function namedBeside(rules: readonly Rule[]): readonly string[] {
    return [...named.keys]
      .filter((key) => key.startsWith('"') && key.length < maxLength)
      .map((key) => String(JSON.parse(key)))
      .filter((text) =>
        rules.every(
          ({ pattern, key, isNot }) => key === "format" || matches(pattern, text) !== isNot,
        ),
      );
  }
}

/** What is said of a text, as far as it can be worked out. */
export function rulesOf(by: Said, formats: Formats): readonly Rule[] {
  const { pattern, not } = by.fields;
  const rules: Rule[] = [];
  if (typeof pattern === "string") {
    const words = `the pattern ${JSON.stringify(pattern)}`;
    rules.push({ pattern, ignoreCase: false, isNot: false, by, key: "pattern", words });
  }
  const rule = formatRuleOf(by.fields);
  const ofFormat = rule && formats.patternOf(rule.format);
  if (rule !== undefined && ofFormat !== undefined) {
    const limits = ofFormat.isOrdered ? rule.limits : {};
    const within = Object.entries(limits).map(([key, limit]) => ` with ${key} ${limit}`);
    const words = `the format ${JSON.stringify(rule.format)}${within.join("")}`;
    rules.push({ ...ofFormat, limits, isNot: false, by, key: "format", words });
  }
  const refused = fieldsOf(not)["pattern"];
  if (typeof refused === "string" && Object.keys(fieldsOf(not)).length === 1) {
    const words = `not the pattern ${JSON.stringify(refused)}`;
    rules.push({ pattern: refused, ignoreCase: false, isNot: true, by, key: "not", words });
  }
  return rules;
}

/** All texts, where it is not known which they are. */
export function setOf({ pattern, ignoreCase, isNot, limits }: Rule, language: Language): Texts {
  const expression = readExpression(pattern, { ignoreCase });
  if (expression === undefined) return language.every;
  try {
    const set = language.matching(expression);
    if (isNot) return language.not(set);
    const within = Object.entries(limits ?? {}).map(([key, limit]) =>
      limited(key, limit, language),
    );
    return language.all([set, ...within]);
  } catch (error) {
    if (error instanceof NotWorkedOutError) return language.every;
    throw error;
  }
}

function limited(key: string, limit: string, language: Language): Texts {
  // The validator does not compare with it.
  if (limit === "") return language.every;
  const [from, itself] = [language.atLeast(limit), language.words([limit])];
  if (key === "formatMinimum") return from;
  if (key === "formatExclusiveMinimum") return language.all([from, language.not(itself)]);
  const before = language.not(from);
  return key === "formatMaximum" ? language.any([before, itself]) : before;
}
