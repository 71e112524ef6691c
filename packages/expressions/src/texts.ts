/**
 * Work on text whose cost is known before it is done.
 *
 * The engine's own substring search can take time proportional to the product of both lengths
 * (a million characters searched for half a million took over a minute), so the worst case is
 * paid for in advance.
 */
import { limits } from "./limits.ts";
import { charge, chargeNewElements, chargeNewText, chargeText, Failure } from "./run.ts";
import type { Run } from "./run.ts";
import { toText } from "./values.ts";

export function chargeSearch(run: Run, text: string, wanted: string): void {
  chargeText(run, text.length);
  const positions = Math.max(0, text.length - wanted.length);
  charge(run, (positions * wanted.length) / comparisonsPerUnit);
}

/** The pieces of `text` between occurrences of `separator`, at most `most`. */
export function splitText(run: Run, text: string, separator: string, most: number): string[] {
  chargeSearch(run, text, separator);
  // One more than allowed is enough to know that there are too many.
  const pieces = text.split(separator, Math.min(most, limits.arrayLength + 1));
  chargeNewElements(run, pieces.length);
  return pieces;
}

export function joinTexts(run: Run, values: readonly unknown[], separator: string): string {
  charge(run, values.length);
  let length = Math.max(0, values.length - 1) * separator.length;
  const texts: string[] = [];
  for (const value of values) {
    const text = value === undefined || value === null ? "" : toText(run, value);
    length += text.length;
    if (length > limits.stringLength) break;
    texts.push(text);
  }
  chargeNewText(run, length);
  return texts.join(separator);
}

export function repeatText(run: Run, text: string, times: number): string {
  if (!(times >= 0 && times < Infinity)) {
    throw new Failure("BAD_ARGUMENT", `repeat takes a count from 0, not ${times}`);
  }
  chargeNewText(run, text.length * times);
  return text.repeat(times);
}

/** Replaces the first occurrence; `replacement` is taken as it is, `$` means nothing in it. */
export function replaceFirst(run: Run, text: string, wanted: string, replacement: string): string {
  chargeSearch(run, text, wanted);
  const start = text.indexOf(wanted);
  if (start < 0) return text;
  chargeNewText(run, text.length - wanted.length + replacement.length);
  return text.slice(0, start) + replacement + text.slice(start + wanted.length);
}

export function replaceEvery(run: Run, text: string, wanted: string, replacement: string): string {
  const pieces = splitText(run, text, wanted, Infinity);
  const replaced = joinTexts(run, pieces, replacement);
  // An empty text is found before, between and after the characters.
  if (wanted !== "") return replaced;
  chargeNewText(run, replaced.length + 2 * replacement.length);
  return text === "" ? replacement : replacement + replaced + replacement;
}

export function padding(run: Run, text: string, length: number, filler: string): string {
  if (!(length > text.length) || filler === "") return "";
  chargeNewText(run, length);
  const missing = length - text.length;
  return filler.repeat(Math.ceil(missing / filler.length)).slice(0, missing);
}

const comparisonsPerUnit = 256;
