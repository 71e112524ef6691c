import { checkPlace, lastPlace, readChanges } from "@millrace/store";
import type { ChangePage, ChangePlace, Db, PlacedChange } from "@millrace/store";
import type { Caller, Services } from "../services.ts";
import { shareCalls } from "../share-calls.ts";
import { againMs, pageSize, silentMs, unlessAway } from "./batch.ts";
import type { Batch, FollowOptions, Told } from "./batch.ts";
import { streamEventsOf } from "./stream-event.ts";

/** Reads what comes after a place: those who have read alike stand at one place, and share what it costs. */
export type Feed = (place: ChangePlace) => Promise<ChangePage>;

export function openFeed(db: Db): Feed {
  const share = shareCalls<ChangePage>();
  return (place) =>
    share(`${place.tx}.${place.seq}.${place.shown}`, () => readChanges(db, place, pageSize));
}

/** What is committed already may be read once transactions that began before it have ended. */
const heldBackMs = 20;

/**
 * All entries of the histories of a tenant's instances, as they are committed; those of one instance in
 * their order.
 *
 * @throws BadCursorError
 */
export async function followAll(
  services: Services,
  { tenantId }: Caller,
  { after, signal }: FollowOptions<ChangePlace>,
): Promise<AsyncGenerator<Batch<ChangePlace>>> {
  const { db } = services.database;
  if (after !== undefined) await checkPlace(db, after);
  return follow(services, tenantId, after ?? (await lastPlace(db)), signal);
}

async function* follow(
  services: Services,
  tenantId: string,
  after: ChangePlace,
  signal: AbortSignal,
): AsyncGenerator<Batch<ChangePlace>> {
  const watcher = services.watch.all();
  let place = after;
  let spokenAt = -Infinity;
  try {
    while (!signal.aborted) {
      const page = await unlessAway(services.feed(place));
      const told: Told<ChangePlace>[] = [];
      for (const change of page?.changes ?? []) {
        if (change.tenantId === tenantId) tell(told, change, place);
        place = { tx: change.tx, seq: change.seq };
      }
      if (told.length > 0 || performance.now() - spokenAt >= silentMs) {
        yield { told, place };
        spokenAt = performance.now();
      }
      if (page?.changes.length === pageSize) continue;
      await watcher.next(0, waitMs(page), signal);
    }
  } finally {
    watcher.close();
  }
}

function waitMs(page: ChangePage | undefined): number {
  if (page === undefined) return againMs;
  return page.isHeldBack ? heldBackMs : silentMs;
}

function tell(told: Told<ChangePlace>[], change: PlacedChange, place: ChangePlace): void {
  const { tx, seq } = change;
  const shown = tx === place.tx && seq === place.seq ? (place.shown ?? 0) : 0;
  streamEventsOf(change).forEach((event, index) => {
    if (index < shown) return;
    const isLast = index === change.entries.length - 1;
    told.push({ event, place: isLast ? { tx, seq } : { tx, seq, shown: index + 1 } });
  });
}
