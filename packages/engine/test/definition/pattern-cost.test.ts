import { expect, test } from "vitest";
import { optionalsIn } from "../../src/definition/schema/pattern-cost.ts";

test.each([
  ["abc", 0],
  ["a?b??c*?d+?", 2],
  ["[?\\]?]\\?x", 0],
  ["(?:a?b)?c", 2],
  ["(?<name>a?)|b", 1],
  ["(a|)(|b)", 2],
  ["(?=a?)(?<!b?)", 2],
  ["a{0,3}b{2}c{1,9}d{,2}", 3],
  ["(?:a?){3}", 3],
  ["(?:a?){2,}(?:b?)+", 5],
  ["a?b?|c?", 2],
  ["(a?", 1],
])("%j has %i parts one after another that may be left out", (pattern, count) => {
  expect(optionalsIn(pattern)).toBe(count);
});
