import { DataRefusedError, insertEvents, waitShapes } from "@millrace/store";
import type { Db, NewEvent, StoredEvent } from "@millrace/store";
import { groupCalls } from "./group.ts";
import { shareCalls } from "./share-calls.ts";

/** What every event needs, and what events of one moment can do together. */
export interface EventIntake {
  /** Stores an event; one whose id exists is a duplicate. @throws DataRefusedError, RangeError */
  store(event: NewEvent): Promise<StoredEvent | "duplicate">;
  /** By what paths the waits of these patterns are keyed, as it is now or later. */
  shapes(tenantId: string, patterns: readonly string[]): Promise<readonly string[]>;
}

export function openEventIntake(db: Db): EventIntake {
  const share = shareCalls<readonly string[]>();
  return {
    store: groupCalls<NewEvent, StoredEvent | "duplicate">(
      { lanes: 2, maxBatch: 100, keyOf: ({ tenantId, id }) => `${tenantId}/${id}` },
      (events) => storeAll(db, events),
    ),
    shapes: (tenantId, patterns) =>
      share(JSON.stringify([tenantId, patterns]), () => waitShapes(db, tenantId, patterns)),
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
