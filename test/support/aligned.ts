import { setTimeout as sleep } from "node:timers/promises";

/**
 * Runs both sides of a race so that they begin within the same few milliseconds. Clients that run
 * freely meet in the dangerous moment so seldom that they hide a protocol that loses half of them.
 */
export interface Race {
  readonly open: () => Promise<unknown>;
  readonly publish: () => Promise<unknown>;
}

export interface AlignOptions {
  /** Pairs under way at once. */
  readonly lanes: number;
  /** Whole milliseconds by which `publish` may begin after `open`; negative: before. */
  readonly staggerMs: readonly number[];
}

export async function align(
  races: readonly Race[],
  { lanes, staggerMs }: AlignOptions,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < races.length; index = next++) {
      const { open, publish } = races[index] as Race;
      const stagger = staggerMs[index % staggerMs.length] ?? 0;
      await Promise.all([after(-stagger, open), after(stagger, publish)]);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

function after(ms: number, act: () => Promise<unknown>): Promise<unknown> {
  return ms > 0 ? sleep(ms).then(act) : act();
}
