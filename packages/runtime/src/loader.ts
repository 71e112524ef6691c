import type { Snapshot } from "@millrace/engine";
import { keyName, loadInboxes, loadInstances, readChangesOf } from "@millrace/store";
import type { Change, ChangesOfInstance, Db, Key, MatchedWait } from "@millrace/store";
import { groupCalls } from "./group.ts";
import { pageSize } from "./streams/batch.ts";

/** Reads that many do at the same moment, for an instance each: they share their round trips. */
export interface Loader {
  instance(key: Key): Promise<Snapshot | undefined>;
  /** Matched waits that are not applied yet. */
  inbox(key: Key): Promise<readonly MatchedWait[]>;
  /** Its next commits, `pageSize` at most. */
  changes(asked: ChangesOfInstance): Promise<readonly Change[]>;
}

const sizes = { lanes: 2, maxBatch: 200 };

export function openLoader(db: Db): Loader {
  return {
    instance: groupCalls<Key, Snapshot | undefined>(sizes, async (keys) => {
      const found = await loadInstances(db, keys);
      return keys.map((key) => found.get(keyName(key)));
    }),
    inbox: groupCalls<Key, readonly MatchedWait[]>(sizes, async (keys) => {
      const found = await loadInboxes(db, keys);
      return keys.map((key) => found.get(keyName(key)) ?? []);
    }),
    changes: groupCalls<ChangesOfInstance, readonly Change[]>(sizes, (asked) =>
      readChangesOf(db, asked, pageSize),
    ),
  };
}
