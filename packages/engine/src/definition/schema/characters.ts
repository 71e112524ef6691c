import { lastChar } from "./regular-expression.ts";
import type { CharSet } from "./regular-expression.ts";

/** One of so many, by its index; of an example the first as long as it is the simplest that is asked for. */
export type Choose = (count: number) => number;

/** Those that people read most easily come first; others are not stored (`\u0000`, halves of a code point). */
export const readable: readonly CharSet[] = [
  [[97, 122]],
  [[65, 90]],
  [[48, 57]],
  [[32, 126]],
  [
    [1, 0xd7ff],
    [0xe000, lastChar],
  ],
];

/** How far from readable it is; as many as there are sets: it cannot be stored. */
export function rankOf(code: number): number {
  const rank = readable.findIndex((set) => has(set, code));
  return rank < 0 ? readable.length : rank;
}

/** One of the characters that can be stored; undefined where there is none. */
export function charOf(set: CharSet, choose: Choose): string | undefined {
  const kinds = known.get(set) ?? storableIn(set);
  known.set(set, kinds);
  const ranges = kinds[choose(kinds.length)];
  const [from, to] = ranges?.[choose(ranges.length)] ?? [];
  if (from === undefined || to === undefined) return undefined;
  return String.fromCodePoint(from + choose(to - from + 1));
}

const known = new WeakMap<CharSet, readonly CharSet[]>();

/** By how readable they are. */
function storableIn(set: CharSet): readonly CharSet[] {
  return readable.map((each) => common(set, each)).filter(({ length }) => length > 0);
}

export function has(set: CharSet, code: number): boolean {
  return set.some(([from, to]) => from <= code && code <= to);
}

function common(left: CharSet, right: CharSet): CharSet {
  return left.flatMap(([from, to]) =>
    right
      .map(([first, last]) => [Math.max(from, first), Math.min(to, last)] as const)
      .filter(([first, last]) => first <= last),
  );
}
