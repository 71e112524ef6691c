import type { Snapshot } from "@millrace/engine";
import { keyName, loadInboxes, loadInstances, progressOf, readChangesOf } from "@millrace/store";
import type { Change, ChangesOfInstance, Db, Key, MatchedWait, Progress } from "@millrace/store";
import { groupCalls } from "./group.ts";
import { commitsAtOnce } from "./streams/batch.ts";

/** Reads that many do at the same moment, for an instance each: they share their round trips. */
export interface Loader {
  instance(key: Key): Promise<Snapshot | undefined>;
  /** Matched waits that are not applied yet. */
  inbox(key: Key): Promise<readonly MatchedWait[]>;
  progress(key: Key): Promise<Progress | undefined>;
  /** Its next commits, `commitsAtOnce` at most. */
  changes(asked: ChangesOfInstance): Promise<readonly Change[]>;
}

const sizes = { lanes: 2, maxBatch: 200 };
/** Each may answer large commits, and all of them are in memory at once. */
const changesSizes = { lanes: 2, maxBatch: 20 };

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
    progress: groupCalls<Key, Progress | undefined>(sizes, (keys) => progressOf(db, keys)),
    changes: groupCalls<ChangesOfInstance, readonly Change[]>(changesSizes, (asked) =>
      readChangesOf(db, asked, commitsAtOnce),
    ),
  };
}
