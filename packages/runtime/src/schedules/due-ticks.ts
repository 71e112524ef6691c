import type { StoredOverlapPolicy } from "@millrace/store";
import { dueAtOf } from "./plan.ts";
import type { SchedulePlan } from "./plan.ts";
import { nextTick } from "./ticks.ts";

/** Ticks that a schedule has come to, in order, and the first one that it has not. */
export interface DueTicks {
  /** Later than the catch-up window allows; not all of them where there are very many. */
  readonly missed: readonly Date[];
  /** All before it were missed, also those that are not listed. */
  readonly missedBefore: Date | undefined;
  readonly ticks: readonly Date[];
  readonly next: Date | undefined;
}

/** Ticks that are seen to in one transaction. */
const mostTicks = 100;
/** Missed ticks that are listed one by one. */
const mostListed = 1_000;

/**
 * Which ticks are to be seen to now.
 *
 * @param from The first tick that nobody has seen to.
 * @param atOnce The rule ends here: what jitter would put off is due, too.
 */
export function dueTicks(
  plan: SchedulePlan,
  { uid, from, now }: { readonly uid: string; readonly from: Date; readonly now: Date },
  atOnce = false,
): DueTicks {
  const { rule, catchupMs } = plan;
  const windowStart = new Date(now.getTime() - catchupMs);
  const missed: Date[] = [];
  let missedBefore: Date | undefined;
  // Its calendar may have been changed since.
  let next = rule.kind === "once" ? from : nextTick(rule, new Date(from.getTime() - 1));
  while (next !== undefined && next < windowStart) {
    if (missed.length === mostListed) {
      missedBefore = windowStart;
      next = nextTick(rule, new Date(windowStart.getTime() - 1));
      break;
    }
    missed.push(next);
    next = nextTick(rule, next);
  }
  const ticks: Date[] = [];
  const isDue = (tick: Date) => tick <= now && (atOnce || dueAtOf(plan, uid, tick) <= now);
  while (next !== undefined && ticks.length < mostTicks && isDue(next)) {
    ticks.push(next);
    next = nextTick(rule, next);
  }
  return { missed, missedBefore, ticks, next };
}

export type TickOutcome = "start" | "wait" | SkipReason;
export type SkipReason = "OVERLAP" | "BUFFER_FULL" | "SUPERSEDED";

export interface Overlap {
  /** One for each tick, in their order. */
  readonly outcomes: readonly TickOutcome[];
  /** Runs that waited until now are given up for the last of these ticks. */
  readonly supersedes: boolean;
}

/** Runs that wait for their turn, at most. */
export const mostWaiting = 1_000;

/**
 * What becomes of ticks, given the runs that have not settled and those that wait (CONTRACT 3,
 * `overlapPolicy`). A run that waits comes before any tick after it.
 */
export function decideOverlap(
  policy: StoredOverlapPolicy,
  count: number,
  standing: { readonly live: number; readonly waiting: number },
): Overlap {
  if (policy === "CANCEL_OTHER") return supersede(count, standing.live > 0);
  const outcomes: TickOutcome[] = [];
  let { live, waiting } = standing;
  for (let tick = 0; tick < count; tick++) {
    const outcome = decideOne(policy, live, waiting);
    if (outcome === "start") live += 1;
    if (outcome === "wait") waiting += 1;
    outcomes.push(outcome);
  }
  return { outcomes, supersedes: false };
}

function decideOne(
  policy: Exclude<StoredOverlapPolicy, "CANCEL_OTHER">,
  live: number,
  waiting: number,
): TickOutcome {
  if (policy === "ALLOW_ALL" || (live === 0 && waiting === 0)) return "start";
  switch (policy) {
    case "SKIP":
      return "OVERLAP";
    case "BUFFER_ONE":
      return waiting === 0 ? "wait" : "BUFFER_FULL";
    case "BUFFER_ALL":
      return waiting < mostWaiting ? "wait" : "BUFFER_FULL";
  }
}

/** Only the last tick counts: each would cancel the one before it. It starts when what is live has settled. */
function supersede(count: number, isLive: boolean): Overlap {
  const earlier = Array.from({ length: Math.max(0, count - 1) }, () => "SUPERSEDED" as const);
  const last = count === 0 ? [] : [isLive ? ("wait" as const) : ("start" as const)];
  return { outcomes: [...earlier, ...last], supersedes: count > 0 };
}
