import type { RowPlace } from "@millrace/store";

/**
 * How far a process has looked at a kind, and what it has tried to make good of it lately. What it meets
 * again after that could not be made good, and is tried again after a pause that doubles each time: it may
 * be that a definition is restored, or that a release comes which can do it.
 *
 * Only in memory: another process, or this one begun anew, tries once more.
 */
export interface Patience {
  /** Where the next look goes on; undefined: at the start. */
  after: RowPlace | undefined;
  isDue(place: RowPlace): boolean;
  /** It has been tried. */
  note(place: RowPlace): void;
}

/** A round of the reconciler is as long: what was tried a moment ago may be under way. */
const firstPauseMs = 1_000;
/** What the queue has lost once more is told again within this. */
const longestPauseMs = 30_000;
/** Whatever has not been met again for so long has been made good. */
const forgetMs = 2 * longestPauseMs;
const mostRemembered = 10_000;

interface Try {
  readonly at: number;
  readonly pauseMs: number;
}

/** @param now In milliseconds from any moment on. */
export function openPatience(now = () => performance.now()): Patience {
  /** The one that was tried longest ago first. */
  const tries = new Map<string, Try>();

  function forgetOld(): void {
    for (const [key, { at }] of tries) {
      if (tries.size < mostRemembered && at > now() - forgetMs) return;
      tries.delete(key);
    }
  }

  return {
    after: undefined,
    isDue(place) {
      const tried = tries.get(JSON.stringify(place));
      return tried === undefined || now() >= tried.at + tried.pauseMs;
    },
    note(place) {
      forgetOld();
      const key = JSON.stringify(place);
      const pauseMs = Math.min(2 * (tries.get(key)?.pauseMs ?? firstPauseMs / 2), longestPauseMs);
      tries.delete(key);
      tries.set(key, { at: now(), pauseMs });
    },
  };
}
