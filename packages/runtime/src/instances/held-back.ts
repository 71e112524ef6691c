import type { HeldSignal, Signal } from "@millrace/engine";
import { dueTimersOf } from "@millrace/store";
import type { DueTimer, Key, MatchedWait } from "@millrace/store";
import { signalsOf } from "../events/inbox.ts";
import { lookBack, takesWaits } from "../events/look-back.ts";
import type { Services } from "../services.ts";

/**
 * What a pause has held in rows: events that waits have taken, and timers that have come due. Whatever ends
 * the pause, a resume or a retry, brings it along, so that it is applied in order of time (CONTRACT 2).
 */
export interface HeldBack {
  /** What cancels the instance comes before all else. */
  readonly cancels: readonly Signal[];
  readonly held: readonly HeldSignal[];
}

/** Those that have come due while it was paused. */
export async function heldTimers(services: Services, key: Key): Promise<readonly DueTimer[]> {
  const timers = await dueTimersOf(services.database.db, key);
  // An event from before the wait opened comes before the timeout, though nobody may have looked yet.
  if (timers.some(({ kind }) => takesWaits.has(kind))) await lookBack(services, key);
  return timers;
}

export function heldBack(inbox: readonly MatchedWait[], timers: readonly DueTimer[]): HeldBack {
  const held: HeldSignal[] = timers.map(({ kind: timer, path, iteration, attempt, dueAt }) => ({
    at: dueAt.toISOString(),
    signal: { kind: "timerFired", timer, path, iteration, attempt },
  }));
  const firstDue = timers[0]?.dueAt.toISOString();
  for (const { purpose, path, iteration, event, held: cameLater } of inbox) {
    if (purpose === "CANCEL") continue;
    const { receivedAt } = event;
    // What had taken its wait when the pause came would have been applied before any timer.
    const isLast = !cameLater && firstDue !== undefined && firstDue < receivedAt;
    const at = isLast ? firstDue : receivedAt;
    held.push({ at, signal: { kind: "eventMatched", path, iteration, event } });
  }
  return { cancels: signalsOf(inbox.filter(({ purpose }) => purpose === "CANCEL")), held };
}
