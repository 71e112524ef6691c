/** The calendar repeats after so long: as many days in as many weeks, leap years included. */
const cycleMs = 146_097 * 24 * 3_600_000;

/** `Date.UTC`, and the cron library with it, takes the years before 100 for 1900 and later. */
const plainFrom = Date.parse("0101-01-01T00:00:00Z");

/**
 * Asks about a time of the first century as about that of the fifth, whose calendar is the same, and in which no
 * clock was changed either.
 */
export function inPlainYears<T extends number | undefined>(
  ms: number,
  ask: (ms: number) => T,
): T | number {
  if (ms >= plainFrom) return ask(ms);
  const answer = ask(ms + cycleMs);
  return answer === undefined ? answer : answer - cycleMs;
}
