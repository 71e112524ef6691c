import { resolveRetryPolicy } from "@millrace/engine";
import type { Definition, Signal } from "@millrace/engine";
import {
  deleteStraySlots,
  knownQueues,
  makeMissedDue,
  orphansAmong,
  overdueAttempts,
  releasesLeft,
  setAside,
  takeChildSignals,
  takeDueSteps,
  takeLapsedSteps,
  takeUnstarted,
  takeUntoldGrants,
  unappliedMatches,
  unmatchedEvents,
  waitsNotLookedBack,
  workersLost,
} from "@millrace/store";
import type { Key, Lapsed, OverdueAttempt, SilentWorker } from "@millrace/store";
import { advance } from "../advance.ts";
import { handOn } from "../events/hand-on.ts";
import { signalsOf } from "../events/inbox.ts";
import { lookBack } from "../events/look-back.ts";
import { matchEvent } from "../events/match-event.ts";
import { deliver, startChild } from "../instances/children.ts";
import { remainsToUndo } from "../instances/remains.ts";
import { nudge } from "../nudge.ts";
import { enqueueDue, perform, performAll } from "../perform.ts";
import type { Services } from "../services.ts";
import { isLate } from "./fire-timers.ts";
import { tellGranted } from "./grant.ts";
import { begunLast } from "./begun-last.ts";
import { each, kind } from "./kind.ts";
import type { Kind } from "./kind.ts";

/**
 * What the rows promise (DESIGN, The state is the outbox), each with the question that finds what was
 * left undone and what makes it good. Nothing else makes up for a crash or a lost message.
 */

/** A worker whose beat is older has died, or is stopped. */
export const lapseMs = 4_000;
/** Halves of a protocol that are younger are still under way. */
const unfinishedMs = 2_000;
const mostDeliveries = 5;

/** PENDING steps whose job was not there in time, and retries that are due. */
const steps = kind({
  name: "steps",
  needsQueue: true,
  find: ({ database }, limit) => takeDueSteps(database.db, limit),
  since: ({ dueAt }) => dueAt,
  repair: (services, due) =>
    enqueueDue(
      services,
      // A retry out of hours of downtime goes behind what is started meanwhile, as timers do.
      due.map((step) =>
        step.isRetry && isLate(services, step) ? { ...step, priority: step.priority - 1 } : step,
      ),
    ),
});

/** RUNNING steps whose worker is silent. */
export const lapsed: Kind = kind({
  name: "lapsed",
  needsQueue: true,
  find: ({ database }, limit, after) =>
    takeLapsedSteps(database.db, { lapseMs, mostDeliveries, limit, after }),
  since: ({ silentSince }) => silentSince,
  place: ({ place }) => place,
  repair: takeOver,
});

/** Workers that died not long ago: steps that they made PENDING, and did not come to add. */
const deaths = kind({
  name: "deaths",
  needsQueue: true,
  find: ({ database }, limit) => workersLost(database.db, deathMs, limit),
  since: ({ beatAt }) => beatAt,
  repair: addWhatTheyMissed,
});

/** For so long a death is looked into, in each round: nobody needs to remember which ones were. */
const deathMs = 5_000;
/** A job is added so long after its row was committed, at most. */
const lagMs = 2_000;

/** Nobody knows who made a row PENDING, so that all of that time are asked for. */
async function addWhatTheyMissed(
  { database }: Services,
  workers: readonly SilentWorker[],
): Promise<number> {
  const beats = workers.map(({ beatAt }) => beatAt.getTime());
  const from = new Date(Math.min(...beats) - lagMs);
  const to = new Date(Math.max(...beats) + lapseMs);
  return makeMissedDue(database.db, from, to);
}

/** Attempts whose worker is gone, or does not fire their clock. */
const attempts = kind({
  name: "attempts",
  find: ({ database }, limit, after) => overdueAttempts(database.db, limit, after),
  since: ({ dueAt }) => dueAt,
  place: ({ place }) => place,
  repair: (services, items) => each(services, items, (item) => timeOut(services, item)),
});

