import {
  DataRefusedError,
  deliverTogether,
  findWaitsTogether,
  insertEvents,
  listenerShapes,
  markMatchedTogether,
  settleEvents,
} from "@millrace/store";
import type {
  Db,
  Delivered,
  Delivery,
  EventCounts,
  EventSearch,
  EventSummary,
  ListenerShapes,
  Match,
  NewEvent,
  StoredEvent,
  WaitCandidate,
} from "@millrace/store";
import { groupCalls } from "../group.ts";
import { shareCalls } from "../share-calls.ts";

/** What every event needs, and what events of one moment can do together. */
export interface EventIntake {
  /** Stores an event; one whose id exists is a duplicate. @throws DataRefusedError, RangeError */
  store(event: NewEvent): Promise<StoredEvent | "duplicate">;
  /** By what paths those that listen to these patterns are keyed, as it is now or later. */
  shapes(tenantId: string, patterns: readonly string[]): Promise<ListenerShapes>;
  /** The first `pageSize` waits that the event may satisfy, of both purposes. */
  find(search: EventSearch): Promise<readonly WaitCandidate[]>;
  /** Whether the wait got the event. */
  take(match: Match): Promise<boolean>;
  /** Gives the event to the only wait that may have it, and notes what it came to. */
  deliver(delivery: Delivery): Promise<Delivered>;
  /** Notes what the event came to; undefined where there is no such event. */
  settle(summary: EventSummary): Promise<EventCounts | undefined>;
}

/** Waits looked at per event and statement. */
export const pageSize = 500;

export function openEventIntake(db: Db): EventIntake {
  const share = shareCalls<ListenerShapes>();
  // In one statement a wait can go to one event only.
  const nameOf = ({ wait: { tenantId, instanceId, path, iteration } }: Match) =>
    `${tenantId}/${instanceId}/${path}/${iteration}`;
  return {
    store: groupCalls<NewEvent, StoredEvent | "duplicate">(
      { lanes: 2, maxBatch: 100, keyOf: ({ tenantId, id }) => `${tenantId}/${id}` },
      (events) => storeAll(db, events),
    ),
    find: groupCalls<EventSearch, readonly WaitCandidate[]>(
      { lanes: 2, maxBatch: 50 },
      (searches) => findWaitsTogether(db, searches, pageSize),
    ),
    take: groupCalls<Match, boolean>({ lanes: 2, maxBatch: 100, keyOf: nameOf }, (matches) =>
      markMatchedTogether(db, matches),
    ),
    deliver: groupCalls<Delivery, Delivered>(
      { lanes: 2, maxBatch: 100, keyOf: nameOf },
      (deliveries) => deliverTogether(db, deliveries),
    ),
    settle: groupCalls<EventSummary, EventCounts | undefined>(
      { lanes: 2, maxBatch: 100, keyOf: ({ tenantId, id }) => `${tenantId}/${id}` },
      (summaries) => settleEvents(db, summaries),
    ),
    shapes: (tenantId, patterns) =>
      share(JSON.stringify([tenantId, patterns]), () => listenerShapes(db, tenantId, patterns)),
  };
}

/** Where one payload cannot be stored, each goes alone, so that the others do not suffer. */
async function storeAll(
  db: Db,
  events: readonly NewEvent[],
): Promise<readonly (StoredEvent | "duplicate" | Error)[]> {
  try {
    return await insertEvents(db, events);
  } catch (error) {
    const isRefused = error instanceof DataRefusedError || error instanceof RangeError;
    if (!isRefused) throw error;
    if (events.length === 1) return [error];
    return (await Promise.all(events.map((event) => storeAll(db, [event])))).flat();
  }
}
