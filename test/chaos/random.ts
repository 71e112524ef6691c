/** Numbers that follow from a seed and a name alone, so that a run can be planned again. */
export interface Random {
  /** From 0 up to, but not including, 1. */
  next(): number;
  between(least: number, most: number): number;
  /** As `between`, whole. */
  whole(least: number, most: number): number;
  pick<T>(choices: readonly [T, ...T[]]): T;
  chance(probability: number): boolean;
}

/** Streams of different names do not disturb each other: more load leaves the faults as they were. */
export function seeded(seed: number, name: string): Random {
  let state = seed >>> 0;
  for (const character of name) state = Math.imul(state ^ character.charCodeAt(0), 0x01000193);
  // Mulberry32: small, and good enough to scatter faults.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    between: (least, most) => least + next() * (most - least),
    whole,
    pick: (choices) => choices[whole(0, choices.length - 1)] ?? choices[0],
    chance: (probability) => next() < probability,
  };
}