/** Events whose publisher did not come to match them. */
const events = kind({
  name: "events",
  find: ({ database }, limit, after) => unmatchedEvents(database.db, unfinishedMs, limit, after),
  since: ({ receivedAt }) => receivedAt,
  place: ({ place }) => place,
  repair: (services, items) => each(services, items, (event) => matchEvent(services, event)),
});

/** Waits whose opener did not come to look for events before them. */
const lookbacks = kind({
  name: "lookbacks",
  find: ({ database }, limit, after) => waitsNotLookedBack(database.db, unfinishedMs, limit, after),
  since: ({ openedAt }) => new Date(openedAt),
  place: ({ place }) => place,
  repair: (services, waits) => each(services, instancesOf(waits), (key) => lookBack(services, key)),
});

function instancesOf(waits: readonly Key[]): readonly Key[] {
  const keys = waits.map(({ tenantId, instanceId }) => ({ tenantId, instanceId }));
  return [...new Map(keys.map((key) => [`${key.tenantId}/${key.instanceId}`, key])).values()];
}

/** Waits that an event has taken, and whose instances were not told. */
const matches = kind({
  name: "matches",
  needsQueue: true,
  find: ({ database }, limit, after) => unappliedMatches(database.db, unfinishedMs, limit, after),
  since: ({ matchedAt }) => matchedAt,
  place: ({ place }) => place,
  repair: (services, items) =>
    each(services, items, ({ tenantId, instanceId, eventId }) =>
      nudge(services, { tenantId, id: eventId }, [instanceId]),
    ),
});

/** Events whose instance could not use them, and that nobody came to hand on. */
const releases = kind({
  name: "releases",
  find: ({ database }, limit, after) => releasesLeft(database.db, unfinishedMs, limit, after),
  since: ({ releasedAt }) => releasedAt,
  place: ({ place }) => place,
  repair: (services, items) => each(services, items, (release) => handOn(services, release)),
});

/** Children that were asked for and do not exist yet. */
const children = kind({
  name: "children",
  find: ({ database }, limit) => takeUnstarted(database.db, limit),
  since: ({ requestedAt }) => requestedAt,
  repair: (services, items) =>
    each(services, items, async (child) => performAll(services, await startChild(services, child))),
});

/** What parents and children have told each other, and nobody has taken note of. */
const childSignals = kind({
  name: "childSignals",
  find: ({ database }, limit) => takeChildSignals(database.db, limit),
  since: ({ sentAt }) => sentAt,
  repair: (services, items) =>
    each(services, items, async (receiver) =>
      performAll(services, await deliver(services, receiver)),
    ),
});

/** Slots that were given to instances which nobody came to tell. */
const grants = kind({
  name: "grants",
  find: ({ database }, limit) => takeUntoldGrants(database.db, limit),
  since: ({ grantedAt }) => grantedAt,
  repair: (services, items) => each(services, items, (grant) => tellGranted(services, grant)),
});

/** Slots of instances that do not run: looked for at the pace of admission. */
export const straySlots: Kind = kind({
  name: "slots",
  find: ({ database }, limit) => deleteStraySlots(database.db, limit),
  since: ({ grantedAt }) => grantedAt,
  repair: async ({ queue }, slots) => {
    for (const { tenantId, limitKey } of slots) queue.wake.publish("slot", { tenantId, limitKey });
    return slots.length;
  },
});

/**
 * Jobs that wait and carry nothing: their step is settled, taken over or gone, or nobody here has written
 * them. Also in queues that no worker serves any more; a look at some of them each time.
 */
const orphans = kind({
  name: "orphans",
  needsQueue: true,
  find: findOrphans,
  since: ({ addedAt }) => addedAt,
  repair: (services, items) =>
    each(services, items, ({ queue, jobId }) => services.queue.removeStep(queue, jobId)),
});

/** In the order in which they are looked for. */
export const kinds: readonly Kind[] = [
  steps,
  lapsed,
  deaths,
  attempts,
  events,
  lookbacks,
  matches,
  releases,
  children,
  childSignals,
  grants,
  orphans,
];

