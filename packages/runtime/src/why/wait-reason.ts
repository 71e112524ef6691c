import { explainWait, matcherOf } from "@millrace/engine";
import type { Definition, EventFact, WaitRef } from "@millrace/engine";
import { loadReads, recentEvents } from "@millrace/store";
import type { InstanceRead, LiveWorker, WaitRead } from "@millrace/store";
import { answerLoading } from "../answer.ts";
import { factOf } from "../events/satisfies.ts";
import type { Services } from "../services.ts";
import type { NearMiss, Reason } from "./reason.ts";
import { dueAt } from "./step-reason.ts";

/** Events that are held against a wait's condition, and those that are shown. */
const eventsLookedAt = 100;

const eventsShown = 5;

/**
 * @param definition Undefined where it is not stored any more.
 * @param isAmongFirst Whether its condition is filled in, and held against past events.
 */
export async function waitReason(
  services: Services,
  definition: Definition | undefined,
  read: InstanceRead,
  wait: WaitRead,
  isAmongFirst: boolean,
  workers: readonly LiveWorker[],
): Promise<Reason> {
  const { pattern, openedAt: since, matchedEventId } = wait;
  const place = { path: wait.executionPath, iteration: wait.iteration };
  const explain: Explain | undefined =
    definition && isAmongFirst
      ? (event) => explained(services, definition, read, wait, event)
      : undefined;
  const taken = matchedEventId !== null;
  const misses = explain && !taken ? await nearMisses(services, read, wait, explain) : [];
  const condition = definition && waitCondition(definition, wait);
  return {
    stepId: wait.stepId ?? "",
    executionId: `${wait.executionPath}#${wait.iteration}`,
    isCompensation: false,
    kind: taken ? "EVENT_TAKEN" : "EVENT_WAIT",
    pattern,
    condition: condition ?? null,
    filledIn: (await explain?.())?.filledIn ?? null,
    since,
    until: dueAt(read, place, "wait") ?? dueAt(read, place, "total"),
    nearMisses: misses,
    workers: taken ? workers.filter(({ queues }) => queues.length > 0).map(({ id }) => id) : [],
  };
}

/** The source of a wait's condition, where it has one. */
export function waitCondition(definition: Definition, wait: WaitRef): string | undefined {
  return matcherOf(definition, wait)?.eventCondition?.source;
}

type Explain = (event?: EventFact) => ReturnType<typeof explained>;

/** Of the last events those that missed by the least, the latest first. */
export async function nearMisses(
  { database: { db } }: Services,
  { snapshot }: InstanceRead,
  { pattern, openedAt }: WaitRead,
  explain: Explain,
): Promise<readonly NearMiss[]> {
  const events = await recentEvents(db, snapshot.tenantId, pattern, eventsLookedAt);
  const misses: NearMiss[] = [];
  for (const stored of events) {
    const event = factOf(stored);
    const failed = ((await explain(event))?.conjuncts ?? []).filter(({ holds }) => holds === false);
    const isEarly = stored.receivedAt < openedAt;
    // One that satisfies it in all and came in time is on its way.
    if (failed.length === 0 && !isEarly) continue;
    misses.push({
      event,
      because: failed.length > 0 ? "CONDITION" : "BEFORE_WAIT",
      failed: failed.map(({ source, filledIn, problem }) => ({
        source,
        filledIn,
        ...(problem !== undefined && { problem }),
      })),
    });
  }
  return misses
    .toSorted((one, other) => one.failed.length - other.failed.length)
    .slice(0, eventsShown);
}

async function explained(
  { database: { db }, clock }: Services,
  definition: Definition,
  { snapshot }: InstanceRead,
  wait: WaitRef,
  event: EventFact | undefined,
) {
  const key = { tenantId: snapshot.tenantId, instanceId: snapshot.id };
  const { answer } = await answerLoading(
    `instance ${snapshot.id}, why`,
    (reads) => explainWait(definition, snapshot, wait, event, reads, clock.now()),
    (requests) => loadReads(db, key, requests),
  );
  return answer;
}
