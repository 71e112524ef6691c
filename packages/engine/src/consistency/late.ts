import type { Evidence } from "./evidence.ts";

/** What a reconciler should long have seen to: it looks each second, and has a backlog at times. */
export const lateMs = 60_000;

/** Clocks of different hosts, and of the database before and after a failover, are so far apart, at most. */
export const skewMs = 5_000;

/** Two times of the history that are not in order; null: before the first commit. */
export interface TimesOutOfOrder {
  readonly version: number;
  readonly before: Date | null;
  readonly at: Date;
}

/**
 * Commits before the one they follow, before the instance was created, or in the future. Nothing else tells when a
 * commit was made: where one such time is wrong, none that follows from the history is worth a repair.
 */
export function timesOutOfOrder({
  bornAt,
  history = [],
  now,
}: Pick<Evidence, "bornAt" | "history" | "now">): readonly TimesOutOfOrder[] {
  return history.flatMap(({ version, at }, index) => {
    const before = history[index - 1]?.at ?? null;
    const isEarly = at.getTime() + skewMs < (before ?? bornAt).getTime();
    const isInFuture = at.getTime() > now.getTime() + lateMs + skewMs;
    return isEarly || isInFuture ? [{ version, before, at }] : [];
  });
}
