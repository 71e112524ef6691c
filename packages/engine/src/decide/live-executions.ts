import { isInItem } from "../definition/paths.ts";
import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { closeWaits } from "./open-waits.ts";
import { clearTimer } from "./set-timers.ts";
import type { Turn } from "./turn.ts";

export function liveExecution(
  turn: Turn,
  path: string,
  iteration: number,
): LiveExecution | undefined {
  return turn.state.live[executionKey(path, iteration)];
}

export function putLive(turn: Turn, execution: LiveExecution): void {
  const key = executionKey(execution.path, execution.iteration);
  const live = ownLive(turn);
  if (isBusy(live[key])) turn.busy -= 1;
  if (isBusy(execution)) turn.busy += 1;
  live[key] = execution;
}

/** The execution is no longer live: its timers, its waits and its job go with it. */
export function removeLive(turn: Turn, execution: LiveExecution): void {
  const { path, iteration, phase } = execution;
  const key = executionKey(path, iteration);
  for (const timer of execution.timers) clearTimer(turn, timer, path, iteration);
  if (phase === "WAITING") closeWaits(turn, execution);
  if (phase === "OPEN") turn.lostItems += unsettledItems(execution);
  turn.dispatches.delete(key);
  if (isBusy(turn.state.live[key])) turn.busy -= 1;
  if (turn.ownsLive) {
    delete ownLive(turn)[key];
    return;
  }
  // A chain comes here once a turn: V8 is slower with an object of which a member was deleted.
  const { [key]: _removed, ...live } = turn.state.live;
  turn.state.live = live;
  turn.ownsLive = true;
}

/** Items that count for progress and are still to settle. Those of a MAP in an item count with that. */
export function unsettledItems({ path, items }: LiveExecution): number {
  if (items === undefined || isInItem(path)) return 0;
  return items.count - items.completed - items.failed;
}

/** A lost branch that is given its grace holds nothing up. */
export function isBusy(execution: LiveExecution | undefined): boolean {
  return execution !== undefined && execution.phase !== "AWAITED";
}

/** Copied once a turn: hundreds of branches may be live, and each of them may move. */
function ownLive(turn: Turn): Record<string, LiveExecution> {
  if (!turn.ownsLive) turn.state.live = { ...turn.state.live };
  turn.ownsLive = true;
  return turn.state.live;
}
