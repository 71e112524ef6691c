import { isSettled } from "@millrace/engine";
import type { Snapshot } from "@millrace/engine";
import { BadCursorError } from "@millrace/store";
import type { Change, Key } from "@millrace/store";
import { InstanceNotFoundError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { againMs, pageSize, silentMs, unlessAway } from "./batch.ts";
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
  const snapshot = await services.load.instance(key);
  if (snapshot === undefined) throw new InstanceNotFoundError(instanceId);
  if (after.version > snapshot.version) {
    throw new BadCursorError("the place is ahead of what is stored of the instance");
  }
  return isAtEnd(snapshot, after) ? undefined : follow(services, key, after, signal);
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
      const told: Told<InstancePlace>[] = [];
      for (const change of changes ?? []) place = tell(told, change, place);
      yield { told, place };
      if (changes?.length === pageSize) continue;
      if (changes !== undefined && (await hasEnded(services, key, place))) return;
      await watcher.next(place.version, changes === undefined ? againMs : silentMs, signal);
    }
  } finally {
    watcher.close();
  }
}

/** @returns The place behind the whole of the change. */
function tell(
  told: Told<InstancePlace>[],
  change: Change,
  { version, shown, seq }: InstancePlace,
): InstancePlace {
  const behind: InstancePlace = {
    version: change.version,
    shown: 0,
    seq: seq + change.entries.length - shown,
  };
  streamEventsOf(change).forEach((event, index) => {
    if (index < shown) return;
    const isLast = index === change.entries.length - 1;
    const within = { version, shown: index + 1, seq: seq + index + 1 - shown };
    told.push({ event, place: isLast ? behind : within });
  });
  return behind;
}

async function hasEnded(services: Services, key: Key, place: InstancePlace): Promise<boolean> {
  const known = await unlessAway(services.load.instance(key).then((snapshot) => ({ snapshot })));
  if (known === undefined) return false;
  // What has gone after its time has nothing more to tell either.
  return known.snapshot === undefined || isAtEnd(known.snapshot, place);
}

function isAtEnd(snapshot: Snapshot, { version, shown }: InstancePlace): boolean {
  const isFinal = isSettled(snapshot) && snapshot.status !== "FAILED";
  return isFinal && version === snapshot.version && shown === 0;
}
