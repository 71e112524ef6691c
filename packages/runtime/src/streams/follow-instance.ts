import { BadCursorError } from "@millrace/store";
import type { Change, Key, Progress } from "@millrace/store";
import { InstanceNotFoundError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { againMs, commitsAtOnce, mostTold, silentMs, unlessAway } from "./batch.ts";
import type { Batch, FollowOptions, Told } from "./batch.ts";
import { streamEventsOf } from "./stream-event.ts";

/** Behind `shown` entries of the commit after this version; `seq` is the number of the last entry. */
export interface InstancePlace {
  readonly version: number;
  readonly shown: number;
  readonly seq: number;
}

const beginning: InstancePlace = { version: 0, shown: 0, seq: 0 };

/**
 * All entries of an instance's history from a place on, as they are committed, until no more can come: one that
 * has FAILED may be retried.
 *
 * @returns Undefined where no more can come already.
 * @throws InstanceNotFoundError, BadCursorError
 */
export async function followInstance(
  services: Services,
  { tenantId }: Caller,
  instanceId: string,
  { after = beginning, signal }: FollowOptions<InstancePlace>,
): Promise<AsyncGenerator<Batch<InstancePlace>> | undefined> {
  const key = { tenantId, instanceId };
  const progress = await services.load.progress(key);
  if (progress === undefined) throw new InstanceNotFoundError(instanceId);
  // Who has been shown a part of a commit has been shown that it is there.
  const shownOf = after.shown > 0 ? after.version + 1 : after.version;
  if (shownOf > progress.version) {
    throw new BadCursorError("the place is ahead of what is stored of the instance");
  }
  return isAtEnd(progress, after) ? undefined : follow(services, key, after, signal);
}

async function* follow(
  services: Services,
  key: Key,
  after: InstancePlace,
  signal: AbortSignal,
): AsyncGenerator<Batch<InstancePlace>> {
  const watcher = services.watch.instance(key);
  let place = after;
  try {
    while (!signal.aborted) {
      const afterVersion = place.version;
      const changes = await unlessAway(services.load.changes({ ...key, afterVersion }));
      let told: Told<InstancePlace>[] = [];
      for (const change of changes ?? []) {
        for (const each of toldOf(change, place)) {
          if (told.push(each) < mostTold) continue;
          yield { told, place: each.place };
          told = [];
        }
        place = placeBehind(change, place);
      }
      yield { told, place };
      if (changes?.length === commitsAtOnce) continue;
      if (changes !== undefined && (await hasEnded(services, key, place))) return;
      await watcher.next(place.version, changes === undefined ? againMs : silentMs, signal);
    }
  } finally {
    watcher.close();
  }
}

function* toldOf(change: Change, place: InstancePlace): Generator<Told<InstancePlace>> {
  const { version, shown, seq } = place;
  let index = 0;
  for (const event of streamEventsOf(change)) {
    index += 1;
    if (index <= shown) continue;
    const isLast = index === change.entries.length;
    const within = { version, shown: index, seq: seq + index - shown };
    yield { event, place: isLast ? placeBehind(change, place) : within };
  }
}

/** The place behind the whole of the change that comes next. */
function placeBehind({ version, entries }: Change, { shown, seq }: InstancePlace): InstancePlace {
  return { version, shown: 0, seq: seq + entries.length - shown };
}

async function hasEnded(services: Services, key: Key, place: InstancePlace): Promise<boolean> {
  const known = await unlessAway(services.load.progress(key).then((progress) => ({ progress })));
  if (known === undefined) return false;
  // What has gone after its time has nothing more to tell either.
  return known.progress === undefined || isAtEnd(known.progress, place);
}

function isAtEnd({ version, status, isSettled }: Progress, place: InstancePlace): boolean {
  return isSettled && status !== "FAILED" && version === place.version && place.shown === 0;
}
