import { checkPlace, lastPlace, readChanges } from "@millrace/store";
import type { ChangePage, ChangePlace, Db, PlacedChange } from "@millrace/store";
import type { Caller, Services } from "../services.ts";
import { shareCalls } from "../share-calls.ts";
import { againMs, mostTold, pageSize, silentMs, unlessAway } from "./batch.ts";
import type { Batch, FollowOptions, Told } from "./batch.ts";
import { streamEventsOf } from "./stream-event.ts";

/** Reads what comes after a place: those who have read alike stand at one place, and share what it costs. */
export type Feed = (place: ChangePlace) => Promise<ChangePage>;

export function openFeed(db: Db): Feed {
  const share = shareCalls<ChangePage>();
  return (place) =>
    share(`${place.tx}.${place.seq}.${place.shown}`, () => readChanges(db, place, pageSize));
}

/**
 * What is committed already may be read once transactions that began before it have ended: looked for after so
 * long, and as long again each time that it was in vain. One of them may stand still for hours.
 */
const heldBackMs = { first: 20, most: 1_000 } as const;

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
  let inVain = 0;
  try {
    while (!signal.aborted) {
      const page = await unlessAway(services.feed(place));
      let told: Told<ChangePlace>[] = [];
      for (const change of page?.changes ?? []) {
        for (const each of change.tenantId === tenantId ? toldOf(change, place) : []) {
          if (told.push(each) < mostTold) continue;
          yield { told, place: each.place };
          spokenAt = performance.now();
          told = [];
        }
        place = { tx: change.tx, seq: change.seq };
      }
      if (told.length > 0 || performance.now() - spokenAt >= silentMs) {
        yield { told, place };
        spokenAt = performance.now();
      }
      if (page?.changes.length === pageSize) continue;
      inVain = page?.changes.length === 0 ? inVain + 1 : 0;
      await watcher.next(0, waitMs(page, inVain), signal);
    }
  } finally {
    watcher.close();
  }
}

function waitMs(page: ChangePage | undefined, inVain: number): number {
  if (page === undefined) return againMs;
  if (!page.isHeldBack) return silentMs;
  return Math.min(heldBackMs.first * 2 ** Math.min(inVain, 10), heldBackMs.most);
}

function* toldOf(change: PlacedChange, place: ChangePlace): Generator<Told<ChangePlace>> {
  const { tx, seq } = change;
  const shown = tx === place.tx && seq === place.seq ? (place.shown ?? 0) : 0;
  let index = 0;
  for (const event of streamEventsOf(change)) {
    index += 1;
    if (index <= shown) continue;
    const isLast = index === change.entries.length;
    yield { event, place: isLast ? { tx, seq } : { tx, seq, shown: index } };
  }
}
