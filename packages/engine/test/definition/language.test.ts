import fc from "fast-check";
import { expect, test } from "vitest";
import { NotWorkedOutError, openLanguage } from "../../src/definition/schema/language.ts";
import { readExpression } from "../../src/definition/schema/regular-expression.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_261_129);
const runs = Number(process.env["MODEL_RUNS"] ?? 150);

const texts = [
  "",
  "a",
  "b",
  "ab",
  "ba",
  "abc",
  "aab",
  "1",
  "a1",
  "\n",
  "a\n",
  "\nb",
  "-",
  "😀",
  "a😀b",
  "bcbc",
];

const { pattern } = fc.letrec<{ pattern: string }>((tie) => {
  const one = fc.constantFrom(
    ...String.raw`a b c . [ab] [^a] [a-c-] ^ $ (?=b) (?=.*c) \w \D [\d\-] \n \u{61}`.split(" "),
  );
  const quantifier = fc.constantFrom("*", "+", "?", "{2}", "{1,3}", "{0}", "*?", "{2,}");
  return {
    pattern: fc.oneof(
      { maxDepth: 4 },
      { weight: 2, arbitrary: one },
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(?:${a}|${b})`),
      fc.tuple(tie("pattern"), quantifier).map(([a, times]) => `(${a})${times}`),
      tie("pattern").map((a) => `(?=${a})`),
      tie("pattern").map((a) => `^(?!${a})`),
    ),
  };
});

/** How many of the texts a pattern matches and does not match; undefined where that is not worked out. */
function counted(source: string): readonly number[] | undefined {
  const expression = readExpression(source);
  if (expression === undefined) return undefined;
  const language = openLanguage(20_000);
  try {
    const set = language.matching(expression);
    const some = language.words(texts);
    return [set, language.not(set)].map((each) => language.count(language.all([each, some]), 100));
  } catch (error) {
    if (error instanceof NotWorkedOutError) return undefined;
    throw error;
  }
}

test(`a random pattern matches the texts that its language has (seed ${seed})`, () => {
  let done = 0;
  fc.assert(
    fc.property(pattern, (source) => {
      const found = counted(source);
      if (found === undefined) return;
      done += 1;
      const matching = texts.filter((text) => new RegExp(source, "u").test(text)).length;
      expect(found).toEqual([matching, texts.length - matching]);
    }),
    { seed, numRuns: runs },
  );
  expect(done).toBeGreaterThan(runs / 4);
});

test.each([
  ["a back reference", String.raw`(a)\1`],
  ["what must come before", "(?<=a)b"],
  ["the edge of a word", String.raw`\bword`],
  ["a class by its name", String.raw`\p{L}`],
  ["a start behind what may be there", "a?^b"],
])("%s is not worked out", (_, source) => {
  expect(counted(source)).toBeUndefined();
});

test("what there is too much of to follow is not worked out", () => {
  const language = openLanguage(20_000);
  const set = language.matching(readExpression("a.{14}$") ?? { kind: "start" });

  expect(() => language.count(set, 2)).toThrow(NotWorkedOutError);
});
