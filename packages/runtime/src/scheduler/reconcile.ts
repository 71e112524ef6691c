import type { Signal } from "@millrace/engine";
import { resolveRetryPolicy } from "@millrace/engine";
import {
  makeAllDue,
  overdueAttempts,
  readSetting,
  takeDueSteps,
  takeLapsedSteps,
  unappliedMatches,
  unmatchedEvents,
  waitsNotLookedBack,
  writeSetting,
} from "@millrace/store";
import type { DueStep } from "@millrace/store";
import { advance } from "../advance.ts";
import { newEventId } from "../ids.ts";
import { lookBackFor } from "../look-back.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import { matchEvent, nudge } from "../match-event.ts";
import { enqueue, perform } from "../perform.ts";
import type { Services } from "../services.ts";
import { signalsOf } from "../inbox.ts";

/**
 * Finds what a crash or a lost message left undone, and does it. The list is exactly what the rows
 * promise (DESIGN, The state is the outbox); each entry is bounded, skips what others have locked, and
 * leaves fresh work alone. There is no leader.
 */

const roundMs = 1_000;
/** A worker whose beat is older has died, or is stopped. */
const lapseMs = 4_000;
/** Halves of a protocol that are younger are still under way. */
const unfinishedMs = 2_000;
const batchSize = 500;
const mostDeliveries = 5;

export function startReconciler(services: Services): Loop {
  let lastRound = performance.now();
  let quietUntil = 0;

  async function round(): Promise<number> {
    const now = performance.now();
    // After a gap of its own, beats may be stale only because the database was away: let them come.
    if (now - lastRound > lapseMs) quietUntil = now + lapseMs;
    await checkEpoch(services);
    await repair(services, "steps", () => enqueueDueSteps(services));
    if (now >= quietUntil) await repair(services, "lapsed", () => takeOver(services));
    await repair(services, "attempts", () => timeOutAttempts(services));
    await repair(services, "events", () => matchEvents(services));
    await repair(services, "lookbacks", () => finishLookbacks(services));
    await repair(services, "matches", () => applyMatches(services));
    lastRound = performance.now();
    return roundMs;
  }

  return startLoop({ name: "reconciler", log: services.log, maxDelayMs: roundMs }, round);
}

async function repair(
  { metrics }: Services,
  kind: string,
  act: () => Promise<number>,
): Promise<void> {
  const found = await act();
  if (found > 0) metrics.reconcilerFound.add({ kind }, found);
}

/** Redis has lost everything when it does not have the mark that Postgres has. */
async function checkEpoch(services: Services): Promise<void> {
  const { database, queue, log } = services;
  let there: string | undefined;
  try {
    there = await queue.readEpoch();
  } catch {
    return;
  }
  const here = await readSetting(database.db, "epoch");
  if (here !== undefined && there === here) return;
  const epoch = newEventId();
  if (here !== undefined) {
    const due = await makeAllDue(database.db);
    log.warn({ steps: due }, "the queue has lost its jobs; adding them again");
  }
  await writeSetting(database.db, "epoch", epoch);
  await queue.writeEpoch(epoch).catch(() => {});
}

async function enqueueDueSteps(services: Services): Promise<number> {
  const steps = await takeDueSteps(services.database.db, batchSize);
  await enqueue(services, steps.map(jobOf));
  return steps.length;
}

function jobOf({ queue, priority, ...job }: DueStep) {
  return { job, queue, priority, delayMs: 0 };
}

async function takeOver(services: Services): Promise<number> {
  const { free, poisoned } = await takeLapsedSteps(services.database.db, {
    lapseMs,
    mostDeliveries,
    limit: batchSize,
  });
  services.metrics.takeOvers.add({}, free.length);
  await enqueue(services, free.map(jobOf));
  for (const { tenantId, instanceId, path, iteration, attempt, deliveries } of poisoned) {
    await signal(
      services,
      { tenantId, instanceId },
      { kind: "poisoned", path, iteration, attempt, deliveries },
    );
  }
  return free.length + poisoned.length;
}

/** Attempts whose worker is gone, or does not fire their clock. */
async function timeOutAttempts(services: Services): Promise<number> {
  const attempts = await overdueAttempts(services.database.db, batchSize);
  for (const {
    tenantId,
    instanceId,
    workflowId,
    workflowVersion,
    stepId,
    path,
    iteration,
    attempt,
    clock,
    retry,
  } of attempts) {
    const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
    const call = definition.steps.get(stepId) ?? definition.compensationSteps.get(stepId);
    const own = call !== undefined && "retry" in call ? call.retry : {};
    const policy = resolveRetryPolicy(own, retry ?? undefined, definition.retry);
    await signal(
      services,
      { tenantId, instanceId },
      { kind: "attemptTimedOut", path, iteration, attempt, clock, retry: policy },
    );
  }
  return attempts.length;
}

async function signal(
  services: Services,
  key: { readonly tenantId: string; readonly instanceId: string },
  what: Signal,
): Promise<void> {
  const advanced = await advance(services, key, {
    actor: "reconciler",
    cause: "reconciler",
    inbox: true,
    signals: (_snapshot, inbox) => [...signalsOf(inbox), what],
  });
  if (advanced.kind === "committed") await perform(services, advanced.commit);
}

async function matchEvents(services: Services): Promise<number> {
  const events = await unmatchedEvents(services.database.db, unfinishedMs, batchSize);
  for (const event of events) await matchEvent(services, event);
  return events.length;
}

async function finishLookbacks(services: Services): Promise<number> {
  const waits = await waitsNotLookedBack(services.database.db, unfinishedMs, batchSize);
  for (const wait of waits) await lookBackFor(services, wait);
  return waits.length;
}

async function applyMatches(services: Services): Promise<number> {
  const matches = await unappliedMatches(services.database.db, unfinishedMs, batchSize);
  for (const { tenantId, instanceId, eventId } of matches) {
    await nudge(services, { tenantId, id: eventId }, [instanceId]);
  }
  return matches.length;
}
