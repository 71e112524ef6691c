import type { Signal } from "@millrace/engine";
import {
  deleteTimer,
  nextTimerDue,
  putOffTimers,
  takeDueTimers,
  takeDueTimersOf,
} from "@millrace/store";
import type { DueTimer } from "@millrace/store";
import { advance } from "../advance.ts";
import { InstanceNotFoundError, WorkflowNotFoundError } from "../errors.ts";
import { signalsOf } from "../events/inbox.ts";
import { lookBack, takesWaits } from "../events/look-back.ts";
import { resumeByTimer } from "../instances/pause-instance.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import { perform } from "../perform.ts";
import type { Services } from "../services.ts";

/**
 * Fires the timers that have come due by the database's clock, whoever set them. Any number of
 * schedulers may do so: each takes its own rows for a while, and the commit that fires a timer deletes
 * it, so that a second firing is void.
 *
 * After hours of downtime the timers of those hours are a backlog: it is worked off in order of time, at
 * a rate that leaves room for everything else, and what comes due meanwhile fires in its time. What it makes
 * run lets what is started meanwhile go first.
 */

const batchSize = 200;
/** A scheduler that took timers and died is given so long. */
const holdMs = 5_000;
/** Safety net; pub/sub tells of timers that come due before the next look. */
const longestSleepMs = 500;

/** A timer that has been due for longer belongs to the backlog, of which so many fire in a second. */
export const lateMs = 30_000;
const latePerSecond = 500;
/** So many of the backlog at a time: what comes due meanwhile waits for no more than these. */
const lateBatch = 100;

export function startTimerLoop(services: Services): Loop {
  const fireDueTimers = timerRounds(services);
  const loop = startLoop(
    { name: "timers", log: services.log, maxDelayMs: longestSleepMs },
    fireDueTimers,
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

/** @returns A round of the loop, which answers in how many milliseconds the next timer is due. */
function timerRounds(services: Services): () => Promise<number> {
  const { db } = services.database;
  // Until a look has shown that there is none.
  let isBacklog = true;
  let lateFrom = 0;

  return async () => {
    if (isBacklog) return workOff();
    const timers = await takeDueTimers(db, batchSize, holdMs);
    await fireAll(services, timers);
    isBacklog = timers.some((timer) => isLate(services, timer));
    return timers.length === batchSize ? 0 : untilNext();
  };

  async function workOff(): Promise<number> {
    const now = performance.now();
    const fresh = await takeDueTimers(db, batchSize, holdMs, { lessThanMs: lateMs });
    // Those of an instance fire in their order, whichever of them are late.
    const earlier = await takeDueTimersOf(db, fresh, holdMs);
    const isTurn = now >= lateFrom;
    const late = isTurn ? await takeDueTimers(db, lateBatch, holdMs, { atLeastMs: lateMs }) : [];
    if (isTurn) lateFrom = now + (late.length / latePerSecond) * 1_000;
    await fireAll(services, [...earlier, ...late, ...fresh]);
    if (fresh.length === batchSize) return 0;
    return Math.min(await untilNext(), Math.max(0, lateFrom - performance.now()));
  }

  async function untilNext(): Promise<number> {
    const next = await nextTimerDue(db);
    if (next === undefined) {
      isBacklog = false;
      return longestSleepMs;
    }
    const untilMs = next.getTime() - services.clock.now().getTime();
    isBacklog = untilMs < -lateMs;
    return isBacklog ? Number.POSITIVE_INFINITY : untilMs;
  }
}

async function fireAll(services: Services, timers: readonly DueTimer[]): Promise<void> {
  const inOrder = timers.toSorted((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
  await Promise.all(groupByInstance(inOrder).map((group) => fire(services, group)));
}

function groupByInstance(timers: readonly DueTimer[]): readonly (readonly DueTimer[])[] {
  const groups = new Map<string, DueTimer[]>();
  for (const timer of timers) {
    const key = `${timer.tenantId}/${timer.instanceId}`;
    groups.set(key, [...(groups.get(key) ?? []), timer]);
  }
  return [...groups.values()];
}

async function fire(services: Services, timers: readonly DueTimer[]): Promise<void> {
  const pauses = timers.filter(({ kind }) => kind === "resume");
  const others = timers.filter(({ kind }) => kind !== "resume");
  if (pauses.length > 0) await tryToFire(services, pauses, resumeInTime);
  if (others.length > 0) await tryToFire(services, others, fireInTurn);
}

/** What could not be fired comes again: nobody has taken it away. */
async function tryToFire(
  services: Services,
  timers: readonly DueTimer[],
  act: (services: Services, timers: readonly DueTimer[]) => Promise<void>,
): Promise<void> {
  try {
    await act(services, timers);
    count(services, timers);
  } catch (error) {
    if (error instanceof InstanceNotFoundError) return dropAll(services, timers);
    const [{ instanceId }] = timers as [DueTimer];
    services.log.warn({ err: error, instanceId }, "timer not fired; it is tried again");
    // Until it is restored nobody can decide what follows.
    if (error instanceof WorkflowNotFoundError) await putOffTimers(services.database.db, timers);
  }
}

async function resumeInTime(services: Services, timers: readonly DueTimer[]): Promise<void> {
  const [{ tenantId, instanceId, dueAt }] = timers as [DueTimer];
  await resumeByTimer(services, { tenantId, instanceId }, dueAt);
  await dropAll(services, timers);
}

/** In order of their time, and after events that were matched already: those came first. */
async function fireInTurn(services: Services, timers: readonly DueTimer[]): Promise<void> {
  const [{ tenantId, instanceId }] = timers as [DueTimer];
  const signals = timers.map(({ kind, path, iteration, attempt }): Signal => ({
    kind: "timerFired",
    timer: kind,
    path,
    iteration,
    attempt,
  }));
  // An event from before the wait opened comes before the timeout, though nobody may have looked yet.
  if (timers.some(({ kind }) => takesWaits.has(kind))) {
    await lookBack(services, { tenantId, instanceId });
  }
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
  const areLate = timers.every((timer) => isLate(services, timer));
  if (advanced.kind === "committed") await perform(services, advanced.commit, areLate);
  // A pause that came in between holds them: they are in their rows until it is over.
  else if (advanced.snapshot.status !== "PAUSED") await dropAll(services, timers);
}

/** Whether it belongs to a backlog: it should have happened long ago. */
export function isLate({ clock }: Services, { dueAt }: { readonly dueAt: Date }): boolean {
  return dueAt.getTime() < clock.now().getTime() - lateMs;
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
