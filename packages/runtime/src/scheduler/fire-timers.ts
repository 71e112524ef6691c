import type { Signal } from "@millrace/engine";
import { deleteTimer, nextTimerDue, takeDueTimers } from "@millrace/store";
import type { DueTimer } from "@millrace/store";
import { advance } from "../advance.ts";
import { InstanceNotFoundError } from "../errors.ts";
import { signalsOf } from "../inbox.ts";
import { lookBack } from "../look-back.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import { perform } from "../perform.ts";
import type { Services } from "../services.ts";

/**
 * Fires the timers that have come due by the database's clock, whoever set them. Any number of
 * schedulers may do so: each takes its own rows for a while, and the commit that fires a timer deletes
 * it, so that a second firing is void.
 */

const batchSize = 200;
/** A scheduler that took timers and died is given so long. */
const holdMs = 5_000;
/** Safety net; pub/sub tells of timers that come due before the next look. */
const longestSleepMs = 500;

export function startTimerLoop(services: Services): Loop {
  const loop = startLoop({ name: "timers", log: services.log, maxDelayMs: longestSleepMs }, () =>
    fireDueTimers(services),
  );
  const unsubscribe = services.queue.wake.subscribe("timer", ({ dueAt }) => {
    const soon = services.clock.now().getTime() + longestSleepMs;
    if (typeof dueAt !== "number" || dueAt <= soon) loop.wake();
  });
  return {
    wake: () => loop.wake(),
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}

/** @returns Milliseconds until the next timer is due. */
async function fireDueTimers(services: Services): Promise<number> {
  const { db } = services.database;
  const timers = await takeDueTimers(db, batchSize, holdMs);
  await Promise.all(groupByInstance(timers).map((group) => fire(services, group)));
  if (timers.length === batchSize) return 0;
  const next = await nextTimerDue(db);
  return next === undefined ? longestSleepMs : next.getTime() - services.clock.now().getTime();
}

function groupByInstance(timers: readonly DueTimer[]): readonly (readonly DueTimer[])[] {
  const groups = new Map<string, DueTimer[]>();
  for (const timer of timers) {
    const key = `${timer.tenantId}/${timer.instanceId}`;
    groups.set(key, [...(groups.get(key) ?? []), timer]);
  }
  return [...groups.values()];
}

/** In order of their time, and after events that were matched already: those came first. */
async function fire(services: Services, timers: readonly DueTimer[]): Promise<void> {
  const [{ tenantId, instanceId }] = timers as [DueTimer];
  const signals = timers.map(({ kind, path, iteration, attempt }): Signal => ({
    kind: "timerFired",
    timer: kind,
    path,
    iteration,
    attempt,
  }));
  try {
    // An event from before the wait opened comes before the timeout, though nobody may have looked yet.
    if (timers.some(({ kind }) => kind === "wait" || kind === "total"))
      await lookBack(services, { tenantId, instanceId });
    const advanced = await advance(
      services,
      { tenantId, instanceId },
      {
        actor: "scheduler",
        cause: "timer",
        inbox: true,
        signals: (_snapshot, inbox) => [...signalsOf(inbox), ...signals],
      },
    );
    if (advanced.kind === "committed") await perform(services, advanced.commit);
    else await dropAll(services, timers);
    count(services, timers);
  } catch (error) {
    if (error instanceof InstanceNotFoundError) await dropAll(services, timers);
    else services.log.warn({ err: error, instanceId }, "timer not fired; it is tried again");
  }
}

/** Void: the execution that they were set for has moved on. */
async function dropAll({ database }: Services, timers: readonly DueTimer[]): Promise<void> {
  for (const timer of timers) await deleteTimer(database.db, timer);
}

function count({ metrics, clock }: Services, timers: readonly DueTimer[]): void {
  const now = clock.now().getTime();
  for (const { kind, dueAt } of timers) {
    metrics.timersFired.add({ kind });
    metrics.timerLateness.observe({}, Math.max(0, now - dueAt.getTime()) / 1_000);
  }
}
