import type { Commit, CommitOutcome, Db } from "@millrace/store";
import type { Metrics } from "@millrace/telemetry";
import { groupCalls } from "./group.ts";

/** Statements under way at once: one is written to disk while the next is prepared. */
const lanes = 2;
const maxBatch = 200;

/** Commits that come at the same time share a statement; a lone one goes at once (DESIGN, The commit). */
export function openCommitter(
  db: Db,
  metrics: Metrics,
  write: (db: Db, commits: readonly Commit[]) => Promise<readonly (CommitOutcome | Error)[]>,
  leastForMore = 1,
): (commit: Commit) => Promise<CommitOutcome> {
  return groupCalls<Commit, CommitOutcome>(
    {
      lanes,
      leastForMore,
      maxBatch,
      keyOf: ({ previous }) => `${previous.tenantId}/${previous.id}`,
    },
    async (commits) => {
      metrics.commitBatchSize.observe({}, commits.length);
      const startedAt = performance.now();
      const outcomes = await write(db, commits);
      metrics.commitDuration.observe({}, (performance.now() - startedAt) / 1_000);
      return outcomes;
    },
  );
}
