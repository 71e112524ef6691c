import { setTimeout as pause } from "node:timers/promises";
import type { CheckInput } from "@millrace/input-schema";
import { ChecksBusyError } from "../errors.ts";
import type { Problem } from "../errors.ts";

/**
 * Checks an input in its turn.
 *
 * @param mostWaitMs How long it may wait for that. Default: as long as it takes.
 * @throws ChecksBusyError
 */
export type CheckInTurn = (input: unknown, mostWaitMs?: number) => Promise<readonly Problem[]>;

/** A check that takes longer keeps others from what they came for. */
const briefMs = 20;

/** A schema that took long is taken to do so again for this long. */
const rememberedMs = 60_000;

/**
 * Spaces out the checks of a process that take long: nothing else happens while one runs, so that a batch
 * of a thousand would stop everything for minutes. Of the schemas whose last checks were not brief one
 * check runs at a time, and after it there is as much time for all else as it took. Other schemas never wait.
 */
export function openSpacing(): (check: CheckInput) => CheckInTurn {
  let freeAt = 0;

  async function turn(mostWaitMs: number): Promise<void> {
    const givenUpAt = performance.now() + mostWaitMs;
    for (;;) {
      const waitMs = freeAt - performance.now();
      if (waitMs <= 0) return;
      if (freeAt > givenUpAt) throw new ChecksBusyError();
      await pause(waitMs);
    }
  }

  return (check) => {
    let slowUntil = 0;
    return async (input, mostWaitMs = Infinity) => {
      if (performance.now() < slowUntil) await turn(mostWaitMs);
      const startedAt = performance.now();
      try {
        return check(input);
      } finally {
        const endedAt = performance.now();
        const tookMs = endedAt - startedAt;
        if (tookMs > briefMs) {
          freeAt = endedAt + tookMs;
          slowUntil = endedAt + rememberedMs;
        }
      }
    };
  };
}