/** Jobs that are younger are still being added, taken or removed by whoever has to do with them. */
const orphanMs = 10_000;
/** Jobs of a queue and a state that are looked at in a round. */
const orphanPage = 100;

async function findOrphans({ database, queue, clock }: Services): Promise<readonly OrphanJob[]> {
  const before = clock.now().getTime() - orphanMs;
  const found: OrphanJob[] = [];
  const names = new Set([...(await knownQueues(database.db)), ...(await queue.someQueues())]);
  for (const name of names) {
    const pending = await queue.somePending(name, orphanPage);
    const old = pending.filter(({ addedAt }) => addedAt.getTime() < before);
    const carried = old.flatMap(({ jobId, steps: carries }) =>
      carries.map((step) => ({ ...step, jobId })),
    );
    const orphaned = new Set(await orphansAmong(database.db, carried));
    // A bundle carries something as long as one of its steps waits for it.
    const needed = new Set(carried.filter((job) => !orphaned.has(job)).map(({ jobId }) => jobId));
    const useless = old.filter(({ jobId }) => !needed.has(jobId));
    found.push(...useless.map(({ jobId, addedAt }) => ({ queue: name, jobId, addedAt })));
  }
  return found;
}

interface OrphanJob {
  readonly queue: string;
  readonly jobId: string;
  readonly addedAt: Date;
}

async function takeOver(services: Services, items: readonly Lapsed[]): Promise<number> {
  const free = items.filter(({ isFree }) => isFree);
  services.metrics.takeOvers.add({}, free.length);
  const goingOn = free.filter(({ isPutOff }) => !isPutOff);
  const likely = begunLast(goingOn);
  const enqueued = await enqueueDue(
    services,
    await Promise.all(
      goingOn.map(async (step) => (likely.has(step) ? putAlone(services, step) : step)),
    ),
  );
  const poisoned = items.filter(({ isFree }) => !isFree);
  return enqueued + (await each(services, poisoned, (step) => poison(services, step)));
}

/** A process takes half a second to start, and some seconds on a busy machine. */
const guessMs = 5_000;

/**
 * A suspect at its first death already (decision 15), as long as that is a guess: where all processes are taken, by steps
 * of hours perhaps, it goes on beside others after a moment.
 */
async function putAlone({ database }: Services, step: Lapsed) {
  const marked = await setAside(database.db, step, guessMs);
  return marked === undefined ? step : { ...marked, isSetAside: true };
}

/** Also where the definition is lost and the step undoes another one: its dead letter is the only way on. */
async function poison(services: Services, step: Lapsed): Promise<void> {
  const { path, iteration, attempt, lapses } = step;
  const poisoned = { kind: "poisoned", path, iteration, attempt, deliveries: lapses } as const;
  await signal(services, step, poisoned).catch(async (error: unknown) => {
    await signal(services, step, poisoned, await remainsToUndo(services, step, error));
  });
}

async function timeOut(services: Services, overdue: OverdueAttempt): Promise<void> {
  const { tenantId, workflowId, workflowVersion, stepId, path, iteration, attempt, clock, retry } =
    overdue;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  const call = definition.steps.get(stepId) ?? definition.compensationSteps.get(stepId);
  const own = call !== undefined && "retry" in call ? call.retry : {};
  const policy = resolveRetryPolicy(own, retry ?? undefined, definition.retry);
  await signal(services, overdue, {
    kind: "attemptTimedOut",
    path,
    iteration,
    attempt,
    clock,
    retry: policy,
  });
}

async function signal(
  services: Services,
  { tenantId, instanceId }: { readonly tenantId: string; readonly instanceId: string },
  what: Signal,
  remains?: Definition,
): Promise<void> {
  const key = { tenantId, instanceId };
  const advanced = await advance(services, key, {
    remains,
    actor: "reconciler",
    cause: "reconciler",
    inbox: true,
    signals: (_snapshot, inbox) => [...signalsOf(inbox), what],
  });
  if (advanced.kind === "committed") await perform(services, advanced.commit);
}
